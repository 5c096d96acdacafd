#!/usr/bin/env python3
"""One chat prompt over the line protocol (docs/PROTOCOL.md), and what the server says about itself afterwards.

usage: demo_client.py HOST:PORT PROMPT [max_tokens]
Needs nothing outside of the standard library.
"""

import json
import sys

from line_client import Client


def ask(client, prompt, max_tokens):
    """Sends one GEN, prints the answer as it comes, and returns the fields of END."""
    data = prompt.encode()
    client.send(f"GEN t1 {len(data)} mode=chat max_tokens={max_tokens} temperature=0", prompt)
    while True:
        words, payload = client.frame()
        if words[0] == "TOK":
            sys.stdout.write(payload.decode())
            sys.stdout.flush()
        elif words[0] == "END":
            print()
            return words[2], dict(word.split("=", 1) for word in words[3:])
        elif words[0] == "ERR":
            raise SystemExit("demo: " + " ".join(words))


def stats(client):
    client.send("STATS s1")
    while True:
        words, _ = client.frame()
        if words[0] == "STATS":
            return json.loads(" ".join(words[words.index("s1") + 1:]))
        if words[0] == "ERR":
            raise SystemExit("demo: " + " ".join(words))


def bar(value, largest, width=40):
    return "#" * max(1, round(width * value / largest)) if value > 0 and largest > 0 else ""


def report(reason, end, state):
    print(f"\n== answer: {end['completion']} tokens ({reason}) after a prompt of {end['prompt']}")
    print(f"first token after {end['ttft_ms']} ms, then {end['tok_s']} tokens/s, {end['depth']} layers a token")
    exits = [(int(depth), int(count)) for depth, count in
             (entry.split(":") for entry in end.get("exits", "").split(",") if entry)]
    print("\n== depth of its tokens")
    for depth, count in exits:
        print(f"layer {depth:3} {count:5}  {bar(count, max(c for _, c in exits))}")
    mebibyte = 1 << 20
    for model in state["models"]:
        print(f"\n== {model['name']}: layers 1-{model['resident']} of {model['layers']} are resident")
        print(f"weights {model['weight_bytes'] / mebibyte:.1f} MiB, KV cache {model['kv_bytes_used'] / mebibyte:.1f} of "
              f"{model['kv_bytes_total'] / mebibyte:.1f} MiB, device {state['device_bytes_used'] / mebibyte:.1f} of "
              f"{state['device_bytes_total'] / mebibyte:.1f} MiB")
        times = model["layer_load_ms"]
        loaded = [t for t in times if t > 0]
        if loaded:
            print(f"load time by layer, {sum(loaded):.0f} ms in all:")
            for layer, milliseconds in enumerate(times, 1):
                if milliseconds > 0:
                    print(f"layer {layer:3} {milliseconds:7.1f} ms  {bar(milliseconds, max(loaded))}")


def main():
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    prompt = sys.argv[2]
    client = Client(sys.argv[1])
    words, _ = client.frame()
    if words[0] != "INFO":
        raise SystemExit("demo: not a HELIOS line protocol server: " + " ".join(words)[:80])
    print(f"\n== prompt: {prompt}")
    reason, end = ask(client, prompt, int(sys.argv[3]) if len(sys.argv) == 4 else 96)
    report(reason, end, stats(client))
    client.send("QUIT")


if __name__ == "__main__":
    main()
