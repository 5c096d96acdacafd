#!/usr/bin/env python3
"""Writes test/data/tokenizer/ids.tsv: lines of text and the ids that the `tokenizers` library gives them.

Usage: make_tokenizer_data.py --gguf MODEL.gguf --text FILE [FILE ...] --out test/data/tokenizer/ids.tsv
Needs: pip install tokenizers gguf

The tokenizer is built from the vocabulary and merges of the GGUF file with the pipeline that SmolLM2's tokenizer.json
states: Digits(individual_digits) then ByteLevel(use_regex). One line of the output is `S<TAB>TEXT<TAB>IDS` (control
tokens in the text are matched) or `P<TAB>TEXT<TAB>IDS` (they are plain text). TEXT has \\\\, \\n, \\r, \\t and \\xHH (other
controls); IDS are differences to the previous id, in base 36.
"""

import argparse
import random
import unicodedata

import gguf
from tokenizers import Tokenizer, models, pre_tokenizers

LINES = 2000
SEED = 20410

ALPHABETS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "accents": "éèêëàâäùûüôöîïçñßøåÆŒœžščřĐđŁłİıẞ",
    "digits": "0123456789",
    "numbers": "²³¼½¾٠١٢٣४५६፩፪ⅧⅫ①⑳㊿〇",
    "greek_cyrillic": "αβγδεζηθικλμΑΒΓΔабвгдежзийклмнАБВЩЪЫЭЮЯ",
    "cjk": "的一是不了人我在有他這中大來上國個到說們為子和你地出道也時年得就那要下以生會自着去之過家學對可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青管夫连远资队跟带花快条院变联言权往展该领传近留红治决周保达办运武半候七必城父强步完革深区即求品士转量空甚众技轻程告江语英基派满式李息写呢识极令黄德收脸钱党倒未持取设始版双历越史商千片容研像找友孩站广改议形委早房音火际则首单据导影失拿网香似斯专石若兵弟谁校读志飞观争究包组造落视济喜离虽坐集编宝谈府拉黑且随格尽剑讲布杀微怕母调局根曾准团段终乐切级克精哪官示冲竟乎男举客证苦照注费足尔招群热推晚响称兴待约阳哥惊吗整支古汉突号绝选吸破属ひらがなカタカナ日本語한국어안녕하세요",
    "arabic_hebrew": "السلامعليكممرحباالعربيةשלוםעולם",
    "indic_thai": "नमस्तेदुनियाவணக்கம்สวัสดีชาวโลก",
    "combining": "\u0300\u0301\u0302\u0303\u0308\u030a\u0323\u0327\u0338\u064b\u064e\u0651\u093c\u094d\u20d0\u20e3\ufe0f",
    "emoji": "😀😂🥰🤔👍🏽🎉🚀❤🔥✨🌍🐍👩💻🏳🌈🇫🇷🇯🇵\u200d\ufe0f",
    "symbols": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~§±×÷€£¥©®™…–—“”‘’«»→←∑∫√≈≠≤≥∞",
    "spaces": " \t\n\r\u00a0\u2003\u3000\u2028\u0085",
}
SNIPPETS = [
    "don't", "I'LL", "we're", "they've", "it's", "he'd", "'tis", "''s", "'S", "x'll'd", "\u2019s", "1'st", "'re5",
    "  leading", "trailing  ", "a  b", "a   b", "a\t\tb", "a \n b", "\n\n\n", "   \n   x", " \t", "\r\n", " 5", "  5",
    "5 5", "3.14159", "1,000,000", "0x1F", "v2.0.1", "2024-06-30T12:00:00Z", "x1y2z3", "100%", "№5", "1½ cups", "x²+y²",
    "for (int i = 0; i < n; ++i) {", "    return self.x  # note", "def f(a: int) -> str:", "\tif x:\n\t\tpass", "a_b__c",
    "camelCaseHTTPServer", "https://example.org/a?b=c&d=%20", "user@example.com", "$HOME/.cache", "C:\\Temp\\x.txt",
    "👩‍👩‍👧‍👦", "🏳️‍🌈", "e\u0301", "n\u0303o", "Zürich", "naïve café", "ﬁ", "Ａｂｃ", "１２３", "東京は日本の首都です。", "你好，世界！",
    "مرحبا بالعالم", "שלום עולם", "Привет, мир!", "สวัสดีชาวโลก", "안녕하세요", "नमस्ते", "\u200b", "a\u00a0b", "\u3000全角",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<|im_start", "<file_sep>", "<|im_start|>user\n",
]


