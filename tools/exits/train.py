"""Distillation from full depth at sampled answer positions: cross-entropy to its distribution over the ids that it chose anywhere in
the data and 2,048 random ones, anew each step."""

import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from heads import ExitHead, least_squares
from progress import progress
from states import LOGIT_ROWS
from trunk import rms_norm

RANDOM_IDS = 2048
CHUNK = 8192
THRESHOLDS = (0.5, 0.7, 0.9)


def fit_adapter(head, states, depth):
    rows = np.flatnonzero(states.answers & ~states.held)
    x, y = states.at(depth), states.at(head.target_depth)

    def chunks(of):
        for i in range(0, len(rows), CHUNK):
            yield torch.from_numpy(np.array(of[rows[i:i + CHUNK]]))

    weight, bias = least_squares(chunks(x), chunks(y))
    head.adapter_weight.data, head.adapter_bias.data = weight, bias


@torch.no_grad()
def judge(head, trunk, states, depth, sequences):
    """Agreement with full depth and confidence (top-1 probability) at the answer positions of held-out sequences."""
    agree, confidence = [], []
    for i in range(0, len(sequences), 8):
        chosen = sequences[i:i + 8]
        x, lengths = states.batch(depth, chosen)
        y = head(x)
        for row, (s, length) in enumerate(zip(chosen, lengths)):
            part = slice(states.starts[s], states.starts[s + 1])
            at = np.flatnonzero(states.answers[part])
            for rows in torch.from_numpy(at).split(LOGIT_ROWS):
                logits = y[row, rows] @ trunk.head.T
                agree.append(logits.argmax(-1) == torch.from_numpy(states.teacher[part][rows.numpy()]))
                confidence.append((logits.max(-1).values - logits.logsumexp(-1)).exp())
    agree, confidence = torch.cat(agree).float(), torch.cat(confidence)
    result = {"positions": len(agree), "agreement": round(agree.mean().item(), 4)}
    for threshold in THRESHOLDS:
        above = confidence > threshold
        result[f"c>{threshold}"] = [round(above.float().mean().item(), 4), round(agree[above].mean().item(), 4) if above.any() else None]
    return result


def pick_positions(states, sequences, count, chance):
    """`count` answer positions of each sequence, [sequences, count]; of an answer that has fewer, some twice."""
    picked = []
    for s in sequences:
        at = np.flatnonzero(states.answers[states.starts[s]:states.starts[s + 1]])
        picked.append(chance.choice(at, count, replace=len(at) < count))
    return np.stack(picked)


def loss_of(head, trunk, states, depth, sequences, positions, chance):
    x, _ = states.batch(depth, sequences)
    at = pick_positions(states, sequences, positions, chance)
    picked = head(x, torch.from_numpy(at)).flatten(0, 1)
    rows = (states.starts[sequences][:, None] + at).ravel()
    teacher = torch.from_numpy(np.array(states.at(trunk.config.layers)[rows], dtype=np.float32))
    with torch.no_grad():
        wanted = rms_norm(teacher, trunk.output_norm, trunk.config.epsilon)
        ids = np.union1d(states.chosen, chance.integers(0, trunk.config.vocab, RANDOM_IDS))
        part = trunk.head[torch.from_numpy(ids)]
        target = (wanted @ part.T).softmax(-1)
    return -(target * (picked @ part.T).log_softmax(-1)).sum(-1).mean()


def train(trunk, states, depth, kind, rank, steps, rate, folder, batch=8, positions=48, seed=1, minutes=None, log=print, save_every=100):
    """Trains one head; goes on from folder/checkpoint.pt when there is one. Returns (head, report)."""
    torch.manual_seed(seed)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    head = ExitHead(trunk, kind, rank)
    parameters = list(head.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0, betas=(0.9, 0.95))
    step, spent, losses = 0, 0.0, []
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.is_file():
        saved = torch.load(checkpoint, weights_only=True)
        head.load_state_dict(saved["head"])
        optimizer.load_state_dict(saved["optimizer"])
        step, spent, losses = saved["step"], saved["spent"], saved["losses"]
        log(f"goes on at step {step}")
    elif kind != "norm":
        fit_adapter(head, states, depth)
    held = states.held_sequences[:48]
    if step == 0:
        log(f"exit {depth} {kind} before training: {judge(head, trunk, states, depth, held)}")
    started = time.monotonic()
    bar = progress(range(step, steps), f"exit {depth}")
    for step in bar:
        chance = np.random.default_rng((seed, step))
        elapsed = (spent + time.monotonic() - started) / 60
        done = max(step / steps, elapsed / minutes if minutes else 0.0)
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * done))
        sequences = chance.choice(states.train_sequences, min(batch, len(states.train_sequences)), replace=False)
        optimizer.zero_grad()
        loss = loss_of(head, trunk, states, depth, sequences, positions, chance)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(round(loss.item(), 4))
        if (step + 1) % save_every == 0:
            log(f"exit {depth} step {step + 1}: loss {np.mean(losses[-save_every:]):.4f}")
            torch.save({"head": head.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1, "losses": losses,
                        "spent": spent + time.monotonic() - started}, checkpoint)
    report = {"exit": depth, "kind": kind, "rank": rank, "steps": len(losses), "loss": float(np.mean(losses[-50:])) if losses else None,
              "minutes": round((spent + time.monotonic() - started) / 60, 1)}
    report |= judge(head, trunk, states, depth, states.held_sequences)
    torch.save({"head": head.state_dict(), "report": report}, folder / "head.pt")
    return head, report
