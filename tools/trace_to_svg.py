#!/usr/bin/env python3
"""Draws a trace of `helios ... --trace FILE` as an SVG time line, one lane per track.

A step of the compute stream that runs while the copy stream copies is drawn in a colour of its own, and the title counts
them: layers that load while tokens are generated can be seen and checked. Standard library only.

    tools/trace_to_svg.py TRACE.json --output docs/trace.svg
    tools/trace_to_svg.py TRACE.json --from-ms 120 --to-ms 180      one part of it
    tools/trace_to_svg.py TRACE.json --loading                      the part that loads while it computes
    tools/trace_to_svg.py TRACE.json --tracks '.*'                  actors too
"""

import argparse
import json
import re
import sys
from html import escape

WIDTH, LEFT, RIGHT = 1200, 150, 20
LANE_HEIGHT, ROW_HEIGHT, TOP = 40, 16, 64
FONT = "font-family='sans-serif'"
COLOURS = {"copy": "#d9822b", "compute": "#4c78a8", "both": "#2e7d32", "other": "#8a7fb0"}


class Span:
    """A bar of a track; times in microseconds."""

    def __init__(self, track, name, start, end):
        self.track, self.name, self.start, self.end = track, name, start, end
        self.overlaps = False


def read_spans(document):
    """The complete (X) and begin/end (B, E) events of a Chrome trace; instants and counters are left out."""
    events = document["traceEvents"] if isinstance(document, dict) else document
    names, spans, open_spans = {}, [], {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            names[(event.get("pid"), event.get("tid"))] = event["args"]["name"]
    for event in events:
        thread = (event.get("pid"), event.get("tid"))
        track, kind = names.get(thread, str(thread[1])), event.get("ph")
        if kind == "X":
            spans.append(Span(track, event["name"], event["ts"], event["ts"] + event.get("dur", 0)))
        elif kind == "B":
            open_spans.setdefault(thread, []).append(event)
        elif kind == "E" and open_spans.get(thread):
            begun = open_spans[thread].pop()
            spans.append(Span(track, begun["name"], begun["ts"], event["ts"]))
    return sorted(spans, key=lambda span: (span.start, -span.end))


def kind_of(track):
    return "copy" if "copy" in track else "compute" if "compute" in track else "other"


def union(spans):
    """Disjoint [start, end] intervals that cover the spans, in order."""
    merged = []
    for span in sorted(spans, key=lambda s: s.start):
        if merged and span.start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], span.end)
        else:
            merged.append([span.start, span.end])
    return merged


def mark_overlaps(spans):
    """Marks compute spans during which something was copied; returns the microseconds in which both streams worked."""
    copies = union(s for s in spans if kind_of(s.track) == "copy")
    computes = [s for s in spans if kind_of(s.track) == "compute"]
    for span in computes:
        span.overlaps = any(start < span.end and span.start < end for start, end in copies)
    shared = 0
    for start, end in union(computes):
        shared += sum(max(0, min(end, copy_end) - max(start, copy_start)) for copy_start, copy_end in copies)
    return shared


def rows_of(spans):
    """Packs the spans of one lane into rows so that none hides another (nested spans go below their parent)."""
    ends, rows = [], []
    for span in spans:
        row = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
        if row == len(ends):
            ends.append(0)
        ends[row] = span.end
        rows.append(row)
    return rows, max(1, len(ends))


def loading_part(spans):
    """[first, last] around the copies that begin after the first step, or None when there are none."""
    first_step = min((s.start for s in spans if kind_of(s.track) == "compute"), default=None)
    copies = [s for s in spans if kind_of(s.track) == "copy" and first_step is not None and s.start > first_step]
    if not copies:
        return None
    first, last = min(s.start for s in copies), max(s.end for s in copies)
    margin = 0.2 * (last - first)
    return max(0, first - margin), last + margin


def nice_step(span):
    """A round distance for about ten tick marks over `span`."""
    power = 1
    while power * 10 <= span / 10:
        power *= 10
    while power > span / 10:
        power /= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= span / 10)


