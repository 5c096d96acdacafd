"""The frozen model in float32 PyTorch, from a GGUF file: RMS-norm decoders with RoPE (llama, qwen2)."""

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from gguf.quants import dequantize

FNV_OFFSET, FNV_PRIME, MASK = 14695981039346656037, 1099511628211, (1 << 64) - 1

# Names of a layer's tensors: in GGUF, and within a layer of an exits file (Hugging Face's).
PROJECTIONS = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
               "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
               "ffn_down": "mlp.down_proj"}
NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


@dataclass
class Config:
    architecture: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    vocab: int
    epsilon: float
    rope_base: float

    @property
    def head_dim(self):
        return self.hidden // self.heads


def fnv1a(data):
    """FNV-1a, 64 bits, as 16 hex digits."""
    state = FNV_OFFSET
    for byte in data:
        state = ((state ^ byte) * FNV_PRIME) & MASK
    return f"{state:016x}"


def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def rotate(x, positions, base):
    """RoPE over pairs (i, i + d/2). x: [batch, heads, tokens, d]; positions: [tokens], or [batch, 1, tokens]."""
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = positions[..., None].double() * frequency
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def causal(config, q, k, v, at=None):
    """Attention over whole sequences from position 0, of queries at positions `at` [batch, queries] (None: all of them). Rows that are
    padding must come last: what is before them does not see them."""
    positions = torch.arange(k.shape[2])
    q, k = rotate(q, positions if at is None else at[:, None], config.rope_base), rotate(k, positions, config.rope_base)
    group = config.heads // config.kv_heads
    seen = None if at is None else positions <= at[:, None, :, None]
    return F.scaled_dot_product_attention(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), attn_mask=seen, is_causal=at is None)


def project(weights, name, x):
    """A matrix, its bias where there is one, and low-rank deltas where there are some."""
    y = F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))
    if name + ".lora_a" in weights:
        y = y + F.linear(F.linear(x, weights[name + ".lora_a"]), weights[name + ".lora_b"])
    return y


def take_rows(x, at):
    """Rows `at` [batch, n] of x [batch, tokens, width]: [batch, n, width]."""
    return x.gather(1, at[..., None].expand(-1, -1, x.shape[-1]))


def run_layer(config, weights, x, at=None):
    """One decoder layer. weights: tensors by GGUF name without the prefix, and by `attn_q.lora_a`, …; x: [batch, tokens, hidden].
    at: positions [batch, n] whose output is wanted (the others only give keys and values); None: all."""

    def split(name, heads, rows):
        return project(weights, name, rows).view(*rows.shape[:2], heads, config.head_dim).transpose(1, 2)

    h = rms_norm(x, weights["attn_norm.weight"], config.epsilon)
    k, v = split("attn_k", config.kv_heads, h), split("attn_v", config.kv_heads, h)
    if at is not None:
        x, h = take_rows(x, at), take_rows(h, at)
    out = causal(config, split("attn_q", config.heads, h), k, v, at)
    x = x + project(weights, "attn_output", out.transpose(1, 2).flatten(2))
    h = rms_norm(x, weights["ffn_norm.weight"], config.epsilon)
    return x + project(weights, "ffn_down", F.silu(project(weights, "ffn_gate", h)) * project(weights, "ffn_up", h))


class Trunk:
    """A GGUF file; layers are dequantised when they are asked for, so that memory holds no more than is used."""

    def __init__(self, path):
        self.path = Path(path)
        if not self.path.is_file():
            raise SystemExit(f"{path} is not there: --model names a GGUF file")
        self.reader = gguf.GGUFReader(self.path)
        self.tensors = {t.name: t for t in self.reader.tensors}
        architecture = self.field("general.architecture")
        if architecture not in ("llama", "qwen2"):
            raise SystemExit(f"{path}: architecture '{architecture}' is not supported here (llama and qwen2 are)")
        key = architecture + "."
        heads = self.field(key + "attention.head_count")
        self.config = Config(architecture, self.field(key + "block_count"), self.field(key + "embedding_length"), heads,
                             self.field(key + "attention.head_count_kv", heads), len(self.field("tokenizer.ggml.tokens")),
                             self.field(key + "attention.layer_norm_rms_epsilon"), self.field(key + "rope.freq_base", 10000.0))
        self.embedding = self.tensor("token_embd.weight")
        self.config.vocab = self.embedding.shape[0]
        self.head = self.tensor("output.weight") if "output.weight" in self.tensors else self.embedding
        self.output_norm = self.tensor("output_norm.weight")

    def field(self, key, default=None):
        field = self.reader.fields.get(key)
        if field is None and default is None:
            raise SystemExit(f"{self.path}: has no {key}")
        return default if field is None else field.contents()

    def tensor(self, name):
        t = self.tensors[name]
        return torch.from_numpy(np.array(dequantize(t.data, t.tensor_type), dtype=np.float32))

    def layer(self, index):
        """Tensors of layer `index` (0-based) as float32; q and k in the order that rotate() takes."""
        prefix = f"blk.{index}."
        weights = {name.removeprefix(prefix): self.tensor(name) for name in self.tensors if name.startswith(prefix)}
        if self.config.architecture == "llama":  # GGUF's neighbours (2i, 2i + 1) become halves
            for name, heads in (("attn_q.weight", self.config.heads), ("attn_k.weight", self.config.kv_heads)):
                w = weights[name]
                weights[name] = w.view(heads, self.config.head_dim // 2, 2, -1).transpose(1, 2).reshape(w.shape).contiguous()
        return weights

    def norms_hash(self):
        """model/exits.hpp: the F32 bytes of each layer's two norms, then the output norm."""
        names = [f"blk.{i}.{norm}.weight" for i in range(self.config.layers) for norm in ("attn_norm", "ffn_norm")]
        return fnv1a(b"".join(self.tensor(name).numpy().astype("<f4").tobytes() for name in (*names, "output_norm.weight")))

    def vocab_hash(self):
        """model/vocabulary.cpp: each token's spelling and a zero byte, in id order."""
        return fnv1a(b"".join(token.encode() + b"\0" for token in self.field("tokenizer.ggml.tokens")))
