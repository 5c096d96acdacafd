#!/usr/bin/env python3
"""Golden blocks of every quantised type of GGUF that HELIOS reads, with the floats they stand for.

    python tools/make_block_data.py test/data/blocks/blocks.bin

Needs numpy and gguf, whose dequantisation is the independent answer. Blocks are random bytes, so that every bit of
every field counts; their fp16 scales are kept to the sizes that weights have. Two rows of 512 columns a type.

File, little-endian: magic "HELBLK1\\0", u32 types; for each: char name[8] (padded with zeros), u32 rows, u32 cols,
u32 bytes, bytes[], f32 values[rows * cols].
"""

import argparse
import pathlib
import struct

import gguf
import numpy as np
from gguf.quants import dequantize

ROWS, COLS, SEED = 2, 512, 7
SCALES = {  # type: offsets of fp16 fields in a block, and the size of each
    "Q8_0": [(0, 1e-3)], "Q4_0": [(0, 1e-2)], "Q4_1": [(0, 1e-2), (2, 5e-2)], "Q5_0": [(0, 5e-3)],
    "Q5_1": [(0, 5e-3), (2, 5e-2)], "Q4_K": [(0, 3e-4), (2, 3e-3)], "Q5_K": [(0, 2e-4), (2, 3e-3)],
    "Q6_K": [(208, 5e-5)],
}


def random_blocks(name, random):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = random.integers(0, 256, (ROWS * COLS // elements, size), dtype=np.uint8)
    for at, scale in SCALES[name]:
        values = random.normal(0, scale, len(blocks)).astype("<f2")
        blocks[:, at:at + 2] = values.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    args = parser.parse_args()
    random = np.random.default_rng(SEED)
    out = bytearray(b"HELBLK1\0" + struct.pack("<I", len(SCALES)))
    for name in SCALES:
        rows = random_blocks(name, random)
        values = dequantize(rows, gguf.GGMLQuantizationType[name]).astype("<f4")
        assert values.shape == (ROWS, COLS) and np.isfinite(values).all()
        out += struct.pack("<8sIII", name.encode(), ROWS, COLS, rows.size) + rows.tobytes() + values.tobytes()
    pathlib.Path(args.out).write_bytes(out)


if __name__ == "__main__":
    main()
