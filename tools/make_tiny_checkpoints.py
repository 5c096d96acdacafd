#!/usr/bin/env python3
"""Tiny random models with the logits that `transformers` gives for them: the proof of each architecture.

    python tools/make_tiny_checkpoints.py test/data/tiny

Needs torch, transformers, safetensors, tokenizers, numpy and gguf; nothing of HELIOS. For each model NAME:

    NAME/                 a Hugging Face folder as save_pretrained writes it
    NAME.gguf             the same weights as llama.cpp's converter would write them (OPT: keys of docs/ARCHITECTURES.md)
    NAME.expected.safetensors
        ids         i32 [T]         the tokens
        logits      f32 [T, vocab]  at full depth
        exits       f32 [L - 1, vocab]  after E = 1..L-1 layers, through the model's norm and head, at the last token

The weights are stored in the folder's type and computed in float32. All numbers come from one seed a model.
"""

import argparse
import json
import pathlib
import shutil

import gguf
import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers

TOKENS = 20
TEXT = "the quick brown fox jumps over the lazy dog and the hen tells the tale in ten inns"
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
            "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def make_tokenizer(bos=None):
    """Byte-level BPE over the printable ASCII, with a few merges: 107 tokens."""
    letters = sorted(set(tokenizers.pre_tokenizers.ByteLevel.alphabet()) & set(map(chr, range(33, 127))) | {"Ġ", "Ċ"})
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("e", "n"), ("l", "l"), ("Ġ", "t"), ("e", "ll")]
    vocab = {t: i for i, t in enumerate(letters + [a + b for a, b in merges])}
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = tokenizers.decoders.ByteLevel()
    tok.add_special_tokens(CONTROL)
    if bos:
        tok.post_processor = tokenizers.processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, tok.token_to_id(bos))])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tok, bos_token=bos or CONTROL[1],
                                                eos_token=CONTROL[0] if not bos else bos)
    fast.chat_template = TEMPLATE
    return fast


def common(tok, vocab):
    return dict(vocab_size=vocab, bos_token_id=tok.bos_token_id, eos_token_id=tok.eos_token_id, pad_token_id=None)


def models():
    """name -> (model class, config, type of the folder's weights, bytes of a shard, BOS)"""
    tok = make_tokenizer()
    opt_tok = make_tokenizer(CONTROL[0])
    n = len(tok)
    t = transformers
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    return {
        # Grouped queries, tied head, sizes that no block divides.
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(
            **common(tok, n), hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=3,
            num_key_value_heads=1, max_position_embeddings=64, tie_word_embeddings=True), f32, "1GB", tok),
        # As many kv heads as heads, a head of its own, Llama 3's RoPE scaling, three files; more rows than tokens.
        "llama3": (t.LlamaForCausalLM, t.LlamaConfig(
            **common(tok, n + 5), hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=256, tie_word_embeddings=False, rms_norm_eps=1e-5,
            rope_theta=500.0, rope_scaling=dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0,
                                                high_freq_factor=4.0, original_max_position_embeddings=64)),
                   bf16, "40KB", tok),
        # Biases everywhere, heads that are wider than the hidden width, linear scaling.
        "llama_bias": (t.LlamaForCausalLM, t.LlamaConfig(
            **common(tok, n), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=24, max_position_embeddings=64, tie_word_embeddings=True, attention_bias=True,
            mlp_bias=True, rope_scaling=dict(rope_type="linear", factor=2.0, rope_theta=10000.0)), f16, "1GB", tok),
        "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(
            **common(tok, n), hidden_size=32, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True, rope_theta=1000000.0),
                  bf16, "1GB", tok),
        "opt": (t.OPTForCausalLM, t.OPTConfig(
            **common(opt_tok, n), hidden_size=32, ffn_dim=64, num_hidden_layers=3, num_attention_heads=4,
            max_position_embeddings=62, word_embed_proj_dim=32), f16, "1GB", opt_tok),
    }


