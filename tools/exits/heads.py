"""Exit heads: logits = head(norm(block(adapter(h)))), of four kinds.

    norm     a final norm of its own
    affine   an adapter (least squares to the last layer's output), then norm
    block    an adapter to the last layer's input, then a whole layer of its own that starts as the last layer, then norm
    lora     as block, but the layer is the model's last one plus low-rank deltas
"""

import torch
import torch.nn.functional as F
from torch import nn
from trunk import PROJECTIONS, rms_norm, run_layer, take_rows

KINDS = ("norm", "affine", "block", "lora")


def least_squares(x, y, ridge=1e-3):
    """W [n, m], b [n] with y ~ x W^T + b; ridge in units of the mean diagonal. x, y: iterables of [rows, m], [rows, n] chunks."""
    xx = xy = 0
    for a, b in zip(x, y):
        a = torch.cat([a.float(), torch.ones(len(a), 1)], 1)
        xx, xy = xx + (a.T @ a).double(), xy + (a.T @ b.float()).double()
    xx += torch.eye(len(xx), dtype=torch.float64) * ridge * xx.diagonal().mean()
    w = torch.linalg.solve(xx, xy).T.float()
    return w[:, :-1].contiguous(), w[:, -1].contiguous()


class ExitHead(nn.Module):
    def __init__(self, trunk, kind, rank):
        super().__init__()
        self.config, self.kind, self.rank = trunk.config, kind, rank
        self.norm = nn.Parameter(trunk.output_norm.clone())
        if kind != "norm":
            self.adapter_weight = nn.Parameter(torch.eye(self.config.hidden))
            self.adapter_bias = nn.Parameter(torch.zeros(self.config.hidden))
        if kind in ("block", "lora"):
            last = trunk.layer(self.config.layers - 1)
            self.block = nn.ParameterDict()
            self.base = {name: w for name, w in last.items() if kind == "lora" or name.endswith(".bias")}
            for name, w in last.items():
                part = name.removesuffix(".weight")
                if name.endswith("_norm.weight") or (kind == "block" and part in PROJECTIONS):
                    self.block[name.replace(".", "/")] = nn.Parameter(w.clone())
                elif part in PROJECTIONS and kind == "lora":
                    self.block[part + "/lora_a"] = nn.Parameter(torch.randn(rank, w.shape[1]) / w.shape[1] ** 0.5)
                    self.block[part + "/lora_b"] = nn.Parameter(torch.zeros(w.shape[0], rank))

    @property
    def target_depth(self):
        """The depth whose output the adapter is fitted to."""
        return self.config.layers - (self.kind in ("block", "lora"))

    def layer_weights(self):
        return self.base | {name.replace("/", "."): parameter for name, parameter in self.block.items()}

    def forward(self, x, at=None):
        """States at the exit [batch, tokens, hidden] to normed states, which the model's head takes; of positions `at` [batch, n] only,
        where they are given."""
        if self.kind in ("norm", "affine") and at is not None:
            x = take_rows(x, at)
        if self.kind != "norm":
            x = F.linear(x, self.adapter_weight, self.adapter_bias)
        if self.kind in ("block", "lora"):
            x = run_layer(self.config, self.layer_weights(), x, at)
        return rms_norm(x, self.norm, self.config.epsilon)
