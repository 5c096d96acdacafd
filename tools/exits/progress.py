import sys
import time


def progress(items, label):
    """Yields the items of a list; a bar on a terminal, a line now and then elsewhere."""
    start = shown = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if done == len(items) or now - shown > (0.2 if terminal else 30):
            shown = now
            left = (now - start) / done * (len(items) - done)
            print(f"{label}: {done}/{len(items)}, {left:.0f} s left", end="\r" if terminal and done < len(items) else "\n", file=sys.stderr, flush=True)
