"""Greedy answers in float32 PyTorch, many sequences side by side: for models that `helios generate` does not run yet."""

import json
from pathlib import Path

import jinja2
import tokenizers
import torch
from progress import progress
from trunk import rms_norm, rotate, run_layer
from tokenizers import pre_tokenizers

CONTROL = 3  # GGUF's token type

# How text is cut before byte pairs are merged, by tokenizer.ggml.pre.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CUTS = {
    "smollm": lambda: [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "qwen2": lambda: [pre_tokenizers.Split(tokenizers.Regex(QWEN2), "isolated"),
                      pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)],
}


class Text:
    """Prompts to ids, as `helios generate` makes them: one user turn of the model's chat template, or raw."""

    def __init__(self, trunk):
        kind = trunk.field("tokenizer.ggml.pre")
        if kind not in CUTS:
            raise SystemExit(f"{trunk.path}: pre-tokenizer '{kind}' is not known here: make answers with `helios generate`")
        tokens, types = trunk.field("tokenizer.ggml.tokens"), trunk.field("tokenizer.ggml.token_type")
        merges = [tuple(m.split(" ")) for m in trunk.field("tokenizer.ggml.merges")]
        self.tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence(CUTS[kind]())
        self.tokenizer.add_special_tokens([t for t, kind in zip(tokens, types) if kind == CONTROL])
        self.template = jinja2.Template(trunk.field("tokenizer.chat_template"))
        self.ends = {trunk.field("tokenizer.ggml.eos_token_id")} | {i for i, t in enumerate(tokens) if t in ("<|endoftext|>", "<|im_end|>")}

    def ids(self, prompt, raw):
        if not raw:
            prompt = self.template.render(messages=[{"role": "user", "content": prompt}], add_generation_prompt=True)
        return self.tokenizer.encode(prompt, add_special_tokens=False).ids


class Cached:
    """Attention of one layer over keys and values that are kept; row b of the batch has lengths[b] of them, one cache row each."""

    def __init__(self, config, batch, length):
        shape = (batch, config.kv_heads, length, config.head_dim)
        self.k, self.v = torch.zeros(shape), torch.zeros(shape)

    def attend(self, lengths, used):
        def run(config, q, k, v):
            batch, _, tokens, dim = q.shape
            at = lengths[:, None] + torch.arange(tokens)  # positions; of padding they are overwritten later
            q, k = rotate(q, at[:, None], config.rope_base), rotate(k, at[:, None], config.rope_base)
            row = torch.arange(batch)[:, None]
            self.k.transpose(1, 2)[row, at], self.v.transpose(1, 2)[row, at] = k.transpose(1, 2), v.transpose(1, 2)
            keys, values = self.k[:, :, :used], self.v[:, :, :used]
            grouped = q.view(batch, config.kv_heads, -1, dim)  # the heads of a group stand in a column
            seen = torch.arange(used) <= at[:, :, None]  # [batch, tokens, used]
            seen = seen[:, None].expand(batch, config.heads // config.kv_heads, tokens, used).reshape(batch, 1, -1, used)
            out = torch.nn.functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=seen)
            return out.view(batch, config.heads, tokens, dim)
        return run

    def keep(self, rows):
        self.k, self.v = self.k[rows], self.v[rows]


@torch.no_grad()
def answer_batch(trunk, layers, prompts, max_tokens, ends):
    """Lists of ids to their greedy continuations; an end token is kept as the last id."""
    lengths = torch.tensor([len(p) for p in prompts])
    caches = [Cached(trunk.config, len(prompts), int(lengths.max()) + max_tokens) for _ in layers]
    ids = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, :len(prompt)] = torch.tensor(prompt)
    answers, alive = [[] for _ in prompts], list(range(len(prompts)))
    used, last = torch.zeros(len(prompts), dtype=torch.long), lengths - 1  # keys so far; the row whose logits count
    for _ in range(max_tokens):
        x = trunk.embedding[ids]
        longest = int(used.max()) + ids.shape[1]
        for weights, cache in zip(layers, caches):
            x = run_layer(trunk.config, weights, x, cache.attend(used, longest))
        x = rms_norm(x[torch.arange(len(alive)), last], trunk.output_norm, trunk.config.epsilon)
        chosen = (x @ trunk.head.T).argmax(-1)
        used = used + last + 1
        for row, token in zip(alive, chosen.tolist()):
            answers[row].append(token)
        goes_on = [i for i, token in enumerate(chosen.tolist()) if token not in ends]
        if not goes_on:
            break
        if len(goes_on) < len(alive):
            for cache in caches:
                cache.keep(goes_on)
            used, chosen, alive = used[goes_on], chosen[goes_on], [alive[i] for i in goes_on]
        ids, last = chosen[:, None], torch.zeros(len(alive), dtype=torch.long)
    return answers


def answer(trunk, prompts, output, max_tokens, streams, most):
    """Appends lines as `helios generate --json` writes them; prompts that the file has already are left out."""
    output = Path(output)
    have = {json.loads(line)["id"] for line in output.read_text(encoding="utf-8").splitlines()} if output.is_file() else set()
    text, layers = Text(trunk), [trunk.layer(i) for i in range(trunk.config.layers)]
    wanted = [(p["id"], text.ids(p["prompt"], p.get("raw", False))) for p in prompts[:most] if p["id"] not in have]
    groups = [sorted(wanted[i:i + 4 * streams], key=lambda item: len(item[1])) for i in range(0, len(wanted), 4 * streams)]
    batches = [group[i:i + streams] for group in groups for i in range(0, len(group), streams)]
    for batch in progress(batches, "batches"):
        ends = text.ends
        answers = answer_batch(trunk, layers, [ids for _, ids in batch], max_tokens, ends)
        with output.open("a", encoding="utf-8") as file:
            for (name, ids), tokens in zip(batch, answers):
                file.write(json.dumps({"id": name, "text": text.tokenizer.decode(tokens), "prompt_ids": ids, "token_ids": tokens}) + "\n")
    return len(wanted)


def encode(trunk, prompts, answers, output):
    """Answers of another model (lines with id and text) in this model's ids: text to learn from where own answers are dear."""
    text, given = Text(trunk), {item["id"]: item["text"] for item in answers}
    with Path(output).open("w", encoding="utf-8") as file:
        for p in prompts:
            if p["id"] not in given:
                continue
            ids, tokens = text.ids(p["prompt"], p.get("raw", False)), text.ids(given[p["id"]], True)
            file.write(json.dumps({"id": p["id"], "text": given[p["id"]], "prompt_ids": ids, "token_ids": tokens}) + "\n")
