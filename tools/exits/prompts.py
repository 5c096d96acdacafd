"""Questions and beginnings of text for the model to go on from: the data that exit heads are trained on are its own answers."""

import json
import random
import re
from pathlib import Path


def dolly(text):
    for part in text.split("### Instruction:")[1:]:
        yield part.split("### Response:")[0].strip()


def gsm8k(text):
    for question in re.findall(r"^Question: (.*)$", text, re.M):
        yield f"Question: {question}\nAnswer:"


def scitldr(text):
    for abstract in text.split("\n\n"):
        abstract = abstract.strip()
        if len(abstract) > 300:
            yield f"Abstract:\n{abstract}\n\nSummary:"


def mbpp(text):
    for body in re.findall(r'"""\n(.*?)\n"""', text, re.S):
        yield f'"""\n{body}\n"""\n'


def beginnings(text, low, high, seed):
    """Parts of running text, each from a line's begin, of `low` to `high` characters and cut at a space."""
    chance = random.Random(seed)
    at = 0
    while at + high < len(text):
        size = chance.randint(low, high)
        part = text[at:at + size]
        yield part[:part.rfind(" ")] if " " in part[size // 2:] else part
        at = text.find("\n", at + size + 2000) + 1
        if at == 0:
            return


# file of the folder, how prompts are made of it, raw (a text to go on from) or one chat turn
SOURCES = {
    "dolly": ("qa_dolly_small.txt", dolly, False),
    "gsm8k": ("qa_gsm8k_train.txt", gsm8k, False),
    "scitldr": ("qa_scitldr_train.txt", scitldr, False),
    "mbpp": ("qa_mbpp_train.txt", mbpp, True),
    "mbpp-chat": ("qa_mbpp_train.txt", lambda text: (p.strip('"\n').split("\nassert")[0] for p in mbpp(text)), False),
    "code": ("code_python.txt", lambda text: beginnings(text, 200, 700, 1), True),
    "prose": ("prose_austen.txt", lambda text: beginnings(text, 150, 500, 2), True),
}


def make_prompts(folder, per_source, seed):
    """Up to `per_source` prompts of each source, in random order: {"id", "prompt", "raw"}."""
    prompts = []
    for name, (file, make, raw) in SOURCES.items():
        path = Path(folder) / file
        if not path.is_file():
            raise SystemExit(f"{path} is not there: --data names the folder with the calibration texts")
        made = [p for p in make(path.read_text(encoding="utf-8")) if p and len(p) < 4000]
        random.Random(seed).shuffle(made)
        prompts += [{"id": f"{name}-{i}", "prompt": p, "raw": raw} for i, p in enumerate(made[:per_source])]
    random.Random(seed).shuffle(prompts)
    return prompts


def write_prompts(path, prompts):
    Path(path).write_text("".join(json.dumps(p) + "\n" for p in prompts), encoding="utf-8")
