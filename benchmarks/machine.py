"""What a result says about where it was measured."""

import os
import re
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def scan_memory(size):
    """Reads `size` bytes once, several times over; returns the best bytes per second of one core."""
    block = bytearray(b"\x01") * size  # written, so that no page is the shared zero page
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        if block.find(b"\x02") != -1:  # memchr: one pass over all of it
            raise RuntimeError("the block was changed")
        best = max(best, size / (time.perf_counter() - start))
    return best


def read_bandwidth(threads, size=256 << 20):
    """GB/s that `threads` processes read from memory together (memchr over 256 MiB each, best pass of each, summed)."""
    with ProcessPoolExecutor(threads) as pool:
        return sum(pool.map(scan_memory, [size] * threads)) / 1e9


def machine(threads):
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = set(re.search(r"^flags\s*:(.*)$", cpuinfo, re.M).group(1).split())
    wanted = ("sse4_2", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_int8")
    return {
        "cpu": re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.M).group(1),
        "cores": len(os.sched_getaffinity(0)),
        "isa": [flag for flag in wanted if flag in flags],
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": os.uname().release,
        "read_gb_per_s": round(read_bandwidth(threads), 1),
    }


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout.strip()
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+changes" if git("status", "--porcelain", "-uno") else "")
