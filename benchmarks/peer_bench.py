#!/usr/bin/env python3
"""HELIOS beside llama.cpp: the same model file, the same threads, alternately in one run.

    benchmarks/peer_bench.py --build-peer          builds llama.cpp once, into build/peer (about 10 minutes on two cores)
    benchmarks/peer_bench.py                       measures; prints medians and ratios; writes benchmarks/results/*.jsonl

METHOD.md says what is measured and what is not. Exit status 77 and a message when the peer is not there.
Standard library only.
"""

import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path

from machine import commit, machine

ROOT = Path(__file__).resolve().parent.parent
PEER_PACKAGE = "llama-cpp-python==0.3.36"  # its source package holds llama.cpp
MODEL_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SKIPPED = 77


# --- the peer -----------------------------------------------------------------------------------------------------

def build_peer(folder, jobs):
    """Downloads the source package into a venv's cache and builds llama-batched-bench and llama-bench in `folder`/bin."""
    def run(*command):
        print("+", shlex.join(map(str, command)), flush=True)
        subprocess.run(list(map(str, command)), check=True)

    venv, source, build = ROOT / "build/peer-venv", folder / "source", folder / "build"
    if not (source / "CMakeLists.txt").exists():
        if not (venv / "bin/pip").exists():
            run(sys.executable, "-m", "venv", venv)
        download = folder / "download"
        run(venv / "bin/pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps", "--dest", download, PEER_PACKAGE)
        archive = next(download.glob("llama_cpp_python-*.tar.gz"))
        marker = "/vendor/llama.cpp/"
        with tarfile.open(archive) as package:
            for member in package.getmembers():
                if marker in member.name and member.isfile():
                    member.name = member.name.split(marker, 1)[1]
                    if member.name.startswith("/") or ".." in Path(member.name).parts:
                        sys.exit(f"peer_bench: {archive} has a file outside of its folder: {member.name}")
                    package.extract(member, source)
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF",
        "-DGGML_NATIVE=ON", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF")
    run("nice", "-n", "15", "ninja", "-C", build, *(["-j", jobs] if jobs else []), "llama-batched-bench", "llama-bench")


def find_peer(folder):
    """llama-batched-bench below `folder`, or None."""
    for place in (folder / "build/bin", folder / "bin", folder):
        program = place / "llama-batched-bench"
        if program.is_file() and os.access(program, os.X_OK):
            return program
    return None


# --- one measurement ----------------------------------------------------------------------------------------------