def randomise(model, generator):
    """Weights under which every part matters to the logits: norms and biases are not 1 and 0."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 2:
                gain = 1.0 if "embed" in name else 1.6 / p.shape[1]**0.5
                p.copy_(torch.randn(p.shape, generator=generator) * gain)
            elif "norm" in name and name.endswith("weight"):
                p.copy_(1.0 + 0.3 * torch.randn(p.shape, generator=generator))
            else:
                p.copy_(0.3 * torch.randn(p.shape, generator=generator))


def head_of(model, x):
    if isinstance(model, transformers.OPTForCausalLM):
        return model.lm_head(model.model.decoder.final_layer_norm(x))
    return model.lm_head(model.model.norm(x))


def expected(model, ids):
    residuals = []
    decoder = model.model.decoder if isinstance(model, transformers.OPTForCausalLM) else model.model
    hooks = [layer.register_forward_hook(
        lambda m, i, out: residuals.append(out[0] if isinstance(out, tuple) else out)) for layer in decoder.layers]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
        rows = [r.reshape(-1, r.shape[-1])[-len(ids):] for r in residuals]
        assert torch.allclose(head_of(model, rows[-1]), logits, atol=1e-5), "the last residual is not what leaves"
        exits = torch.stack([head_of(model, r[-1]) for r in rows[:-1]])
    for hook in hooks:
        hook.remove()
    return logits, exits, rows


# GGUF's names within a layer, by Hugging Face's.
LLAMA = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
OPT = {"self_attn_layer_norm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
       "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_output", "final_layer_norm": "ffn_norm",
       "fc1": "ffn_up", "fc2": "ffn_down"}
GLOBAL = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
          "model.decoder.embed_tokens": "token_embd", "model.decoder.embed_positions": "position_embd",
          "model.decoder.final_layer_norm": "output_norm"}


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if ".layers." not in stem:
        return f"{GLOBAL[stem]}.{kind}"
    number, rest = stem.split(".layers.")[1].split(".", 1)
    return f"blk.{number}.{(OPT if 'decoder' in stem else LLAMA)[rest]}.{kind}"


def neighbours(w, heads):
    """Rows (i, i + d/2) of each head side by side, as GGUF's llama has them."""
    d = w.shape[0] // heads
    return w.reshape(heads, 2, d // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write_gguf(path, model, dtype, tok):
    c = model.config
    arch = {"llama": "llama", "qwen2": "qwen2", "opt": "opt"}[c.model_type]
    w = gguf.GGUFWriter(path, arch)
    w.add_name(path.stem)
    w.add_block_count(c.num_hidden_layers)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_feed_forward_length(getattr(c, "ffn_dim", None) or c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    if arch == "opt":
        w.add_layer_norm_eps(1e-5)
        w.add_uint32("opt.position_offset", 2)
    else:
        w.add_head_count_kv(c.num_key_value_heads)
        w.add_layer_norm_rms_eps(c.rms_norm_eps)
        w.add_rope_freq_base(c.rope_parameters["rope_theta"])
        head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        w.add_key_length(head_dim)
        w.add_value_length(head_dim)
        w.add_rope_dimension_count(head_dim)
        kind = c.rope_parameters["rope_type"]
        if kind == "linear":
            w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            w.add_rope_scaling_factor(c.rope_parameters["factor"])
        elif kind == "llama3":
            plain = c.rope_parameters["rope_theta"]**(-torch.arange(0, head_dim, 2).float() / head_dim)
            w.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq).numpy().astype(np.float32))
    vocab = tok.get_vocab()
    by_id = sorted(vocab, key=vocab.get) + [f"[PAD{i}]" for i in range(len(vocab), c.vocab_size)]
    kinds = [3 if t in CONTROL else 5 if t.startswith("[PAD") else 1 for t in by_id]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(by_id)
    w.add_token_types(kinds)
    w.add_token_merges([" ".join(m) if isinstance(m, list) else m
                        for m in json.loads(tok.backend_tokenizer.to_str())["model"]["merges"]])
    w.add_bos_token_id(tok.bos_token_id)
    w.add_eos_token_id(tok.eos_token_id)
    w.add_chat_template(TEMPLATE)
    quant = {torch.float32: gguf.GGMLQuantizationType.F32, torch.float16: gguf.GGMLQuantizationType.F16,
             torch.bfloat16: gguf.GGMLQuantizationType.BF16}[dtype]
    for name, p in model.state_dict().items():
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        values = p.float().numpy()
        if arch == "llama" and (".q_proj." in name or ".k_proj." in name):
            values = neighbours(values, c.num_attention_heads if ".q_proj." in name else c.num_key_value_heads)
        kind = quant if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        w.add_tensor(gguf_name(name), gguf.quants.quantize(np.ascontiguousarray(values), kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def write_exits(folder, model, tok, rows, generator):
    """An exit after layer 1 of the OPT model: adapter with bias, norm of its own, shared head. Its logits at every token."""
    hidden = model.config.hidden_size
    adapter = torch.randn(hidden, hidden, generator=generator) / hidden**0.5
    bias, weight = 0.2 * torch.randn(hidden, generator=generator), 1 + 0.2 * torch.randn(hidden, generator=generator)
    norm_bias = 0.2 * torch.randn(hidden, generator=generator)
    state = model.state_dict()
    norms = [state[f"model.decoder.layers.{i}.{n}.weight"] for i in range(model.config.num_hidden_layers)
             for n in ("self_attn_layer_norm", "final_layer_norm")] + [state["model.decoder.final_layer_norm.weight"]]
    vocab = tok.get_vocab()
    metadata = {"layers": str(model.config.num_hidden_layers), "hidden": str(hidden), "vocab": str(model.config.vocab_size),
                "vocab_hash": fnv(b"".join(t.encode() + b"\0" for t in sorted(vocab, key=vocab.get))),
                "norms_hash": fnv(b"".join(n.float().numpy().tobytes() for n in norms)), "exits.1.threshold": "0.7"}
    safetensors.torch.save_file(
        {"exits.1.adapter.weight": adapter, "exits.1.adapter.bias": bias, "exits.1.norm.weight": weight,
         "exits.1.norm.bias": norm_bias}, folder.parent / f"{folder.name}.exits.safetensors", metadata)
    y = torch.nn.functional.layer_norm(rows[0] @ adapter.T + bias, (hidden,), weight, norm_bias, 1e-5)
    return (y @ model.lm_head.weight.T).detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    root = parser.parse_args().folder
    root.mkdir(parents=True, exist_ok=True)
    for seed, (name, (kind, config, dtype, shard, tok)) in enumerate(models().items()):
        generator = torch.Generator().manual_seed(1000 + seed)
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        torch.manual_seed(0)
        model = kind(config).eval()
        randomise(model, generator)
        model = model.to(dtype)
        model.generation_config = transformers.GenerationConfig(
            bos_token_id=tok.bos_token_id, eos_token_id=[tok.eos_token_id, tok.get_vocab()[CONTROL[2]]], do_sample=True,
            temperature=0.6, top_p=0.9)
        model.save_pretrained(folder, max_shard_size=shard)
        tok.save_pretrained(folder)
        model = kind.from_pretrained(folder, dtype=torch.float32).eval()
        ids = tok(TEXT, add_special_tokens=True)["input_ids"][:TOKENS]
        logits, exits, rows = expected(model, ids)
        tensors = {"ids": torch.tensor(ids, dtype=torch.int32), "logits": logits, "exits": exits}
        write_gguf(root / f"{name}.gguf", model, dtype, tok)
        if name == "opt":
            tensors["head"] = write_exits(folder, model, tok, rows, generator)
        safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()}, root / f"{name}.expected.safetensors")
        print(f"{name}: {sum(f.stat().st_size for f in folder.iterdir())} bytes, {len(ids)} tokens, "
              f"logits in [{logits.min():.2f}, {logits.max():.2f}]")


if __name__ == "__main__":
    main()
