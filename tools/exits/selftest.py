"""Every step on tiny random models, in seconds: what is trained improves, goes on where it was cut off, and is read back the same."""

import json
import tempfile
from pathlib import Path

import gguf
import numpy as np
import torch
import train as training
from export import export, q8_0
from gguf.quants import dequantize
from reference import ExitsFile, write_reference
from scan import scan
from states import States, collect, read_answers
from trunk import Trunk

LAYERS, HIDDEN, FEED_FORWARD, HEADS, KV_HEADS = 6, 32, 64, 2, 1
HEAD_DIM = HIDDEN // HEADS
KINDS = {1: "norm", 2: "affine", 3: "block", 4: "lora"}
STEPS = 60


def byte_tokens():
    """The 256 bytes in the printable spelling of byte-level BPE, one merge, an end token."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    spelling = [chr(b) if b in plain else chr(next(other)) for b in range(256)]
    return [*spelling, "th", "<|im_start|>", "<|im_end|>"], [1] * 257 + [3, 3]


def write_model(path, architecture, seed):
    """A random model with matrices in F16."""
    chance = np.random.default_rng(seed)
    tokens, types = byte_tokens()
    w = gguf.GGUFWriter(path, architecture)
    w.add_block_count(LAYERS)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FEED_FORWARD)
    w.add_context_length(256)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2" if architecture == "qwen2" else "smollm")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(["t h"])
    w.add_eos_token_id(len(tokens) - 1)
    w.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")

    def matrix(name, rows, cols, gain=1.0):
        w.add_tensor(name, (chance.standard_normal((rows, cols)) * gain / cols ** 0.5).astype(np.float16))

    def vector(name, size, middle, spread):
        w.add_tensor(name, (middle + spread * chance.standard_normal(size)).astype(np.float32))

    matrix("token_embd.weight", len(tokens), HIDDEN, 3.0)
    for layer in range(LAYERS):
        p = f"blk.{layer}."
        vector(p + "attn_norm.weight", HIDDEN, 1.0, 0.1)
        for name, heads in (("attn_q", HEADS), ("attn_k", KV_HEADS), ("attn_v", KV_HEADS)):
            matrix(f"{p}{name}.weight", heads * HEAD_DIM, HIDDEN)
            if architecture == "qwen2":
                vector(f"{p}{name}.bias", heads * HEAD_DIM, 0.0, 0.2)
        matrix(p + "attn_output.weight", HIDDEN, HIDDEN)
        vector(p + "ffn_norm.weight", HIDDEN, 1.0, 0.1)
        matrix(p + "ffn_gate.weight", FEED_FORWARD, HIDDEN)
        matrix(p + "ffn_up.weight", FEED_FORWARD, HIDDEN)
        matrix(p + "ffn_down.weight", HIDDEN, FEED_FORWARD)
    vector("output_norm.weight", HIDDEN, 1.0, 0.1)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def check(right, what):
    if not right:
        raise SystemExit(f"selftest: {what}")
    print(f"ok: {what}")


def check_q8_0():
    x = np.random.default_rng(3).standard_normal((5, 96)).astype(np.float32)
    x[2, :32] = 0
    back = dequantize(q8_0(x), gguf.GGMLQuantizationType.Q8_0)
    largest = np.abs(x.reshape(5, 3, 32)).max(-1, keepdims=True)
    check((np.abs((back - x).reshape(5, 3, 32)) <= largest / 127 * 0.55).all(), "Q8_0 is within half a step")


def cut_off_at(step):
    """A progress bar that ends the program in the middle."""
    def bar(items, label):
        for done, item in enumerate(items):
            if done == step:
                raise KeyboardInterrupt
            yield item
    return bar


@torch.no_grad()
def loss(head, trunk, states, depth):
    return training.loss_of(head, trunk, states, depth, states.train_sequences, 20, np.random.default_rng(9)).item()


def check_kind(trunk, states, work, depth, kind):
    args = (trunk, states, depth, kind, 4, STEPS, 5e-3)
    extra = {"positions": 16, "log": lambda text: None, "save_every": 20}
    whole = training.ExitHead(trunk, kind, 4)
    if kind != "norm":
        training.fit_adapter(whole, states, depth)
    before = loss(whole, trunk, states, depth)
    head, _ = training.train(*args, work / "whole", **extra)
    after = loss(head, trunk, states, depth)
    check(after < before, f"exit {depth} {kind}: loss {before:.3f} -> {after:.3f}")
    real, training.progress = training.progress, cut_off_at(45)
    try:
        training.train(*args, work / f"exit-{depth}-{kind}", **extra)
    except KeyboardInterrupt:
        pass
    finally:
        training.progress = real
    again, _ = training.train(*args, work / f"exit-{depth}-{kind}", **extra)
    same = all(torch.allclose(a, b, atol=1e-6) for a, b in zip(head.parameters(), again.parameters()))
    check(same, f"exit {depth} {kind}: cut off and gone on gives what one run gives")
    (work / "whole" / "checkpoint.pt").unlink()
    return again


def run_one(architecture, folder, seed):
    model = folder / f"{architecture}.gguf"
    write_model(model, architecture, seed)
    trunk, work = Trunk(model), folder / "work"
    chance = np.random.default_rng(seed)
    lines = [{"prompt_ids": chance.integers(0, 257, 12).tolist(), "token_ids": chance.integers(0, 257, 20).tolist()} for _ in range(64)]
    answers = folder / "answers.jsonl"
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    collect(trunk, read_answers([answers], 64, 100), work, list(KINDS), seed)
    states = States(work)
    scan(trunk, states)
    heads = {depth: check_kind(trunk, states, work, depth, kind) for depth, kind in KINDS.items()}
    exits = folder / f"{architecture}.exits.safetensors"
    export(trunk, work, list(KINDS.items()), "f16", exits, ["tune_exits.py", "selftest"])
    file = ExitsFile(exits)
    for depth, head in heads.items():
        x, _ = states.batch(depth, [0])
        with torch.no_grad():
            ours, read = head(x) @ trunk.head.T, file.logits(trunk, depth, x)
        check((ours - read).abs().max() < 2e-2 * ours.abs().max(), f"exit {depth}: what was written is read back")
    write_reference(trunk, exits, [line["prompt_ids"] for line in lines[:2]], 1, 1000, folder / f"{architecture}.json")


def selftest(keep):
    check_q8_0()
    for seed, architecture in enumerate(("llama", "qwen2"), 1):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            run_one(architecture, folder, seed)
            if keep:
                Path(keep).mkdir(parents=True, exist_ok=True)
                for suffix in (".gguf", ".exits.safetensors", ".json"):
                    (Path(keep) / (architecture + suffix)).write_bytes((folder / (architecture + suffix)).read_bytes())
    print("selftest passed")
