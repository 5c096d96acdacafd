#!/usr/bin/env python3
"""Captures what the documents show from a real run of the release build, so that they cannot drift from the program:

- docs/protocol_session.txt, and its copy between the markers in docs/PROTOCOL.md;
- docs/loading.svg: layers 19 to 30 loading while a stream generates.

    tools/capture_docs.py           needs tools/demo.sh once (build and model); standard library only
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from line_client import ROOT, Server, Session, generate_while_loading

BEGIN, END = "<!-- begin docs/protocol_session.txt -->", "<!-- end docs/protocol_session.txt -->"


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
            loaded, ended = generate_while_loading(server.address)
            print(" ".join(loaded), "|", " ".join(ended))
        subprocess.run([sys.executable, ROOT / "tools/trace_to_svg.py", trace, "--loading", "--title", "Layers 19 to 30 load while a stream generates",
                        "--output", ROOT / "docs/loading.svg"], check=True)


if __name__ == "__main__":
    main()