def draw(spans, first, last, title):
    """SVG of the spans within [first, last] microseconds."""
    scale = (WIDTH - LEFT - RIGHT) / (last - first)
    x_of = lambda time: LEFT + (min(max(time, first), last) - first) * scale
    order = {"compute": 0, "copy": 1, "other": 2}
    tracks = sorted({s.track for s in spans}, key=lambda t: (order[kind_of(t)], t))
    body, y = [], TOP
    for track in tracks:
        lane = [s for s in spans if s.track == track]
        rows, count = rows_of(lane)
        height = LANE_HEIGHT if count == 1 else count * ROW_HEIGHT + 8
        row_height = (height - 8) / count
        body.append(f"<rect x='{LEFT}' y='{y}' width='{WIDTH - LEFT - RIGHT}' height='{height}' fill='#f4f4f4'/>")
        body.append(f"<text x='{LEFT - 8}' y='{y + height / 2 + 4:.0f}' text-anchor='end' font-size='12' {FONT}>{escape(track)}</text>")
        drawn_to = {}  # (row, colour) -> x already painted: bars thinner than half a pixel are not repeated
        for span, row in zip(lane, rows):
            left, right = x_of(span.start), x_of(span.end)
            colour = COLOURS["both" if span.overlaps else kind_of(track)]
            if right - drawn_to.get((row, colour), 0) < 0.5:
                continue
            drawn_to[(row, colour)] = right
            width = max(0.5, right - left - (0.4 if right - left > 2 else 0))
            top = y + 4 + row * row_height
            label = f"{span.name}: {(span.end - span.start) / 1000:.3f} ms at {span.start / 1000:.3f} ms"
            body.append(f"<rect x='{left:.1f}' y='{top:.1f}' width='{width:.1f}' height='{row_height - 1:.1f}' fill='{colour}'>"
                        f"<title>{escape(label)}</title></rect>")
            if width > 7 * len(span.name) and row_height >= 12:
                body.append(f"<text x='{left + 3:.1f}' y='{top + row_height / 2 + 3:.1f}' font-size='10' fill='white' {FONT}>"
                            f"{escape(span.name)}</text>")
        y += height + 6
    step = nice_step(last - first)
    tick = (first // step + (first % step > 0)) * step
    while tick <= last:
        x = x_of(tick)
        body.append(f"<line x1='{x:.1f}' y1='{TOP - 6}' x2='{x:.1f}' y2='{y}' stroke='#bbb' stroke-width='0.5'/>")
        body.append(f"<text x='{x:.1f}' y='{TOP - 10}' text-anchor='middle' font-size='11' {FONT}>{tick / 1000:g} ms</text>")
        tick += step
    legend, x = [], LEFT
    for key, text in (("compute", "compute"), ("both", "compute while copying"), ("copy", "copy")):
        legend.append(f"<rect x='{x}' y='{y + 8}' width='12' height='12' fill='{COLOURS[key]}'/>"
                      f"<text x='{x + 17}' y='{y + 18}' font-size='12' {FONT}>{text}</text>")
        x += 40 + 7 * len(text)
    height = y + 30
    return "\n".join([
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' width='{WIDTH}' height='{height:.0f}'>",
        f"<rect width='{WIDTH}' height='{height:.0f}' fill='white'/>",
        f"<text x='{LEFT}' y='24' font-size='15' {FONT}>{escape(title)}</text>", *body, *legend, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", help="Chrome trace JSON")
    parser.add_argument("--output", help="SVG file (default: the trace's name with .svg)")
    parser.add_argument("--tracks", default="^stream/", help="regular expression of the tracks to draw (default: %(default)s)")
    parser.add_argument("--from-ms", type=float, help="start of the part to draw, from the trace's first event")
    parser.add_argument("--to-ms", type=float)
    parser.add_argument("--loading", action="store_true", help="only the part in which layers load after the first step")
    parser.add_argument("--title", default="", help="words before the figures of the title")
    options = parser.parse_args()

    with open(options.trace, encoding="utf-8") as file:
        spans = read_spans(json.load(file))
    spans = [s for s in spans if re.search(options.tracks, s.track)]
    if not spans:
        sys.exit(f"trace_to_svg: {options.trace} has no span on a track that matches {options.tracks}")
    origin = min(s.start for s in spans)
    for span in spans:
        span.start -= origin
        span.end -= origin
    first = 0 if options.from_ms is None else options.from_ms * 1000
    last = max(s.end for s in spans) if options.to_ms is None else options.to_ms * 1000
    if options.loading:
        part = loading_part(spans)
        if part is None:
            sys.exit(f"trace_to_svg: {options.trace} has no copy after its first step")
        first, last = part
    spans = [s for s in spans if s.end > first and s.start < last]
    if last <= first or not spans:
        sys.exit(f"trace_to_svg: nothing between {first / 1000:g} and {last / 1000:g} ms")
    shared = mark_overlaps(spans)
    computes = [s for s in spans if kind_of(s.track) == "compute"]
    figures = (f"{sum(s.overlaps for s in computes)} of {len(computes)} compute spans overlap a copy; "
               f"both streams work for {shared / 1000:.1f} ms")
    output = options.output or re.sub(r"\.json$", "", options.trace) + ".svg"
    with open(output, "w", encoding="utf-8") as file:
        file.write(draw(spans, first, last, f"{options.title}: {figures}" if options.title else figures))
    print(f"{output}: {figures}")


if __name__ == "__main__":
    main()
