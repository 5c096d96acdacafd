"""Hidden states of the frozen model over its own answers: the trunk runs once, heads train on what is stored.

A folder holds meta.json, ids.npy [tokens], starts.npy [sequences + 1], answers.npy [tokens] (true where the next token is an answer's),
teacher.npy [tokens] (full depth's argmax), states/{E}.f16 [tokens, hidden] for each stored depth E (layers run: 0 would be the embedding), and
scan.npz: the states of some positions at every depth, to fit and to judge the closed form.
"""

import json
from pathlib import Path

import numpy as np
import torch
from progress import progress
from trunk import rms_norm, run_layer

HELD_OUT_EVERY = 8     # every eighth sequence is held out
SCAN_FIT, SCAN_HELD = 8000, 3000  # positions of which every depth is kept
BATCH_TOKENS = 4096    # padded tokens that run together
LOGIT_ROWS = 512


def read_answers(paths, max_tokens, most):
    """Lines of `helios generate --json`: (prompt ids, answer ids)."""
    sequences = []
    for path in paths:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            item = json.loads(line)
            if "prompt_ids" not in item or "token_ids" not in item:
                raise SystemExit(f"{path}:{number}: no prompt_ids and token_ids: make it with `helios generate --json`")
            prompt, answer = item["prompt_ids"], item["token_ids"]
            if len(answer) >= 4 and len(prompt) + len(answer) <= max_tokens:
                sequences.append((prompt, answer))
    if not sequences:
        raise SystemExit("no answer of 4 tokens or more within --max-tokens")
    return sequences[:most]


def full_argmax(trunk, states):
    """Full depth's choice at each row; states [rows, hidden] are the last layer's output."""
    chosen = []
    for rows in states.split(LOGIT_ROWS):
        chosen.append((rms_norm(rows.float(), trunk.output_norm, trunk.config.epsilon) @ trunk.head.T).argmax(-1))
    return torch.cat(chosen)


def batches(lengths):
    """Indices of sequences in batches of about BATCH_TOKENS, of similar lengths."""
    batch, longest = [], 0
    for index in np.argsort(lengths, kind="stable"):
        longest = max(longest, lengths[index])
        if batch and longest * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch, longest = [], lengths[index]
        batch.append(int(index))
    if batch:
        yield batch


@torch.no_grad()
def collect(trunk, answers, folder, depths, seed):
    folder = Path(folder)
    (folder / "states").mkdir(parents=True, exist_ok=True)
    config, layers = trunk.config, trunk.config.layers
    lengths = [len(p) + len(a) for p, a in answers]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    total = int(starts[-1])
    ids = np.concatenate([np.array(p + a) for p, a in answers])
    is_answer = np.zeros(total, bool)
    for (prompt, answer), start in zip(answers, starts):
        is_answer[start + len(prompt) - 1:start + len(prompt) + len(answer) - 1] = True
    held = np.zeros(total, bool)
    for s in range(0, len(answers), HELD_OUT_EVERY):
        held[starts[s]:starts[s + 1]] = True
    chance = np.random.default_rng(seed)

    def some(rows, most):
        return np.sort(chance.choice(np.flatnonzero(rows), min(most, int(rows.sum())), replace=False))

    fit_rows, held_rows = some(is_answer & ~held, SCAN_FIT), some(is_answer & held, SCAN_HELD)
    scan_rows = np.concatenate([fit_rows, held_rows])

    # Layer by layer over all tokens: one layer's weights at a time, states on disk. A layer's states replace the last one's.
    current = np.lib.format.open_memmap(folder / "current.npy", "w+", np.float32, (total, config.hidden))
    current[:] = trunk.embedding[torch.from_numpy(ids)].numpy()
    kept, scan = sorted(set(depths) | {layers - 1, layers}), np.zeros((layers, len(scan_rows), config.hidden), np.float16)
    plan = list(batches(np.array(lengths)))
    for layer in range(layers):
        weights = trunk.layer(layer)
        for batch in progress(plan, f"layer {layer + 1}/{layers}"):
            longest = max(lengths[s] for s in batch)
            x = torch.zeros(len(batch), longest, config.hidden)
            for row, s in enumerate(batch):
                x[row, :lengths[s]] = torch.from_numpy(current[starts[s]:starts[s + 1]])
            x = run_layer(config, weights, x)
            for row, s in enumerate(batch):
                current[starts[s]:starts[s + 1]] = x[row, :lengths[s]].numpy()
        depth = layer + 1
        scan[layer] = current[scan_rows]
        if depth in kept:
            stored = np.memmap(folder / f"states/{depth}.f16", np.float16, "w+", shape=(total, config.hidden))
            stored[:] = np.clip(current, -65504, 65504)
            stored.flush()
    final = torch.from_numpy(np.asarray(current))
    teacher = np.concatenate([full_argmax(trunk, final[i:i + 8192]).numpy() for i in range(0, total, 8192)])
    (folder / "current.npy").unlink()
    np.save(folder / "ids.npy", ids)
    np.save(folder / "starts.npy", starts)
    np.save(folder / "answers.npy", is_answer)
    np.save(folder / "held.npy", held)
    np.save(folder / "teacher.npy", teacher)
    np.savez(folder / "scan.npz", rows=scan_rows, fit=len(fit_rows), states=scan)
    meta = {"model": trunk.path.name, "depths": kept, "sequences": len(answers), "tokens": total, "answer_tokens": int(is_answer.sum()),
            "hidden": config.hidden, "layers": layers}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    return meta


class States:
    def __init__(self, folder):
        self.folder = Path(folder)
        if not (self.folder / "meta.json").is_file():
            raise SystemExit(f"{folder} holds no collected states: run `collect` first")
        self.meta = json.loads((self.folder / "meta.json").read_text())
        self.ids, self.starts = np.load(self.folder / "ids.npy"), np.load(self.folder / "starts.npy")
        self.answers, self.held = np.load(self.folder / "answers.npy"), np.load(self.folder / "held.npy")
        self.teacher = np.load(self.folder / "teacher.npy")
        self.chosen = np.unique(self.teacher)
        sequences = np.arange(len(self.starts) - 1)
        self.train_sequences, self.held_sequences = sequences[sequences % HELD_OUT_EVERY != 0], sequences[::HELD_OUT_EVERY]

    def at(self, depth):
        """[tokens, hidden] float16, mapped."""
        path = self.folder / f"states/{depth}.f16"
        if not path.is_file():
            raise SystemExit(f"depth {depth} was not collected (there are {self.meta['depths']})")
        return np.memmap(path, np.float16, "r", shape=(self.meta["tokens"], self.meta["hidden"]))

    def batch(self, depth, sequences):
        """Padded states [n, longest, hidden] and the lengths."""
        lengths = [int(self.starts[s + 1] - self.starts[s]) for s in sequences]
        out = torch.zeros(len(sequences), max(lengths), self.meta["hidden"])
        states = self.at(depth)
        for row, (s, length) in enumerate(zip(sequences, lengths)):
            out[row, :length] = torch.from_numpy(np.array(states[self.starts[s]:self.starts[s + 1]], dtype=np.float32))
        return out, lengths
