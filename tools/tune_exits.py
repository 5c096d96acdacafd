#!/usr/bin/env python3
"""Trains exit heads for a GGUF model with a frozen trunk; needs torch, numpy and gguf (tools/exits/requirements.txt).

    tune_exits.py prompts --data CALIBRATION_FOLDER --output prompts.jsonl
    helios generate --model M.gguf --prompts prompts.jsonl --max-tokens 128 --streams 32 --json > answers.jsonl
    tune_exits.py collect --model M.gguf --answers answers.jsonl --work WORK --depths 21,24,27
    tune_exits.py scan    --model M.gguf --work WORK          agreement of the closed form at every depth: choose exits from it
    tune_exits.py train   --model M.gguf --work WORK --exit 24 --kind lora --rank 64 --steps 1500
    tune_exits.py export  --model M.gguf --work WORK --exits 21,24,27 --output M.exits.safetensors
    tune_exits.py selftest

Everything is kept in WORK; `train` goes on where it was cut off. The trunk runs once, in `collect`.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "exits"))


def run_prompts(o):
    from prompts import make_prompts, write_prompts
    prompts = make_prompts(o.data, o.per_source, o.seed)
    write_prompts(o.output, prompts)
    print(f"{len(prompts)} prompts: {o.output}")


def json_lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def run_collect(o):
    from states import collect, read_answers
    from trunk import Trunk
    answers = read_answers(o.answers, o.max_tokens, o.most)
    print(json.dumps(collect(Trunk(o.model), answers, o.work, numbers(o.depths), o.seed)))


def run_scan(o):
    from scan import scan
    from states import States
    from trunk import Trunk
    scan(Trunk(o.model), States(o.work))


def run_train(o):
    from states import States
    from train import train
    from trunk import Trunk
    trunk = Trunk(o.model)
    if not 1 <= o.exit < trunk.config.layers:
        raise SystemExit(f"--exit {o.exit}: this model has exits 1 to {trunk.config.layers - 1}")
    _, report = train(trunk, States(o.work), o.exit, o.kind, o.rank, o.steps, o.rate, Path(o.work) / f"exit-{o.exit}-{o.kind}", o.batch, o.positions,
                      o.seed, o.minutes, lambda text: print(text, flush=True))
    print(json.dumps(report))


def run_export(o):
    from export import export
    from trunk import Trunk
    export(Trunk(o.model), Path(o.work), [(layer, o.kind) for layer in numbers(o.exits)], o.type, o.output, sys.argv)


def run_reference(o):
    from reference import write_reference
    from trunk import Trunk
    sequences = json_lines(o.answers)[:o.most]
    write_reference(Trunk(o.model), o.exits, [s["prompt_ids"] + s["token_ids"][:o.max_tokens] for s in sequences], o.last, o.top, o.output)


def run_selftest(o):
    from selftest import selftest
    selftest(o.keep)


def numbers(text):
    try:
        return [int(n) for n in text.split(",")]
    except ValueError:
        raise SystemExit(f"'{text}' is not a list of layers such as 18,24") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True, metavar="COMMAND")

    def verb(name, run, text, *with_model):
        command = verbs.add_parser(name, help=text)
        command.set_defaults(run=run)
        command.add_argument("--seed", type=int, default=1)
        if with_model:
            command.add_argument("--model", required=True, help="GGUF file (llama or qwen2)")
            command.add_argument("--work", required=True, help="folder of the collected states and of what is trained")
        return command

    c = verb("prompts", run_prompts, "make questions and beginnings of text from the calibration texts")
    c.add_argument("--data", required=True)
    c.add_argument("--output", required=True)
    c.add_argument("--per-source", type=int, default=400)
    c = verb("collect", run_collect, "run the trunk over answers and keep its hidden states", True)
    c.add_argument("--answers", required=True, nargs="+", help="output of helios generate --json")
    c.add_argument("--depths", required=True)
    c.add_argument("--max-tokens", type=int, default=384, help="of prompt and answer; longer ones are left out (default %(default)s)")
    c.add_argument("--most", type=int, default=100000, help="sequences")
    verb("scan", run_scan, "agreement of the closed form at every depth", True)
    c = verb("train", run_train, "train one head", True)
    c.add_argument("--exit", type=int, required=True)
    c.add_argument("--kind", choices=("norm", "affine", "block", "lora"), default="lora")
    c.add_argument("--rank", type=int, default=64)
    c.add_argument("--steps", type=int, default=1500)
    c.add_argument("--minutes", type=float, help="the rate falls to zero by then, if that is before --steps")
    c.add_argument("--rate", type=float, default=6e-4)
    c.add_argument("--batch", type=int, default=8, help="sequences a step")
    c.add_argument("--positions", type=int, default=48, help="answer positions of each that enter the loss")
    c = verb("export", run_export, "write *.exits.safetensors", True)
    c.add_argument("--exits", required=True)
    c.add_argument("--kind", choices=("norm", "affine", "block", "lora"), default="lora")
    c.add_argument("--type", choices=("f16", "q8_0"), default="q8_0", help="of matrices (default %(default)s)")
    c.add_argument("--output", required=True)
    c = verb("reference", run_reference, "logits of an exits file in PyTorch, for tests to compare with")
    c.add_argument("--model", required=True)
    c.add_argument("--exits", required=True, help="*.exits.safetensors")
    c.add_argument("--answers", required=True, help="output of helios generate --json")
    c.add_argument("--output", required=True)
    c.add_argument("--most", type=int, default=8, help="sequences")
    c.add_argument("--max-tokens", type=int, default=32, help="of each answer")
    c.add_argument("--last", type=int, default=16, help="positions, from the end of each sequence")
    c.add_argument("--top", type=int, default=8, help="largest logits of each position")
    c = verb("selftest", run_selftest, "all of it on tiny random models, in seconds")
    c.add_argument("--keep", help="folder for the tiny models, their exits and reference logits (test/data/exits)")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