def json_lines(command):
    """Runs a program and returns its stdout's JSON lines."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = []
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            lines.append(json.loads(line))
    if done.returncode != 0 or not lines:
        sys.exit(f"peer_bench: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return lines


def helios_command(options, exit_layer):
    command = [str(options.helios), "bench", "--model", str(options.model), "--streams", ",".join(map(str, options.streams)),
               "--prompt-tokens", str(options.prompt_tokens), "--output-tokens", str(options.output_tokens),
               "--threads", str(options.threads), "--json"]
    return command + (["--exit-layer", str(exit_layer)] if exit_layer else [])


def peer_command(options):
    context = max(options.streams) * (options.prompt_tokens + options.output_tokens)
    return [str(options.peer), "-m", str(options.peer_model or options.model), "-c", str(context), "-b", "2048", "-ub", "512",
            "-npp", str(options.prompt_tokens), "-ntg", str(options.output_tokens),
            "-npl", ",".join(map(str, options.streams)), "-t", str(options.threads), "-tb", str(options.threads),
            "-ngl", "0", "--output-format", "jsonl"]


def helios_result(line):
    return {"streams": line["streams"], "prefill": line["prefill_tokens_per_s"], "decode": line["decode_tokens_per_s"],
            "errors": line["errors"], "token_hash": line["token_hash"], "completion_tokens": line.get("completion_tokens"),
            "tpot_ms": line.get("tpot_ms"), "ttft_ms": line.get("ttft_ms"), "itl_ms": line.get("itl_ms")}


def peer_result(line):
    return {"streams": line["pl"], "prefill": line["speed_pp"], "decode": line["speed_tg"], "errors": 0}


# --- figures ------------------------------------------------------------------------------------------------------

def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarize(records, streams):
    """Medians of each program, and of the ratio HELIOS / peer taken round by round."""
    programs = list(dict.fromkeys(r["program"] for r in records))
    rows = []
    for count in streams:
        of = {p: sorted((r for r in records if r["program"] == p and r["streams"] == count), key=lambda r: r["round"])
              for p in programs}
        for program in programs:
            row = {"summary": program, "streams": count}
            for metric in ("prefill", "decode"):
                row[metric] = spread([r[metric] for r in of[program]])
                if program != "llama.cpp" and of.get("llama.cpp"):
                    pairs = zip(of[program], of["llama.cpp"])
                    row[metric + "_ratio"] = spread([mine[metric] / max(other[metric], 1e-9) for mine, other in pairs])
            hashes = sorted({r["token_hash"] for r in of[program] if "token_hash" in r})
            if hashes:
                row["token_hashes"] = hashes
                row["errors"] = sum(r["errors"] for r in of[program])
            rows.append(row)
    return rows


def print_table(rows):
    def figures(entry):
        return f"{entry['median']:8.1f} ({entry['min']:.1f}..{entry['max']:.1f})"

    print(f"\n{'':16} {'streams':>7}  {'prefill tok/s':24} {'decode tok/s':24} {'ratio to llama.cpp: prefill, decode'}")
    for row in rows:
        ratio = ""
        if "decode_ratio" in row:
            ratio = ", ".join(f"{row[m]['median']:.2f} ({row[m]['min']:.2f}..{row[m]['max']:.2f})" for m in ("prefill_ratio", "decode_ratio"))
        print(f"{row['summary']:16} {row['streams']:7}  {figures(row['prefill']):24} {figures(row['decode']):24} {ratio}")
    for row in rows:
        for_hash = row.get("token_hashes", [])
        if len(for_hash) == 1:
            print(f"tokens of {row['summary']} at {row['streams']:2} streams: {for_hash[0]}, the same in every round")
        elif for_hash:
            print(f"tokens of {row['summary']} at {row['streams']:2} streams DIFFER between rounds: {', '.join(for_hash)}")
        if row.get("errors"):
            print(f"{row['errors']} requests of {row['summary']} at {row['streams']} streams FAILED")


def main():
    models = Path(os.environ.get("HELIOS_MODELS_DIR") or ROOT / "models")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-peer", action="store_true", help="build llama.cpp first")
    parser.add_argument("--jobs", type=int, default=0, help="compilers at once for --build-peer")
    parser.add_argument("--peer-dir", type=Path, default=ROOT / "build/peer", help="where llama.cpp is built")
    parser.add_argument("--helios", type=Path, default=ROOT / "build/release/apps/helios")
    parser.add_argument("--model", type=Path, default=models / MODEL_NAME)
    parser.add_argument("--peer-model", type=Path, help="another file for the peer, such as its best format of the same model")
    parser.add_argument("--streams", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16, 32])
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--exit-layer", type=int, default=18, help="measured beside full depth; 0: full depth only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON lines (default: benchmarks/results/peer-DATE-COMMIT.jsonl)")
    options = parser.parse_args()

    if options.build_peer:
        build_peer(options.peer_dir, options.jobs)
    options.peer = find_peer(options.peer_dir)
    if options.peer is None:
        print(f"SKIPPED: llama.cpp is not in {options.peer_dir}: benchmarks/peer_bench.py --build-peer builds it", file=sys.stderr)
        return SKIPPED
    for file, remedy in ((options.model, "tools/get_model.sh"), (options.helios, "cmake --workflow --preset release")):
        if not file.is_file():
            print(f"SKIPPED: {file} is not there: {remedy}", file=sys.stderr)
            return SKIPPED
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")

    runs = [("helios", helios_command(options, 0), helios_result)]
    if options.exit_layer:
        runs.append((f"helios exit {options.exit_layer}", helios_command(options, options.exit_layer), helios_result))
    runs.append(("llama.cpp", peer_command(options), peer_result))

    now = datetime.datetime.now(datetime.timezone.utc)
    relative = lambda text: text.replace(str(ROOT) + "/", "")
    header = {"benchmark": "peer", "time": now.isoformat(timespec="seconds"), "commit": commit(), "machine": machine(options.threads),
              "model": options.model.name, "peer": PEER_PACKAGE, "peer_model": (options.peer_model or options.model).name,
              "threads": options.threads, "prompt_tokens": options.prompt_tokens, "output_tokens": options.output_tokens,
              "rounds": options.rounds, "commands": {name: relative(shlex.join(command)) for name, command, _ in runs}}
    print(json.dumps(header["machine"]))
    records = []
    for round_index in range(options.rounds):
        for name, command, result in runs[::1 if round_index % 2 == 0 else -1]:  # whoever is first changes
            load = os.getloadavg()[0]
            print(f"round {round_index + 1} of {options.rounds}: {name} (load {load:.2f})", file=sys.stderr, flush=True)
            for line in json_lines(command):
                records.append({"program": name, "round": round_index, "load_before": round(load, 2), **result(line)})
    rows = summarize(records, options.streams)
    print_table(rows)
    if options.threads >= header["machine"]["cores"] and max(r["load_before"] for r in records if r["round"] == 0) > 0.5:
        print("note: the machine was not quiet before the first round; ratios suffer less than figures")

    output = options.output or ROOT / f"benchmarks/results/peer-{now:%Y%m%d-%H%M}-{header['commit'].replace('+', '-')}.jsonl"
    output.parent.mkdir(parents=True, exist_ok=True)
    with open(output, "w", encoding="utf-8") as file:
        for line in [header, *records, *rows]:
            file.write(json.dumps(line) + "\n")
    print(f"\n{output}")
    return 1 if any(r["errors"] for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
