"""Tests of tools/*.py and benchmarks/peer_bench.py."""

import contextlib
import io
import json
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.dom.minidom
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "benchmarks")]
import demo_client  # noqa: E402
import peer_bench  # noqa: E402
import trace_to_svg  # noqa: E402


def trace_of(*spans):
    """A Chrome trace with (track, name, start us, duration us) spans."""
    tracks = sorted({track for track, *_ in spans})
    events = [{"ph": "M", "pid": 1, "tid": i, "name": "thread_name", "args": {"name": t}} for i, t in enumerate(tracks)]
    events += [{"ph": "X", "pid": 1, "tid": tracks.index(t), "name": n, "ts": s, "dur": d} for t, n, s, d in spans]
    return {"traceEvents": events + [{"ph": "i", "pid": 1, "tid": 0, "name": "mark", "ts": 5}]}


class TraceToSvg(unittest.TestCase):
    def test_marks_the_steps_that_a_copy_overlaps(self):
        spans = trace_to_svg.read_spans(trace_of(
            ("stream/compute", "step 1", 0, 100), ("stream/compute", "step 2", 100, 100), ("stream/compute", "step 3", 300, 100),
            ("stream/copy", "layer", 150, 50), ("stream/copy", "piece", 160, 20), ("stream/copy", "next", 190, 60)))
        shared = trace_to_svg.mark_overlaps(spans)
        self.assertEqual({s.name for s in spans if s.overlaps}, {"step 2"})
        self.assertEqual(shared, 50)  # 150..200, each microsecond once although copies nest

    def test_touching_is_not_overlapping(self):
        spans = trace_to_svg.read_spans(trace_of(("stream/compute", "step", 0, 100), ("stream/copy", "layer", 100, 50)))
        self.assertEqual(trace_to_svg.mark_overlaps(spans), 0)
        self.assertFalse(any(s.overlaps for s in spans))

    def test_begin_and_end_events_pair_by_thread(self):
        events = [{"ph": "B", "pid": 1, "tid": 1, "name": "outer", "ts": 0}, {"ph": "B", "pid": 1, "tid": 1, "name": "inner", "ts": 10},
                  {"ph": "B", "pid": 1, "tid": 2, "name": "other", "ts": 12}, {"ph": "E", "pid": 1, "tid": 1, "ts": 20},
                  {"ph": "E", "pid": 1, "tid": 1, "ts": 30}]
        self.assertEqual([(s.name, s.start, s.end) for s in trace_to_svg.read_spans(events)], [("outer", 0, 30), ("inner", 10, 20)])

    def test_the_loading_part_leaves_out_the_first_load(self):
        spans = trace_to_svg.read_spans(trace_of(("stream/copy", "first", 0, 100), ("stream/compute", "step", 100, 900),
                                                 ("stream/copy", "later", 500, 100)))
        self.assertEqual(trace_to_svg.loading_part(spans), (480, 620))
        self.assertIsNone(trace_to_svg.loading_part(spans[:2]))

    def test_the_program_writes_an_svg_and_says_the_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "t.json"
            trace.write_text(json.dumps(trace_of(("stream/compute", "a <step> & more", 0, 1000), ("stream/copy", "layer", 500, 1000),
                                                 ("actor/Router", "Submit", 0, 10))))
            done = subprocess.run([sys.executable, str(ROOT / "tools/trace_to_svg.py"), str(trace)], capture_output=True, text=True, check=True)
            self.assertIn("1 of 1 compute spans overlap a copy; both streams work for 0.5 ms", done.stdout)
            texts = [t.firstChild.data for t in xml.dom.minidom.parse(str(Path(folder) / "t.svg")).getElementsByTagName("title")]
            self.assertEqual(sorted(t.split(":")[0] for t in texts), ["a <step> & more", "layer"])

    def test_an_empty_part_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "t.json"
            trace.write_text(json.dumps(trace_of(("actor/Router", "Submit", 0, 10))))
            done = subprocess.run([sys.executable, str(ROOT / "tools/trace_to_svg.py"), str(trace)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no span on a track", done.stderr)


class PeerBench(unittest.TestCase):
    def records(self, hashes=("aa", "aa", "aa")):
        rows = []
        for index, (mine, peer) in enumerate([(100, 50), (60, 20), (90, 60)]):
            rows.append({"program": "helios", "round": index, "streams": 4, "prefill": mine * 10, "decode": mine, "errors": 0,
                         "token_hash": hashes[index]})
            rows.append({"program": "llama.cpp", "round": index, "streams": 4, "prefill": peer * 10, "decode": peer, "errors": 0})
        return rows[::-1]  # the order of measuring does not matter

    def test_ratios_are_taken_round_by_round(self):
        mine, peer = sorted(peer_bench.summarize(self.records(), [4]), key=lambda row: row["summary"])
        self.assertEqual(mine["decode"], {"median": 90, "min": 60, "max": 100})
        self.assertEqual(mine["decode_ratio"], {"median": 2, "min": 1.5, "max": 3})
        self.assertNotIn("decode_ratio", peer)

    def test_tokens_that_differ_between_rounds_are_said(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            peer_bench.print_table(peer_bench.summarize(self.records(("aa", "bb", "aa")), [4]))
        self.assertIn("DIFFER between rounds: aa, bb", output.getvalue())

    def test_without_the_peer_it_skips_with_a_message(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", str(ROOT / "benchmarks/peer_bench.py"), "--peer-dir", folder],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77)
        self.assertIn("--build-peer", done.stderr)


class DemoClient(unittest.TestCase):
    def serve(self, reply):
        """A server that greets, reads one command with its payload, answers `reply`; returns its address and what it read."""
        listener = socket.create_server(("127.0.0.1", 0))
        read = []

        def run():
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as stream:
                stream.write(b"INFO {}\r\n")
                stream.flush()
                read.extend([stream.readline(), stream.readline()])
                stream.write(reply)
                stream.flush()
            listener.close()

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        return f"127.0.0.1:{listener.getsockname()[1]}", read

    def ask(self, reply, prompt):
        address, read = self.serve(reply)
        client = demo_client.Client(address)
        self.addCleanup(client.socket.close)
        self.assertEqual(client.frame(), (["INFO", "{}"], b""))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            result = demo_client.ask(client, prompt, 8)
        return result, output.getvalue(), read

    def test_counts_bytes_and_reads_payloads_by_their_length(self):
        reply = "ACK t1\r\nTOK t1 1 9\r\nEND é\r\nü\r\nTOK t1 2 1\n!\nEND t1 stop prompt=5 completion=2 exits=30:2\r\n".encode()
        reply = reply.replace(b"TOK t1 1 9", b"TOK t1 1 %d" % len("END é\r\nü".encode()))
        (reason, fields), text, read = self.ask(reply, "über")
        self.assertEqual(text, "END é\r\nü!\n")
        self.assertEqual((reason, fields["completion"], fields["exits"]), ("stop", "2", "30:2"))
        self.assertEqual(read, [b"GEN t1 5 mode=chat max_tokens=8 temperature=0\n", "über\n".encode()])

    def test_an_error_ends_the_demo(self):
        with self.assertRaisesRegex(SystemExit, "ERR t1 BUSY"):
            self.ask(b"ERR t1 BUSY retry_ms=100\r\n", "hello")

    def test_the_report_shows_depths_and_layers(self):
        state = {"models": [{"name": "m", "layers": 3, "resident": 2, "weight_bytes": 2 << 20, "kv_bytes_used": 0,
                             "kv_bytes_total": 1 << 20, "layer_load_ms": [2.0, 4.0, 0]}],
                 "device_bytes_used": 3 << 20, "device_bytes_total": 8 << 20}
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            demo_client.report("stop", {"completion": "4", "prompt": "9", "ttft_ms": "7", "tok_s": "50", "depth": "1.5", "exits": "1:2,2:2"}, state)
        text = output.getvalue()
        self.assertIn("layers 1-2 of 3 are resident", text)
        self.assertEqual(sum(line.startswith("layer ") and line.split()[3] == "ms" for line in text.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
