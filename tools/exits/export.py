"""Writes trained heads as `*.exits.safetensors` (model/exits.hpp)."""

import json
import subprocess
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from trunk import NORMS, PROJECTIONS

BLOCK = 32


def q8_0(matrix):
    """[rows, cols] float32 to Q8_0 blocks, U8 [rows, cols / 32 * 34]: an F16 scale and 32 int8 each."""
    rows, cols = matrix.shape
    blocks = matrix.reshape(rows, cols // BLOCK, BLOCK).astype(np.float32)
    scale = (np.abs(blocks).max(-1) / 127).astype(np.float16)
    inverse = np.divide(1.0, scale, out=np.zeros(scale.shape, np.float32), where=scale != 0, dtype=np.float32)
    values = np.clip(np.rint(blocks * inverse[..., None]), -127, 127).astype(np.int8)
    return np.concatenate([scale[..., None].view(np.uint8), values.view(np.uint8)], -1).reshape(rows, -1)


def stored(matrix, kind):
    array = matrix.detach().numpy()
    return q8_0(array) if kind == "q8_0" and array.shape[1] % BLOCK == 0 else array.astype(np.float16)


def head_tensors(state, layer, kind):
    tensors, prefix = {}, f"exits.{layer}."
    names = {**PROJECTIONS, **NORMS}
    for name, value in state.items():
        if name == "norm":
            tensors[prefix + "norm.weight"] = value.numpy()
        elif name == "adapter_weight":
            tensors[prefix + "adapter.weight"] = stored(value, kind)
        elif name == "adapter_bias":
            tensors[prefix + "adapter.bias"] = value.numpy()
        else:
            part, which = name.removeprefix("block.").split("/")
            tensors[f"{prefix}block.{names[part]}.{which}"] = value.numpy() if value.dim() == 1 else stored(value, kind)
    return tensors


def export(trunk, work, heads, tensor_type, output, command):
    """heads: (layer, kind) of each."""
    c = trunk.config
    meta = json.loads((work / "meta.json").read_text())
    commit = subprocess.run(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    metadata = {"layers": str(c.layers), "hidden": str(c.hidden), "vocab": str(c.vocab), "vocab_hash": trunk.vocab_hash(),
                "norms_hash": trunk.norms_hash(), "provenance.model": trunk.path.name, "provenance.commit": commit.strip(),
                "provenance.command": " ".join(Path(word).name if "/" in word else word for word in command),
                "provenance.data": f"{meta['sequences']} greedy answers of the model itself, {meta['answer_tokens']} answer tokens"}
    tensors = {}
    for layer, kind in heads:
        path = work / f"exit-{layer}-{kind}" / "head.pt"
        if not path.is_file():
            raise SystemExit(f"{path} is not there: train exit {layer} ({kind}) first")
        saved = torch.load(path, weights_only=True)
        state = saved["head"]
        tensors |= head_tensors(state, layer, tensor_type)
        metadata[f"provenance.exit.{layer}"] = json.dumps(saved["report"])
        if kind in ("block", "lora"):  # of a block only the biases of q, k, v come from there
            metadata[f"exits.{layer}.block.base_layer"] = str(c.layers - 1)
        if kind == "lora":
            metadata[f"exits.{layer}.block.lora_scale"] = "1"
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, output, metadata)
    print(f"{output}: {Path(output).stat().st_size / 1e6:.2f} MB, exits {[layer for layer, _ in heads]}")
