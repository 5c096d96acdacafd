"""Reads an exits file back, apart from the code that trained it, and gives the logits that the engine has to reach."""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from safetensors import safe_open
from trunk import NORMS, PROJECTIONS, rms_norm, run_layer


class ExitsFile:
    """Tensors in float32 by exit and name (`block.mlp.up_proj.lora_a`), with the file's metadata."""

    def __init__(self, path):
        self.heads = {}
        with safe_open(path, "numpy") as file:
            self.metadata = file.metadata()
            for name in file.keys():
                array = file.get_tensor(name)
                if array.dtype == "uint8":
                    array = dequantize(array, GGMLQuantizationType.Q8_0)
                _, layer, part = name.split(".", 2)
                self.heads.setdefault(int(layer), {})[part] = torch.from_numpy(array.astype("f4"))

    def layer_weights(self, trunk, layer, head):
        base = self.metadata.get(f"exits.{layer}.block.base_layer")
        scale = float(self.metadata.get(f"exits.{layer}.block.lora_scale", "1"))
        weights = trunk.layer(int(base)) if base is not None else {}
        for ours, name in PROJECTIONS.items():
            part = f"block.{name}."
            if part + "weight" in head:
                weights[ours + ".weight"] = head[part + "weight"]
            if part + "lora_a" in head:
                weights[ours + ".weight"] = weights[ours + ".weight"] + scale * head[part + "lora_b"] @ head[part + "lora_a"]
            if part + "bias" in head:
                weights[ours + ".bias"] = head[part + "bias"]
        for ours, name in NORMS.items():
            if f"block.{name}.weight" in head:
                weights[ours + ".weight"] = head[f"block.{name}.weight"]
        return weights

    def logits(self, trunk, layer, x):
        """x: states [batch, tokens, hidden] after `layer` layers."""
        head = self.heads[layer]
        if "adapter.weight" in head:
            x = F.linear(x, head["adapter.weight"], head["adapter.bias"])
        if any(part.startswith("block.") for part in head):
            x = run_layer(trunk.config, self.layer_weights(trunk, layer, head), x)
        return F.linear(rms_norm(x, head.get("norm.weight", trunk.output_norm), trunk.config.epsilon), head.get("head.weight", trunk.head))


@torch.no_grad()
def write_reference(trunk, exits_path, sequences, last, top, output):
    """JSON: for each sequence its ids, and for each exit at each of the last positions the `top` largest logits and their ids."""
    exits, written = ExitsFile(exits_path), []
    for ids in sequences:
        x, first, heads = trunk.embedding[torch.tensor(ids)][None], max(0, len(ids) - last), {}
        for depth in range(1, max(exits.heads) + 1):
            x = run_layer(trunk.config, trunk.layer(depth - 1), x)
            if depth in exits.heads:
                values, chosen = exits.logits(trunk, depth, x)[0, first:].topk(min(top, trunk.config.vocab))
                heads[str(depth)] = {"ids": chosen.tolist(), "logits": [[round(v, 5) for v in row] for row in values.tolist()]}
        written.append({"ids": ids, "first": first, "exits": heads})
    text = json.dumps({"model": trunk.path.name, "exits": Path(exits_path).name, "sequences": written}, separators=(",", ":"))
    Path(output).write_text(text + "\n", encoding="utf-8")
    print(f"{output}: {len(written)} sequences")
