#!/usr/bin/env python3
"""Writes small tokenizers of each family, and what the families' own libraries make of the lines of ids.tsv.

Usage: make_tokenizer_families.py --data test/data/tokenizer [--pair QWEN2.gguf]
Needs: pip install tokenizers sentencepiece gguf

In the folder --data: FAMILY.json (tokenizer.json) or FAMILY.gguf (only tokenizer.ggml.*), and FAMILY.hashes with one
line per line of ids.tsv: FNV-1a (32 bits, hexadecimal) of the ids as little-endian int32, and of the UTF-8 of the text
that they decode to. The vocabularies are trained on the texts of ids.tsv; the pipelines are the families' own.
With --pair also qwen2_pair.hashes: the ids of the model's own vocabulary and merges.
"""

import argparse
import io
import json
import struct
from pathlib import Path

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VOCABULARY = 800
MARK = "\u2581"
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
USER_DEFINED = ["<repo_name>"]
COMMON = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
LLAMA3 = WORDS + r"\p{N}{1,3}" + COMMON
QWEN2 = WORDS + r"\p{N}" + COMMON


def read_lines(path):
    """(special tokens are matched, text) of each line."""
    names = {"n": "\n", "r": "\r", "t": "\t"}
    out = []
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            kind, text, _ = line.rstrip("\n").split("\t")
            plain, at = [], 0
            while at < len(text):
                if text[at] != "\\":
                    plain.append(text[at])
                elif text[at + 1] == "x":
                    plain.append(chr(int(text[at + 2 : at + 4], 16)))
                    at += 3
                else:
                    plain.append(names.get(text[at + 1], text[at + 1]))
                    at += 1
                at += 1
            out.append((kind == "S", "".join(plain)))
    return out


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"


def write_hashes(path, results):
    with open(path, "w", encoding="ascii", newline="\n") as out:
        for ids, text in results:
            out.write(f"{fnv1a(struct.pack(f'<{len(ids)}i', *ids))} {fnv1a(text.encode())}\n")


def without_special(source):
    """The same tokenizer for text in which control tokens are plain text."""
    state = json.loads(source)
    inside = state["model"]["vocab"] if isinstance(state["model"]["vocab"], dict) else [text for text, _ in state["model"]["vocab"]]
    kept = []
    for token in state["added_tokens"]:
        if token["special"] and token["content"] in inside:
            continue
        if token["special"]:  # in no line; it keeps the ids behind it where they are
            token["content"] = "\uf8ff" + token["content"]
        kept.append(token)
    state["added_tokens"] = kept
    state["post_processor"] = None
    return Tokenizer.from_str(json.dumps(state))


def write_family(folder, name, tokenizer, lines):
    state = tokenizer.to_str()
    (folder / f"{name}.json").write_text(json.dumps(json.loads(state), ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    plain = without_special(state)
    # Decoding knows all special tokens, so that both kinds of lines are decoded by one.
    results = []
    for special, text in lines:
        ids = (tokenizer if special else plain).encode(text, add_special_tokens=False).ids
        results.append((ids, tokenizer.decode(ids, skip_special_tokens=True)))
    write_hashes(folder / f"{name}.hashes", results)
    print(name, tokenizer.get_vocab_size(), "tokens")


def add_literals(tokenizer):
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in USER_DEFINED])


