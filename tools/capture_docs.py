#!/usr/bin/env python3
"""Captures what the documents show from a real run of the release build, so that they cannot drift from the program:

- docs/protocol_session.txt, and its copy between the markers in docs/PROTOCOL.md;
- docs/loading.svg: layers 19 to 30 loading while a stream generates.

    tools/capture_docs.py           needs tools/demo.sh once (build and model); standard library only
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
BEGIN, END = "<!-- begin docs/protocol_session.txt -->", "<!-- end docs/protocol_session.txt -->"


class Server:
    """`helios serve` for the length of a with statement; leaves its trace in `trace`."""

    def __init__(self, trace, *arguments):
        models = Path(os.environ.get("HELIOS_MODELS_DIR") or ROOT / "models")
        self.process = subprocess.Popen(
            [ROOT / "build/release/apps/helios", "serve", "--model", models / MODEL, "--port", "0", "--trace", trace,
             "--log-level", "error", *arguments], stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline()
        if not ready.startswith("READY line="):
            self.process.kill()
            sys.exit("capture_docs: the server did not start")
        host, port = ready.split()[1].removeprefix("line=").rsplit(":", 1)
        self.address = (host, int(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=60) != 0:
            sys.exit("capture_docs: the server did not stop cleanly")


class Session:
    """A connection that notes every line of both sides."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=120)
        self.reader = self.socket.makefile("rb")
        self.notes = []

    def send(self, *lines):
        self.notes += ["C: " + line for line in lines]
        self.socket.sendall("".join(line + "\n" for line in lines).encode())

    def read(self):
        """One frame; returns its words."""
        line = self.reader.readline().decode().rstrip("\r\n")
        self.notes.append("S: " + line)
        words = line.split(" ")
        if words[0] == "TOK":
            payload = self.reader.read(int(words[3])).decode()
            self.reader.readline()
            self.notes.append("S: " + payload.replace("\n", "\nS: "))
        return words

    def read_until(self, *verbs):
        while True:
            words = self.read()
            if words[0] in verbs or words == [""]:
                return words


def record_session(address):
    session = Session(address)
    session.read()  # INFO
    session.send("LOAD t1 model=default layer=30")
    session.read_until("OK", "ERR")
    session.send("GEN t2 22 mode=chat max_tokens=12 temperature=0", "Tell me about the sea.")
    session.read_until("END", "ERR")
    session.send('GEN t3 "The three primary colours are" mode=raw max_tokens=8 ids=1 logprobs=1 exit_layer=18')
    session.read_until("END", "ERR")
    session.send('GEN t4 "Count to a thousand." max_tokens=1000')
    session.read_until("TOK", "ERR")
    session.send("CANCEL t4")
    session.read_until("END", "ERR")
    session.send('GEN t5 "Hello" colour=blue')
    session.read_until("ERR")
    session.send("FLY t6")
    session.read_until("ERR")
    session.send("STATS t7")
    session.read_until("STATS", "ERR")
    session.send("PING tick")
    session.read_until("PONG", "ERR")
    session.send("QUIT")
    session.read_until("OK", "ERR")
    return "\n".join(session.notes) + "\n"


def generate_while_loading(address):
    """One long stream; the rest of the layers is asked for in the middle of it."""
    session, control = Session(address), Session(address)
    control.read()
    session.read()
    session.send('GEN t1 "Tell me a long story about the sea." max_tokens=300 ignore_eos=1')
    for _ in range(60):
        session.read_until("TOK", "ERR")
    control.send("LOAD l1 model=default layer=30")
    loaded = control.read_until("OK", "ERR")
    ended = session.read_until("END", "ERR")
    print(" ".join(loaded), "|", " ".join(ended))
    if loaded[0] != "OK" or ended[0] != "END":
        sys.exit("capture_docs: loading while generating failed")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with Server(Path(folder) / "session.json", "--exit-layer", "18") as server:
            text = record_session(server.address)
        (ROOT / "docs/protocol_session.txt").write_text(text, encoding="utf-8")
        specification = ROOT / "docs/PROTOCOL.md"
        old = specification.read_text(encoding="utf-8")
        quoted = "".join("    " + line + "\n" for line in text.splitlines())
        new, count = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n{quoted}{END}", old, flags=re.S)
        if count != 1:
            sys.exit(f"capture_docs: {specification} lacks its markers")
        specification.write_text(new, encoding="utf-8")

        trace = Path(folder) / "loading.json"
        with Server(trace, "--exit-layer", "18") as server:
            time.sleep(0.2)
            generate_while_loading(server.address)
        subprocess.run([sys.executable, ROOT / "tools/trace_to_svg.py", trace, "--loading", "--title", "Layers 19 to 30 load while a stream generates",
                        "--output", ROOT / "docs/loading.svg"], check=True)


if __name__ == "__main__":
    main()
