#!/usr/bin/env python3
"""Float32 reference logits of a Llama-architecture GGUF, in plain numpy.

    python tools/make_reference.py MODEL.gguf PROMPTS_DIR test/data/reference/smollm2.bin

Needs numpy, gguf and tokenizers. All weights are dequantised to float32; nothing of HELIOS is used, so the
file is an independent answer. Four prompts of each task go through the model's chat template (one user turn), the greedy
continuation of 64 tokens is appended, and the logits at every position are kept in short form.

File, little-endian: magic "HELREF1\\0", u32 vocab, u32 prompts; for each prompt: u32 name bytes, name, u32 prompt ids,
u32 ids in all, i32 ids[], then for each position f32 logsumexp, i32 top8_ids[8], f32 top8_logits[8]; at the end
u32 rows and for each: u32 prompt, u32 position, f16 logits[vocab].
"""

import argparse
import json
import pathlib
import struct

import gguf
import numpy as np
import tokenizers
from gguf.quants import dequantize

CONTINUATION = 64
PER_TASK = 4
PROMPT_IDS_MAX = 260
FULL_ROWS = 16


def field(reader, key):
    return reader.fields[key].contents()


def make_tokenizer(reader):
    tokens = field(reader, "tokenizer.ggml.tokens")
    types = field(reader, "tokenizer.ggml.token_type")
    merges = [tuple(m.split(" ")) for m in field(reader, "tokenizer.ggml.merges")]
    model = tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges)
    tok = tokenizers.Tokenizer(model)
    tok.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    control = gguf.TokenType.CONTROL
    tok.add_special_tokens([t for t, kind in zip(tokens, types) if kind == control])
    return tok