def byte_level(pre_tokenizer, texts, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    if ignore_merges:
        # Tokens that no merges lead to, as Llama 3 has: they are found only where whole pieces go first.
        state = json.loads(tokenizer.to_str())
        state["model"]["ignore_merges"] = True
        for word in ["\u0120leading", "trailing", "camelCase", "HTTPServer", "\u0120cups"]:
            state["model"]["vocab"].setdefault(word, len(state["model"]["vocab"]))
        tokenizer = Tokenizer.from_str(json.dumps(state))
    add_literals(tokenizer)
    return tokenizer


def split(regex):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(regex), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def sentence_piece(texts):
    """A SentencePiece BPE model with the settings of Llama's."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in texts for line in text.split("\n") if line]), model_writer=out,
        model_type="bpe", vocab_size=1100, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=True, split_digits=True, allow_whitespace_only_pieces=True,
        character_coverage=0.995, hard_vocab_limit=False, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


def write_sentence_piece(folder, model, lines):
    count = model.get_piece_size()
    tokens = [model.id_to_piece(i) for i in range(count)] + SPECIAL
    scores = [model.get_score(i) for i in range(count)] + [0.0] * len(SPECIAL)
    kind = lambda i: 2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1
    types = [kind(i) for i in range(count)] + [3] * len(SPECIAL)
    writer = gguf.GGUFWriter(folder / "sentencepiece.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(model.bos_id())
    writer.add_eos_token_id(model.eos_id())
    writer.add_unk_token_id(model.unk_id())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    results = []
    for special, text in lines:
        parts = [text]
        if special:  # SentencePiece itself knows no control tokens in text
            for token in SPECIAL:
                parts = [piece for part in parts for piece in cut(part, token)]
        ids = []
        for part in parts:
            ids += [count + SPECIAL.index(part)] if special and part in SPECIAL else model.encode(part)
        results.append((ids, model.decode([i for i in ids if i < count])))
    write_hashes(folder / "sentencepiece.hashes", results)
    print("sentencepiece", count, "tokens")
    return tokens[:count], scores, types


def cut(text, token):
    """`text` in parts, each either `token` or without it."""
    if text in SPECIAL:
        return [text]
    parts = text.split(token)
    out = [parts[0]]
    for part in parts[1:]:
        out += [token, part]
    return [part for part in out if part]


def llama2(tokens, scores, types, metaspace):
    """The tokenizer.json of a SentencePiece BPE vocabulary."""
    ids = {token: i for i, token in enumerate(tokens)}
    merges = []
    for token, i in ids.items():
        if types[i] == 1:
            merges += [(token[:at], token[at:], i) for at in range(1, len(token)) if token[:at] in ids and token[at:] in ids]
    merges.sort(key=lambda merge: (-scores[merge[2]], ids[merge[0]], ids[merge[1]]))
    tokenizer = Tokenizer(models.BPE(ids, [merge[:2] for merge in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>", *SPECIAL])
    tokenizer.add_tokens([AddedToken(text, normalized=False, rstrip=metaspace) for text in USER_DEFINED])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", ids["<s>"])])
    return tokenizer


def unigram(texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    trainer = trainers.UnigramTrainer(vocab_size=1200, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator([text for text in texts if text.isascii()], trainer)
    add_literals(tokenizer)
    return tokenizer


def pair(path):
    """Qwen 2's pipeline over the vocabulary of a GGUF file: for text with control tokens, and without."""
    reader = gguf.GGUFReader(path)
    read = lambda key: reader.fields[f"tokenizer.ggml.{key}"].contents()
    assert read("pre") == "qwen2", "the pipeline is Qwen 2's"
    tokens, types, merges = read("tokens"), read("token_type"), [tuple(merge.split(" ")) for merge in read("merges")]

    def make(special):
        tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = split(QWEN2)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == 4])
        if special:
            tokenizer.add_special_tokens([t for t, kind in zip(tokens, types) if kind == 3])
        return tokenizer

    return make(True), make(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path, help="the folder of ids.tsv")
    parser.add_argument("--pair", help="Qwen2.5-Coder in GGUF")
    options = parser.parse_args()
    lines = read_lines(options.data / "ids.tsv")
    texts = [text for _, text in lines]

    write = lambda name, tokenizer: write_family(options.data, name, tokenizer, lines)
    write("gpt2", byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), texts))
    llama3 = byte_level(split(LLAMA3), texts, ignore_merges=True)
    llama3.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing("<|endoftext|> $A", special_tokens=[("<|endoftext|>", llama3.token_to_id("<|endoftext|>"))])])
    write("llama3", llama3)
    write("qwen2", byte_level(split(QWEN2), texts, normalizers.NFC()))
    vocabulary = write_sentence_piece(options.data, sentence_piece(texts[:100] + [text for text in texts if text.isascii()]), lines)
    write("llama2", llama2(*vocabulary, metaspace=False))
    write("llama2_metaspace", llama2(*vocabulary, metaspace=True))
    write("unigram", unigram(texts))
    if options.pair:
        with_special, plain = pair(options.pair)
        results = []
        for special, text in lines:
            ids = (with_special if special else plain).encode(text, add_special_tokens=False).ids
            results.append((ids, with_special.decode(ids, skip_special_tokens=True)))
        write_hashes(options.data / "qwen2_pair.hashes", results)
        print("qwen2_pair", plain.get_vocab_size(), "tokens")


if __name__ == "__main__":
    main()