def escape(text):
    out = []
    for char in text:
        if char == "\\":
            out.append("\\\\")
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        elif ord(char) < 0x20:
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(char)
    return "".join(out)


def base36(value):
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    sign, value = ("-", -value) if value < 0 else ("", value)
    out = digits[value % 36]
    while value >= 36:
        value //= 36
        out = digits[value % 36] + out
    return sign + out


def differences(ids):
    return " ".join(base36(b - a) for a, b in zip([0, *ids], ids))


def make_tokenizers(path):
    reader = gguf.GGUFReader(path)
    read = lambda key: reader.fields[f"tokenizer.ggml.{key}"].contents()
    tokens, merges, types = read("tokens"), read("merges"), read("token_type")
    assert read("pre") == "smollm", "the pipeline below is SmolLM2's"

    def make(special):
        model = models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges])
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        if special:
            tokenizer.add_special_tokens([t for t, kind in zip(tokens, types) if kind == 3])
        return tokenizer

    return make(True), make(False)


def generated(rng):
    """A mix of words of one alphabet each, snippets, and white space."""
    parts = []
    for _ in range(rng.randint(1, 12)):
        pick = rng.random()
        if pick < 0.35:
            parts.append(rng.choice(SNIPPETS))
        elif pick < 0.85:
            alphabet = ALPHABETS[rng.choice(list(ALPHABETS))]
            parts.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))))
        else:
            parts.append("".join(rng.choice(ALPHABETS["spaces"]) for _ in range(rng.randint(1, 6))))
        if rng.random() < 0.6:
            parts.append(" " * rng.choice([1, 1, 1, 2, 3, 8]))
    return "".join(parts)


def anything(rng):
    """Code points from all over Unicode, without those that the library's tables and ours may class differently."""
    out = []
    while len(out) < rng.randint(4, 24):
        code = rng.choice([rng.randrange(0x20, 0x800), rng.randrange(0x800, 0x10000), rng.randrange(0x10000, 0x20000)])
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co"):
            out.append(chr(code))
    return "".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--text", required=True, nargs="+", help="files whose lines are sampled")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    rng = random.Random(SEED)
    with_special, plain = make_tokenizers(options.gguf)

    lines = list(SNIPPETS)
    per_file = 1000 // len(options.text)
    for path in options.text:
        with open(path, encoding="utf-8", newline="") as file:
            whole = file.read()
        for _ in range(per_file):  # from anywhere, so that a line may begin or end within white space
            begin = rng.randrange(max(1, len(whole) - 200))
            lines.append(whole[begin : begin + rng.randint(20, 140)])
    lines += ["a" * 300, " " * 200, "\n" * 100, "ab" * 200, "😀" * 60, "1" * 80, "的" * 100, "-" * 150, "' " * 40]
    while len(lines) < LINES - 200:
        lines.append(generated(rng))
    while len(lines) < LINES:
        lines.append(anything(rng))

    with open(options.out, "w", encoding="utf-8", newline="\n") as out:
        for number, line in enumerate(lines):
            special = number % 2 == 0
            ids = (with_special if special else plain).encode(line, add_special_tokens=False).ids
            out.write(f"{'S' if special else 'P'}\t{escape(line)}\t{differences(ids)}\n")


if __name__ == "__main__":
    main()
