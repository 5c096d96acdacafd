"""The line protocol (docs/PROTOCOL.md) for scripts: a client, one that notes what is said, and a server of the release build for the
length of a with statement."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


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
            sys.exit("the server did not start")
        self.address = ready.split()[1].removeprefix("line=")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=60) != 0:
            sys.exit("the server did not stop cleanly")


class Client:
    """A connection that reads control lines and the payloads they announce. address: HOST:PORT."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        self.reader = self.socket.makefile("rb")

    def send(self, *lines):
        self.socket.sendall("".join(line + "\n" for line in lines).encode())

    def frame(self):
        """The next frame: its words and its payload (b"" without one)."""
        line = self.reader.readline()
        if not line.endswith(b"\n"):
            sys.exit("the server closed the connection")
        words = line.decode().rstrip("\r\n").split(" ")
        payload = b""
        if words[0] == "TOK":
            payload = self.reader.read(int(words[3]))
            self.reader.readline()
        return words, payload


class Session(Client):
    """A connection that notes every line of both sides."""

    def __init__(self, address):
        super().__init__(address)
        self.notes = []

    def send(self, *lines):
        self.notes += ["C: " + line for line in lines]
        super().send(*lines)

    def read(self):
        """One frame; returns its words."""
        words, payload = self.frame()
        self.notes.append("S: " + " ".join(words))
        if words[0] == "TOK":
            self.notes.append("S: " + payload.decode().replace("\n", "\nS: "))
        return words

    def read_until(self, *verbs):
        while True:
            words = self.read()
            if words[0] in verbs:
                return words


def generate_while_loading(address, quiet_tokens=60, tokens=300):
    """One long stream of a server that runs 18 layers; after `quiet_tokens` the other layers are asked for. Returns the words of
    LOAD's answer and of END."""
    session, control = Session(address), Session(address)
    control.read()
    session.read()
    session.send(f'GEN t1 "Tell me a long story about the sea." max_tokens={tokens} ignore_eos=1')
    for _ in range(quiet_tokens):
        session.read_until("TOK", "ERR")
    control.send("LOAD l1 model=default layer=30")
    loaded = control.read_until("OK", "ERR")
    ended = session.read_until("END", "ERR")
    if loaded[0] != "OK" or ended[0] != "END":
        sys.exit(f"loading while generating failed: {' '.join(loaded)} | {' '.join(ended)}")
    return loaded, ended
