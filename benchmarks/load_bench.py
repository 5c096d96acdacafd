#!/usr/bin/env python3
"""Step time while layers load, beside quiet steps: a server runs SmolLM2 at 18 of 30 layers, and in the middle of one long answer
`LOAD layer=30` brings the others.

    benchmarks/load_bench.py [--rounds 5]       prints milliseconds a step by phase; appends to benchmarks/results/*.jsonl

Phases of one answer, all by the trace of the server: `quiet` (18 layers, nothing loads), `loading` (a step during which a layer was copied or
repacked), `catch-up` (all layers are there, the answer's older tokens get the KV of layers 19 to 30 beside its new tokens), `full`
(30 layers). Needs tools/demo.sh once (build and model); standard library only.
"""

import argparse
import datetime
import json
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from line_client import MODEL, Server, generate_while_loading  # noqa: E402
from machine import commit, machine  # noqa: E402
from trace_to_svg import kind_of, mark_overlaps, read_spans  # noqa: E402

PHASES = ("quiet", "loading", "catch-up", "full")
QUIET_TOKENS, TOKENS = 100, 400


def exit_counts(end):
    """END's exits=18:102,30:298 as {18: 102, 30: 298}."""
    text = next(word for word in end if word.startswith("exits=")).removeprefix("exits=")
    return {int(layer): int(count) for layer, count in (pair.split(":") for pair in text.split(","))}


def phases_of(spans, end):
    """Step times in ms by phase. A sequence decodes at 18 until its catch-up is done, so END's histogram says where that was."""
    mark_overlaps(spans)
    steps = [span for span in spans if kind_of(span.track) == "compute"][1:]  # without the prefill
    full_from = len(steps) - exit_counts(end)[30]
    loading = [i for i, span in enumerate(steps) if span.overlaps]
    phases = {phase: [] for phase in PHASES}
    for i, span in enumerate(steps):
        phase = ("loading" if span.overlaps else "quiet" if i < loading[0] else "full" if i >= full_from else "catch-up")
        phases[phase].append((span.end - span.start) / 1000)
    return phases


def measure():
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        with Server(trace, "--exit-layer", "18") as server:
            _, end = generate_while_loading(server.address, QUIET_TOKENS, TOKENS)
        phases = phases_of(read_spans(json.loads(trace.read_text(encoding="utf-8"))), end)
    if not phases["loading"]:
        sys.exit("load_bench: no step ran while a layer was copied: nothing was measured")
    return {"exits": exit_counts(end), "steps": {phase: len(times) for phase, times in phases.items()},
            "ms": {phase: {"p50": round(statistics.median(times), 3), "p95": round(percentile(times, 95), 3), "max": round(max(times), 3)}
                   for phase, times in phases.items() if times}}


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="answers, each of a server of its own (default %(default)s)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    rounds = [measure() for _ in range(options.rounds)]

    def over_rounds(phase, statistic):
        values = [r["ms"][phase][statistic] for r in rounds if phase in r["ms"]]
        return f"{statistics.median(values):7.2f} ({min(values):.2f}-{max(values):.2f})" if values else "-"

    print(f"milliseconds a step, median of {options.rounds} rounds (smallest-largest); shared machines are noisy")
    for phase in PHASES:
        steps = statistics.median(r["steps"][phase] for r in rounds)
        print(f"{phase:9} {steps:4.0f} steps   p50 {over_rounds(phase, 'p50')}   p95 {over_rounds(phase, 'p95')}   max {over_rounds(phase, 'max')}")
    ratios = [r["ms"]["loading"]["p95"] / r["ms"]["quiet"]["p95"] for r in rounds]
    print(f"p95 loading / quiet: {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")

    now = datetime.datetime.now(datetime.timezone.utc)
    record = {"benchmark": "load", "time": now.isoformat(timespec="seconds"), "commit": commit(), "machine": machine(2), "model": MODEL,
              "command": f"benchmarks/load_bench.py --rounds {options.rounds}", "rounds": rounds}
    path = ROOT / "benchmarks/results" / f"load-{now:%Y%m%d-%H%M}-{record['commit'].split('+')[0]}.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