class Llama:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.reader = reader
        self.layers = field(reader, "llama.block_count")
        self.heads = field(reader, "llama.attention.head_count")
        self.kv_heads = field(reader, "llama.attention.head_count_kv")
        self.eps = np.float32(field(reader, "llama.attention.layer_norm_rms_epsilon"))
        self.w = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
        self.hidden = self.w["token_embd.weight"].shape[1]
        self.head_dim = self.hidden // self.heads
        base = field(reader, "llama.rope.freq_base")
        self.inv_freq = base ** (-np.arange(0, self.head_dim, 2, dtype=np.float64) / self.head_dim)
        self.head = self.w.get("output.weight", self.w["token_embd.weight"])

    def norm(self, x, name):
        mean = np.mean(np.square(x), axis=-1, keepdims=True, dtype=np.float32)
        return x / np.sqrt(mean + self.eps) * self.w[name]

    def rope(self, x, positions):  # x [n, heads, head_dim]; GGUF keeps q and k permuted: pairs are neighbours
        angle = np.outer(positions, self.inv_freq)
        cos, sin = np.cos(angle)[:, None].astype(np.float32), np.sin(angle)[:, None].astype(np.float32)
        even, odd = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2] = even * cos - odd * sin
        out[..., 1::2] = even * sin + odd * cos
        return out

    def forward(self, rows):
        """rows: list of (cache, start, ids). Cache: per layer [k, v]. Returns the logits of all rows, in order."""
        ids = np.concatenate([np.asarray(r[2]) for r in rows])
        positions = np.concatenate([np.arange(r[1], r[1] + len(r[2])) for r in rows])
        x = self.w["token_embd.weight"][ids]
        group = self.heads // self.kv_heads
        for layer in range(self.layers):
            p = f"blk.{layer}."
            h = self.norm(x, p + "attn_norm.weight")
            q = (h @ self.w[p + "attn_q.weight"].T).reshape(len(ids), self.heads, self.head_dim)
            k = (h @ self.w[p + "attn_k.weight"].T).reshape(len(ids), self.kv_heads, self.head_dim)
            v = (h @ self.w[p + "attn_v.weight"].T).reshape(len(ids), self.kv_heads, self.head_dim)
            q, k = self.rope(q, positions), self.rope(k, positions)
            out = np.empty((len(ids), self.heads, self.head_dim), np.float32)
            at = 0
            for cache, start, row_ids in rows:
                n = len(row_ids)
                part = slice(at, at + n)
                at += n
                keys, values = cache[layer]
                keys[start:start + n], values[start:start + n] = k[part], v[part]
                mask = np.arange(start + n)[None, :] > np.arange(start, start + n)[:, None]
                for head in range(self.heads):
                    score = q[part, head] @ keys[:start + n, head // group].T / np.float32(np.sqrt(self.head_dim))
                    score[mask] = -np.inf
                    score = np.exp(score - score.max(axis=1, keepdims=True))
                    score /= score.sum(axis=1, keepdims=True)
                    out[part, head] = score @ values[:start + n, head // group]
            x = x + out.reshape(len(ids), self.hidden) @ self.w[p + "attn_output.weight"].T
            h = self.norm(x, p + "ffn_norm.weight")
            gate = h @ self.w[p + "ffn_gate.weight"].T
            up = h @ self.w[p + "ffn_up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self.w[p + "ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ self.head.T

    def cache(self, length):
        shape = (length, self.kv_heads, self.head_dim)
        return [(np.zeros(shape, np.float32), np.zeros(shape, np.float32)) for _ in range(self.layers)]


def summary(logits):
    """(logsumexp, top-8 ids, top-8 logits) of each row; ties go to the smaller id."""
    top = np.argsort(-logits, axis=1, kind="stable")[:, :8]
    peak = logits.max(axis=1, keepdims=True).astype(np.float64)
    lse = np.log(np.exp(logits - peak).sum(axis=1)) + peak[:, 0]
    return [(float(l), t.astype("<i4"), row[t].astype("<f4")) for l, t, row in zip(lse, top, logits)]


def choose_prompts(directory, tok):
    chosen = []
    for path in sorted(pathlib.Path(directory).glob("*.jsonl")):
        taken = 0
        for line in path.read_text().splitlines():
            item = json.loads(line)
            text = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
                    f"<|im_start|>user\n{item['prompt']}<|im_end|>\n<|im_start|>assistant\n")
            ids = tok.encode(text, add_special_tokens=False).ids
            if len(ids) > PROMPT_IDS_MAX:
                continue
            chosen.append((item["id"], ids))
            taken += 1
            if taken == PER_TASK:
                break
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("out")
    args = parser.parse_args()
    model = Llama(args.model)
    prompts = choose_prompts(args.prompts, make_tokenizer(model.reader))
    state, full = [], []
    for index, (name, ids) in enumerate(prompts):
        cache = model.cache(len(ids) + CONTINUATION)
        logits = model.forward([(cache, 0, ids)])
        state.append({"name": name, "ids": list(ids), "n": len(ids), "cache": cache, "top": summary(logits)})
        if index < FULL_ROWS:
            full.append((index, len(ids) - 1, logits[-1].astype("<f2")))
        print(f"{name}: {len(ids)} ids", flush=True)
    for step in range(CONTINUATION):
        for s in state:
            s["ids"].append(int(s["top"][-1][1][0]))
        logits = model.forward([(s["cache"], len(s["ids"]) - 1, s["ids"][-1:]) for s in state])
        for s, row in zip(state, logits):
            s["top"] += summary(row[None])
    out = bytearray(b"HELREF1\0" + struct.pack("<II", model.head.shape[0], len(state)))
    for s in state:
        name = s["name"].encode()
        out += struct.pack("<I", len(name)) + name + struct.pack("<II", s["n"], len(s["ids"]))
        out += np.asarray(s["ids"], "<i4").tobytes()
        for lse, top, values in s["top"]:
            out += struct.pack("<f", lse) + top.tobytes() + values.tobytes()
    out += struct.pack("<I", len(full))
    for prompt, position, row in full:
        out += struct.pack("<II", prompt, position) + row.tobytes()
    pathlib.Path(args.out).write_bytes(out)
    print(f"{len(state)} prompts, {sum(len(s['ids']) for s in state)} positions, {len(out)} bytes")


if __name__ == "__main__":
    main()
