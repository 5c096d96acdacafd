"""The closed form at every depth: least squares to the last layer's output, then the model's own norm and head."""

import numpy as np
import torch
from heads import least_squares
from states import full_argmax


JUDGED = 1000  # held-out positions; each costs two products with the whole head at every depth


def scan(trunk, states):
    kept = np.load(states.folder / "scan.npz")
    fit = int(kept["fit"])
    all_states = kept["states"][:, :fit + JUDGED]
    last = torch.from_numpy(all_states[-1].astype(np.float32))
    wanted = full_argmax(trunk, last[fit:])
    print(f"layers  own head  affine     (agreement with full depth at {len(wanted)} held-out answer positions; fitted on {fit})")
    for index in range(len(all_states) - 1):
        x = torch.from_numpy(all_states[index].astype(np.float32))
        weight, bias = least_squares([x[:fit]], [last[:fit]])
        affine = full_argmax(trunk, x[fit:] @ weight.T + bias)
        plain = full_argmax(trunk, x[fit:])
        print(f"{index + 1:6}    {(plain == wanted).float().mean():.3f}     {(affine == wanted).float().mean():.3f}", flush=True)
