#!/usr/bin/env python3
"""Makes the reference checkpoints of this folder: tiny seeded models, run by transformers in float32 on the CPU.

    make.py [NAME ...] [--out DIR]
    make.py train/NAME ... [--out DIR]
    make.py --validate DIR

Needs torch, transformers 5.23, peft, numpy and gguf 0.19.0. Each function under `MODELS` describes one model;
everything else is shared: weights that F16 and BF16 both hold exactly, the GGUF as llama.cpp's converter names its keys
and tensors, the logits and hidden states, the greedy continuation, and how far the logits move when a feature is left
out. Seeds are tried from the model's first one until the router's choices and the greedy ones are clear.

Each entry of `TRAININGS` is a folder of `train`: gradients that `training.py` computes in float64 with the weights of a
model's F16 file. `--validate` compares this method with a folder of the same form that others made with qwen3.
"""

import argparse
import copy
import dataclasses
import json
import pathlib
import typing

import gguf
import numpy as np
import torch
import training
import transformers
from gguf import GGMLQuantizationType as Type
from runs import PREFIX, greedy, hidden, logits, logits_f64, router_margin
from training import ATTENTION, Training

ROUTER_MARGIN, GREEDY_MARGIN = 2e-4, 2e-2
PROMPT = "fn the_hat(n: u8) {\n    // in the café, naïve 你好 🚀\n    n + 1\n}\nThen the cat sat on 3.14 mats."


@dataclasses.dataclass
class Golden:
    """One reference model. `build(config)` makes its transformers model from `config`, a dictionary."""

    arch: gguf.MODEL_ARCH
    config: dict
    build: typing.Callable
    keys: typing.Callable  # writes the architecture's own metadata: (writer, config) -> None
    tokenizer: typing.Callable
    # What must show in the logits: label -> (changes of the config, change of the model or None).
    without: dict
    kv_heads: typing.Callable = lambda config: config.num_key_value_heads  # a number, or a list by layer
    extra: typing.Callable = lambda config: {}  # tensors of the file that are no parameters: name -> float32 values
    quantized: bool = False
    unit_offset: bool = False  # norms are stored as 1 + w
    unscaled: bool = False  # attention scores are not divided: the q/k norms keep them small
    embedding: float = 0.4  # deviation of the embedding and of the head
    first_seed: int = 1


# Tokenizers: as plain as the formats allow, so that ids can be checked by hand.


class QwenTokenizer:
    """Byte-level BPE with eleven merges, then the three control tokens."""

    MERGES = ["Ġ Ġ", "ĠĠ ĠĠ", "Ġ t", "h e", "Ġt he", "i n", "a t", "Ġ n", "Ġ o", "Ġo n", "Ġ c"]
    SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    SPLIT = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    TEMPLATE = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )

    def __init__(self):
        from tokenizers.pre_tokenizers import ByteLevel

        self.tokens = sorted(ByteLevel.alphabet(), key=ord) + [m.replace(" ", "") for m in self.MERGES]
        self.tokens += [f"unused{i}" for i in range(288 - len(self.tokens) - len(self.SPECIAL))] + self.SPECIAL

    def fast(self):
        """The tokenizer of the library tokenizers."""
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

        merges = [tuple(m.split()) for m in self.MERGES]
        bpe = Tokenizer(models.BPE({t: i for i, t in enumerate(self.tokens)}, merges))
        split = pre_tokenizers.Split(Regex(self.SPLIT), "isolated")
        bpe.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        bpe.decoder = decoders.ByteLevel()
        return bpe

    def encode(self, text):
        return self.fast().encode(text).ids

    def write(self, out):
        count = len(self.tokens)
        out.add_tokenizer_model("gpt2")
        out.add_tokenizer_pre("qwen2")
        out.add_token_list(self.tokens)
        out.add_token_types([3 if t in self.SPECIAL else 5 if t.startswith("unused") else 1 for t in self.tokens])
        out.add_token_merges(self.MERGES)
        out.add_eos_token_id(count - 1)
        out.add_pad_token_id(count - 3)
        out.add_add_bos_token(False)
        out.add_chat_template(self.TEMPLATE)


class GemmaTokenizer:
    """Single characters, and bytes for all others; no piece is longer."""

    SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    TEMPLATE = (
        "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{{ m['content'] }}<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
    )

    def __init__(self):
        self.tokens = self.SPECIAL + [f"<0x{b:02X}>" for b in range(256)]
        self.tokens += ["\u2581"] + [chr(c) for c in range(33, 127)]
        self.tokens += [f"<unused{i}>" for i in range(384 - len(self.tokens))]

    def encode(self, text):
        ids = {t: i for i, t in enumerate(self.tokens)}
        pieces = ([c] if c in ids else [f"<0x{b:02X}>" for b in c.encode()] for c in text.replace(" ", "\u2581"))
        return [2] + [ids[piece] for char in pieces for piece in char]

    def kind(self, token):
        byte = len(token) == 6 and token.startswith("<0x")
        return 3 if token in self.SPECIAL else 6 if byte else 5 if token.startswith("<unused") else 1

    def write(self, out):
        kinds = [self.kind(t) for t in self.tokens]
        out.add_tokenizer_model("llama")
        out.add_tokenizer_pre("default")
        out.add_token_list(self.tokens)
        out.add_token_scores([-float(i) if kind == 1 else -1000.0 for i, kind in enumerate(kinds)])
        out.add_token_types(kinds)
        out.add_bos_token_id(2)
        out.add_eos_token_id(1)
        out.add_unk_token_id(3)
        out.add_pad_token_id(0)
        out.add_chat_template(self.TEMPLATE)
        out.add_add_space_prefix(False)


class Gemma4Tokenizer(GemmaTokenizer):
    """Three merges over single characters, and bytes for all others."""

    SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>"]
    MERGES = ["\u2581 t", "h e", "\u2581t he"]
    TEMPLATE = (
        "{{ bos_token }}{% for m in messages %}<|turn>{{ m['role'] }}\n{{ m['content'] }}<turn|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|turn>model\n{% endif %}"
    )

    def __init__(self):
        super().__init__()
        first = next(i for i, t in enumerate(self.tokens) if t.startswith("<unused"))
        self.tokens[first : first + len(self.MERGES)] = [m.replace(" ", "") for m in self.MERGES]

    def encode(self, text):
        from tokenizers import Tokenizer, models

        merges = [tuple(m.split()) for m in self.MERGES]
        vocabulary = {t: i for i, t in enumerate(self.tokens)}
        bpe = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>"))
        return [2] + bpe.encode(text.replace(" ", "\u2581")).ids

    def write(self, out):
        out.add_tokenizer_model("gemma4")
        out.add_token_list(self.tokens)
        out.add_token_scores([-1000.0] * len(self.tokens))
        out.add_token_types([self.kind(t) for t in self.tokens])
        out.add_token_merges(self.MERGES)
        out.add_bos_token_id(2)
        out.add_eos_token_id(1)
        out.add_unk_token_id(3)
        out.add_pad_token_id(0)
        out.add_add_bos_token(True)
        out.add_chat_template(self.TEMPLATE)
        out.add_add_space_prefix(False)


# Weights.


def exact(values):
    """The nearest values that BF16 holds and F16 holds as normal numbers."""
    values = torch.as_tensor(values, dtype=torch.float32).to(torch.bfloat16).to(torch.float32)
    return torch.where(values.abs() < 2.0**-14, 0.0, values)


def weights(model):
    """(name, values) of every parameter, and of gemma4's factors by layer, which are buffers."""
    yield from model.named_parameters()
    yield from ((name, values) for name, values in model.named_buffers() if name.endswith("layer_scalar"))


def fill(model, golden, seed):
    """Draws every weight, by name in alphabetical order."""
    draw = np.random.default_rng(seed)
    for name, p in sorted(weights(model)):
        shape = tuple(p.shape)
        if "norm" in name and p.ndim == 1:
            steps = draw.integers(-64, 65, shape) / 128  # 1 + w is exact too
            values = steps if golden.unit_offset else 1 + steps
            if golden.unscaled and name.endswith(("q_norm.weight", "k_norm.weight")):
                values = values / 2
        elif name.endswith(".bias"):
            values = draw.normal(0, 0.5, shape)
        elif "embed_tokens" in name or "lm_head" in name:
            values = draw.normal(0, golden.embedding, shape)
        elif p.ndim == 1:
            values = 1 + draw.integers(-64, 65, shape) / 128
        elif name.endswith("modality_router.weight"):  # its input is divided by the width
            values = draw.normal(0, 0.6 * shape[-1] ** 0.5, shape)
        elif name.endswith("_coefs.weight"):  # AltUp's, small enough that the streams stay near each other
            values = draw.normal(0, 0.3, shape)
        elif name.endswith("router.proj.weight"):  # its input is divided by the root of the width
            values = draw.normal(0, 1.2, shape)
        elif name.endswith("gate.weight"):  # a router, or the shared expert's gate
            values = draw.normal(0, 2 / shape[-1] ** 0.5, shape)
        else:
            values = draw.normal(0, 1.3 / shape[-1] ** 0.5, shape)
        p.data.copy_(exact(values))


# What llama.cpp's converter calls gemma4's factors of the router and of its experts.
SCALES = {"router.scale": "router.proj.scale", "router.per_expert_scale": "experts.down_proj.scale"}


def stack(model, first):
    """The matrices of a list, which the file has as one tensor: gemma3n's projections to and from its other streams."""
    return [model.get_parameter(first.replace(".0.", f".{i}.")).data for i in range(model.config.altup_num_inputs - 1)]


def tensors(model, golden):
    """(name in GGUF, values as stored, the parameters' own memory) of every weight; the experts' gate and up of Qwen
    come apart."""
    config = model.config
    names = gguf.get_tensor_name_map(golden.arch, config.num_hidden_layers)
    for name, p in weights(model):
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if ".0." in name and name.startswith("model.altup"):
            parts = [(name.replace(".0.", "."), stack(model, name))]
        elif ".altup_" in name:
            continue
        elif name.endswith("mlp.experts.gate_up_proj"):
            half = p.shape[1] // 2
            parts = [(name.replace("gate_up", "gate"), [p.data[:, :half]]), (name.replace("gate_up", "up"), [p.data[:, half:]])]
        else:
            suffix = next((suffix for suffix in SCALES if name.endswith(suffix)), "")
            parts = [(name.removesuffix(suffix) + SCALES.get(suffix, ""), [p.data])]
        for name, memory in parts:
            name = name if name.endswith((".weight", ".bias", ".scale")) else name + ".weight"
            stored = names.get_name(name, try_suffixes=(".weight", ".bias", ".scale"))
            assert stored, name
            yield stored, (torch.stack(memory) if len(memory) > 1 else memory[0]) + offset(golden, name), memory


def offset(golden, name):
    """What the file adds to a weight."""
    return 1 if golden.unit_offset and "norm" in name else 0


def restore(golden, name, memory, values):
    """Puts a stored tensor back into the parameters that it came from."""
    values = torch.from_numpy(values.copy()) - offset(golden, name)
    for target, part in zip(memory, values.unbind() if len(memory) > 1 else [values]):
        target.copy_(part.reshape(target.shape))


def load(path, golden):
    """The model with the weights of a file."""
    model = built(golden, golden.config)
    stored = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    for name, _, memory in tensors(model, golden):
        restore(golden, name, memory, stored[name])
    return model


def stays_f32(name, values):
    exempt = ("ffn_gate_inp", "altup_correct_coef", "altup_predict_coef")
    return values.ndim == 1 or not name.endswith(".weight") or name.endswith("_norm.weight") or any(e in name for e in exempt)


# The file.


def write(path, golden, model, ty):
    """Writes the model with its matrices as `ty`; returns how many tensors have which type, and the model that a
    reader of the file gets."""
    config, read, types = model.config, copy.deepcopy(model), {}
    name = gguf.MODEL_ARCH_NAMES[golden.arch]
    out = gguf.GGUFWriter(path, name)
    out.add_type("model")
    out.add_name(path.parent.name)
    out.add_block_count(config.num_hidden_layers)
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(golden.kv_heads(config))
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    golden.keys(out, config)
    out.add_file_type({Type.F32: 0, Type.F16: 1, Type.Q8_0: 7}[ty])
    golden.tokenizer().write(out)
    out.add_quantization_version(2)
    for (stored, values, _), (_, _, memory) in zip(tensors(model, golden), tensors(read, golden)):
        kind = Type.F32 if stays_f32(stored, values) else ty
        blocks = gguf.quants.quantize(values.contiguous().numpy(), kind)
        if kind != Type.F32:
            restore(golden, stored, memory, gguf.quants.dequantize(blocks, kind))
        types[kind.name] = types.get(kind.name, 0) + 1
        out.add_tensor(stored, blocks, raw_dtype=kind)
    for stored, values in golden.extra(config).items():
        types[Type.F32.name] += 1
        out.add_tensor(stored, np.array(values, dtype=np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return types, read


def rope_keys(out, parameters):
    """The scaling of one set of rope parameters."""
    if parameters["rope_type"] != "default":
        out.add_rope_scaling_type(gguf.RopeScalingType(parameters["rope_type"]))
        out.add_rope_scaling_factor(parameters["factor"])
    if parameters["rope_type"] == "yarn":
        out.add_rope_scaling_orig_ctx_len(parameters["original_max_position_embeddings"])
        if "beta_fast" in parameters:
            out.add_rope_scaling_yarn_beta_fast(parameters["beta_fast"])
            out.add_rope_scaling_yarn_beta_slow(parameters["beta_slow"])
    out.add_rope_freq_base(parameters["rope_theta"])


def built(golden, config):
    """The model with random weights of transformers' own, its attention and experts computed the plainest way."""
    model = golden.build(copy.deepcopy(config)).eval()
    model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    return model


def find(golden, ids):
    """The first seed whose model chooses clearly: (seed, model, greedy ids, their margin)."""
    for seed in range(golden.first_seed, golden.first_seed + 1000):
        model = built(golden, golden.config)
        fill(model, golden, seed)
        margin = router_margin(model, ids)
        if margin is not None and margin < ROUTER_MARGIN:
            continue
        found, gap = greedy(model, ids)
        if gap >= GREEDY_MARGIN and len(set(found)) > 3:
            return seed, model, found, gap
    raise SystemExit("no seed makes clear choices")


def moved_without(golden, model, ids, reference):
    """How far the logits move, at most, with each feature left out or done wrong."""
    moved = {}
    for label, (changes, change) in golden.without.items():
        other = built(golden, {**golden.config, **changes})
        other.load_state_dict(model.state_dict())
        if change:
            with torch.no_grad():
                change(other)
        moved[label] = float(np.abs(logits(other, ids) - reference).max())
    return moved


def make(name, golden, root):
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    ids = golden.tokenizer().encode(PROMPT)
    seed, model, found, gap = find(golden, ids)
    reference = logits(model, ids)
    np.save(folder / "hf_logits_f32.npy", reference)
    np.save(folder / "hf_hidden_f32.npy", hidden(model, ids))
    files = []
    for ty in [Type.F16, Type.Q8_0][: 1 + golden.quantized]:
        path = folder / f"{name}-{ty.name}.gguf"
        types, read = write(path, golden, model, ty)
        got, wide = logits(read, ids), logits_f64(read, ids)
        stored = "hf_logits_f32.npy" if ty == Type.F16 else f"hf_deq_logits_{ty.name}.npy"
        if ty == Type.F16:
            assert (got == reference).all(), "F16 does not hold the weights"
        else:
            np.save(folder / stored, got)
        assert wide.dtype == np.float64, "float64 was lost on the way"
        file = {"gguf": path.name, "logits": stored, "tensor_types": types, "float64_max_abs": float(np.abs(wide - got).max())}
        margin = router_margin(read, ids)
        if margin is not None:
            assert margin >= ROUTER_MARGIN / 2, f"{path.name}: router margin {margin}"
            file["min_router_margin"] = margin
        files.append(file)
    meta = {
        "prompt": PROMPT,
        "ids": ids,
        "greedy_prefix_len": PREFIX,
        "greedy": found,
        "greedy_min_margin": gap,
        "files": files,
        "seed": seed,
        "made_with": {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]},
        "logits_std": float(reference.std()),
        "moved_without": moved_without(golden, model, ids, reference),
    }
    (folder / "tokens.json").write_text(json.dumps(ids) + "\n")
    (folder / "meta.json").write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n")
    print(f"{name}: seed {seed}, {len(ids)} tokens, std {meta['logits_std']:.2f}, greedy margin {gap:.3f}, {found}")
    for file in files:
        print("  ", file)
    for label, far in meta["moved_without"].items():
        print(f"   {far:9.3f} without {label}")


# The models.


def ones(suffix):
    """A change that sets the weights whose names end so to one."""

    def change(model):
        for name, p in weights(model):
            if name.endswith(suffix):
                p.fill_(1)

    return change


def zeros(suffix):
    """A change that sets the weights whose names end so to zero."""

    def change(model):
        for name, p in model.named_parameters():
            if name.endswith(suffix):
                p.fill_(0)

    return change


def next_expert(model):
    """Every expert's work done by its neighbour."""
    for name, p in model.named_parameters():
        if name.endswith("experts.down_proj"):
            p.copy_(p.roll(1, 0))


def expert_keys(out, config):
    out.add_feed_forward_length(config.intermediate_size)
    out.add_rope_freq_base(config.rope_parameters["rope_theta"])
    out.add_expert_count(config.num_experts)
    out.add_expert_used_count(config.num_experts_per_tok)
    out.add_expert_feed_forward_length(config.moe_intermediate_size)


def qwen3moe():
    """Routed experts only: the best 3 of 12, weights renormalised; q/k norms; 4 heads of 32 over a width of 64."""

    def keys(out, config):
        expert_keys(out, config)
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)

    return Golden(
        arch=gguf.MODEL_ARCH.QWEN3MOE,
        config=dict(
            vocab_size=288, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=False,
            rope_parameters=dict(rope_type="default", rope_theta=1e6), decoder_sparse_step=1, moe_intermediate_size=32,
            num_experts_per_tok=3, num_experts=12, norm_topk_prob=True,
        ),
        build=lambda c: transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(**c)),
        keys=keys,
        tokenizer=QwenTokenizer,
        without={
            "renormalised weights": (dict(norm_topk_prob=False), None),
            "the third expert": (dict(num_experts_per_tok=2), None),
            "the right experts (neighbours instead)": ({}, next_expert),
            "q/k norm weights": ({}, ones(("q_norm.weight", "k_norm.weight"))),
        },
        quantized=True,
    )


def qwen2moe():
    """The best 4 of 10 experts with weights as they are, and a shared expert behind a sigmoid; biases on q, k and v."""

    def keys(out, config):
        expert_keys(out, config)
        out.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)

    return Golden(
        arch=gguf.MODEL_ARCH.QWEN2MOE,
        config=dict(
            vocab_size=288, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=False,
            rope_parameters=dict(rope_type="default", rope_theta=1e6), decoder_sparse_step=1, moe_intermediate_size=32,
            shared_expert_intermediate_size=96, num_experts_per_tok=4, num_experts=10, norm_topk_prob=False,
        ),
        build=lambda c: transformers.Qwen2MoeForCausalLM(transformers.Qwen2MoeConfig(**c)),
        keys=keys,
        tokenizer=QwenTokenizer,
        without={
            "weights as they are (renormalised instead)": (dict(norm_topk_prob=True), None),
            "the fourth expert": (dict(num_experts_per_tok=3), None),
            "the right experts (neighbours instead)": ({}, next_expert),
            "the shared expert": ({}, zeros("shared_expert.down_proj.weight")),
            "the shared expert's gate (half open instead)": ({}, zeros("shared_expert_gate.weight")),
            "the biases": ({}, zeros(".bias")),
        },
        quantized=True,
    )


def rope(kind, theta, **scaling):
    return dict(rope_type=kind, rope_theta=theta, **scaling)


def rope_variants(yarn):
    """YaRN done wrong in the ways that are near."""
    theta, factor = yarn["rope_theta"], yarn["factor"]
    plain = dict(rope_type="linear", rope_theta=theta, factor=factor)
    return {
        "YaRN": (dict(rope_parameters=rope("default", theta)), None),
        "YaRN (linear instead)": (dict(rope_parameters=plain), None),
        "its factor on the amplitude": (dict(rope_parameters={**yarn, "attention_factor": 1.0}), None),
        "its ramp cut to whole dimensions": (dict(rope_parameters={**yarn, "truncate": False}), None),
    }


def qwen3yarn():
    """qwen3 with YaRN as Qwen's cards give it (factor 4, all else by default), its original context crossed."""
    yarn = rope("yarn", 1e6, factor=4.0, original_max_position_embeddings=32)

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        rope_keys(out, config.rope_parameters)
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)

    return Golden(
        arch=gguf.MODEL_ARCH.QWEN3,
        config=dict(
            vocab_size=288, hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=2,
            num_key_value_heads=1, head_dim=64, max_position_embeddings=128, rms_norm_eps=1e-6, tie_word_embeddings=True,
            rope_parameters=yarn,
        ),
        build=lambda c: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**c)),
        keys=keys,
        tokenizer=QwenTokenizer,
        without=rope_variants(yarn),
    )


def qwen2yarn():
    """qwen2 with YaRN whose ramp starts above the first frequency and whose bounds are in the file."""
    yarn = rope("yarn", 1e4, factor=8.0, original_max_position_embeddings=512, beta_fast=24.0, beta_slow=2.0)

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        rope_keys(out, config.rope_parameters)

    defaults = {k: v for k, v in yarn.items() if not k.startswith("beta")}
    return Golden(
        arch=gguf.MODEL_ARCH.QWEN2,
        config=dict(
            vocab_size=288, hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=2,
            num_key_value_heads=1, max_position_embeddings=4096, rms_norm_eps=1e-6, tie_word_embeddings=False,
            rope_parameters=yarn,
        ),
        build=lambda c: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**c)),
        keys=keys,
        tokenizer=QwenTokenizer,
        without={**rope_variants(yarn), "the file's bounds of the ramp": (dict(rope_parameters=defaults), None)},
    )


def gemma3linear():
    """gemma3 as its sizes from 4B on: the full layer's frequencies divided by 8, the sliding ones' not; window crossed."""
    full, sliding = rope("linear", 1e6, factor=8.0), rope("default", 1e4)

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        rope_keys(out, config.rope_parameters["full_attention"])
        out.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)
        out.add_sliding_window(config.sliding_window)

    def parameters(full, sliding):
        return dict(rope_parameters=dict(full_attention=full, sliding_attention=sliding))

    return Golden(
        arch=gguf.MODEL_ARCH.GEMMA3,
        config=dict(
            vocab_size=384, hidden_size=64, intermediate_size=96, num_hidden_layers=7, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16, max_position_embeddings=1024, sliding_window=12,
            rms_norm_eps=1e-6, tie_word_embeddings=True, **parameters(full, sliding),
        ),
        build=lambda c: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**c)),
        keys=keys,
        tokenizer=GemmaTokenizer,
        unit_offset=True,
        embedding=0.15,
        without={
            "the scaling": (parameters(rope("default", 1e6), sliding), None),
            "the scaling kept off the sliding layers": (parameters(full, rope("linear", 1e4, factor=8.0)), None),
            "the full layer's base": (parameters(rope("linear", 1e4, factor=8.0), sliding), None),
            "the window (one less)": (dict(sliding_window=11), None),
            "the full layer": (dict(layer_types=["sliding_attention"] * 7), None),
        },
    )


def gemma3n():
    """Four AltUp streams, Laurel, per-layer embeddings, activation sparsity, KV sharing with two donors, FF widths by
    layer."""
    sparsity = [0.95, 0.8, 0.0, 0.9, 0.0, 0.0]
    widths = [96, 96, 96, 96, 64, 64]
    normal = torch.distributions.normal.Normal(0, 1)
    multipliers = [normal.icdf(torch.tensor(s)) for s in sparsity]
    unbiased = [normal.cdf(m * (f / (f - 1)) ** 0.5).item() if s else s for m, f, s in zip(multipliers, widths, sparsity)]
    sliding, full = "sliding_attention", "full_attention"

    def earlier_donor(model):
        model.model.layers[3].self_attn.store_full_length_kv = False
        model.model.layers[1].self_attn.store_full_length_kv = True

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        out.add_rope_freq_base(config.rope_parameters[full]["rope_theta"])
        out.add_rope_freq_base_swa(config.rope_parameters[sliding]["rope_theta"])
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)
        out.add_final_logit_softcapping(config.final_logit_softcapping)
        out.add_sliding_window(config.sliding_window)
        out.add_altup_active_idx(config.altup_active_idx)
        out.add_altup_num_inputs(config.altup_num_inputs)
        out.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
        out.add_shared_kv_layers(config.num_kv_shared_layers)
        out.add_activation_sparsity_scale([m.item() for m in multipliers])
        out.add_sliding_window_pattern([t == sliding for t in config.layer_types])

    return Golden(
        arch=gguf.MODEL_ARCH.GEMMA3N,
        config=dict(
            vocab_size=384, vocab_size_per_layer_input=384, hidden_size=64, intermediate_size=widths, num_hidden_layers=6,
            num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=1024, sliding_window=12,
            rms_norm_eps=1e-6, tie_word_embeddings=True, layer_types=[sliding, sliding, full, sliding, full, sliding],
            rope_parameters={full: rope("default", 1e6), sliding: rope("default", 1e4)}, num_kv_shared_layers=2,
            hidden_size_per_layer_input=16, altup_active_idx=0, altup_num_inputs=4, altup_correct_scale=True, laurel_rank=16,
            activation_sparsity_pattern=sparsity, final_logit_softcapping=8.0,
        ),
        build=lambda c: transformers.Gemma3nForCausalLM(transformers.Gemma3nTextConfig(**c)),
        keys=keys,
        tokenizer=GemmaTokenizer,
        embedding=0.15,
        unscaled=True,
        without={
            "AltUp's predictions": ({}, zeros("prediction_coefs.weight")),
            "AltUp's corrections": ({}, zeros("correction_coefs.weight")),
            "AltUp's scale of the corrected stream": (dict(altup_correct_scale=False), None),
            "the other streams' way out": ({}, zeros("altup_unembed_projections.1.weight")),
            "Laurel": ({}, zeros("post_laurel_norm.weight")),
            "per-layer embeddings": ({}, zeros("embed_tokens_per_layer.weight")),
            "activation sparsity": (dict(activation_sparsity_pattern=[0.0] * 6), None),
            "the biased deviation (unbiased instead)": (dict(activation_sparsity_pattern=unbiased), None),
            "each layer's own sparsity (the first's instead)": (
                dict(activation_sparsity_pattern=[0.95 if s else 0.0 for s in sparsity]), None,
            ),
            "the last layer's donor (an earlier one instead)": ({}, earlier_donor),
            "the window (one less)": (dict(sliding_window=11), None),
            "the sliding layers' base": (dict(rope_parameters={full: rope("default", 1e6), sliding: rope("default", 1e6)}), None),
            "the softcap": (dict(final_logit_softcapping=1e6), None),
        },
    )


def gemma2caps():
    """One key head for three queries, a width that is no power of two, soft caps so low that they bend most scores."""

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)
        out.add_attn_logit_softcapping(config.attn_logit_softcapping)
        out.add_final_logit_softcapping(config.final_logit_softcapping)
        out.add_sliding_window(config.sliding_window)

    return Golden(
        arch=gguf.MODEL_ARCH.GEMMA2,
        config=dict(
            vocab_size=384, hidden_size=96, intermediate_size=160, num_hidden_layers=4, num_attention_heads=3,
            num_key_value_heads=1, head_dim=32, query_pre_attn_scalar=32, max_position_embeddings=1024, sliding_window=10,
            rms_norm_eps=1e-6, tie_word_embeddings=True, attn_logit_softcapping=3.0, final_logit_softcapping=3.0,
            rope_parameters=rope("default", 1e4),
        ),
        build=lambda c: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**c)),
        keys=keys,
        tokenizer=GemmaTokenizer,
        unit_offset=True,
        embedding=0.08,
        without={
            "the cap of scores": (dict(attn_logit_softcapping=None), None),
            "the cap of logits": (dict(final_logit_softcapping=None), None),
            "the window (one less)": (dict(sliding_window=9), None),
            "the full layers": (dict(layer_types=["sliding_attention"] * 4), None),
            "the sliding layers' place (full first instead)": (
                dict(layer_types=["full_attention", "sliding_attention"] * 2), None,
            ),
        },
    )


def gemma4(**config):
    """The config that both models of Gemma 4 share: keys that are values too, in full layers with a length and a number of
    heads of their own."""
    full, sliding = rope("proportional", 1e6, partial_rotary_factor=0.25), rope("default", 1e4)
    return dict(
        vocab_size=384, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, global_head_dim=32,
        num_global_key_value_heads=1, attention_k_eq_v=True, max_position_embeddings=1024, sliding_window=12, rms_norm_eps=1e-6,
        tie_word_embeddings=True, rope_parameters=dict(full_attention=full, sliding_attention=sliding),
        hidden_size_per_layer_input=0, vocab_size_per_layer_input=384, **config,
    )


def gemma4_keys(out, config):
    full, sliding = "full_attention", "sliding_attention"
    of = {kind: config.per_layer_config[kind].head_dim for kind in (full, sliding)}
    out.add_feed_forward_length(config.intermediate_size)
    out.add_rope_freq_base(config.rope_parameters[full]["rope_theta"])
    out.add_rope_freq_base_swa(config.rope_parameters[sliding]["rope_theta"])
    out.add_key_length(of[full])
    out.add_value_length(of[full])
    out.add_key_length_swa(of[sliding])
    out.add_value_length_swa(of[sliding])
    out.add_rope_dimension_count(of[full])
    out.add_rope_dimension_count_swa(of[sliding])
    out.add_final_logit_softcapping(config.final_logit_softcapping)
    out.add_sliding_window(config.sliding_window)
    out.add_sliding_window_pattern([t == sliding for t in config.layer_types])
    out.add_shared_kv_layers(config.num_kv_shared_layers)
    out.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)


def gemma4_model(config, keys, **more):
    """What both models of Gemma 4 share besides the config."""

    def kv_heads(config):
        return [config.per_layer_config[l].num_key_value_heads for l in range(config.num_hidden_layers)]

    def divisors(config):
        """Pairs of a full layer's head that turn, and pairs that do not."""
        pairs = config.per_layer_config["full_attention"].head_dim // 2
        turned = int(config.rope_parameters["full_attention"]["partial_rotary_factor"] * pairs)
        return {"rope_freqs.weight": [1.0] * turned + [1e30] * (pairs - turned)}

    return Golden(
        arch=gguf.MODEL_ARCH.GEMMA4,
        config=config,
        build=lambda c: transformers.Gemma4ForCausalLM(transformers.Gemma4TextConfig(**c)),
        keys=keys,
        tokenizer=Gemma4Tokenizer,
        kv_heads=kv_heads,
        extra=divisors,
        unscaled=True,
        embedding=0.1,
        **more,
    )


def unnormed_values(model):
    for layer in model.model.layers:
        if not layer.self_attn.is_kv_shared_layer:
            layer.self_attn.v_norm = torch.nn.Identity()


def gemma4keys():
    """Gemma 4 without experts: the last two layers use the keys and values of layers 3 and 4; in layer 4 these are the
    same product."""
    sliding, full = "sliding_attention", "full_attention"

    def earlier_donor(model):
        model.model.layers[4].self_attn.store_full_length_kv = False
        model.model.layers[2].self_attn.store_full_length_kv = True

    config = gemma4(
        intermediate_size=96, num_hidden_layers=7, layer_types=[sliding, sliding, full, sliding, full, sliding, full],
        num_kv_shared_layers=2, final_logit_softcapping=5.0,
        # transformers cuts rows off before layers without keys, and fails where there are no embeddings by layer to cut.
        output_hidden_states=True,
    )
    whole = {**config["rope_parameters"], full: rope("default", 1e6)}
    return gemma4_model(
        config,
        gemma4_keys,
        without={
            "the window (one less)": (dict(sliding_window=11), None),
            "the softcap": (dict(final_logit_softcapping=None), None),
            "the part of a head that does not turn": (dict(rope_parameters=whole), None),
            "the last layer's donor (an earlier one instead)": ({}, earlier_donor),
            "the norm of values": ({}, unnormed_values),
            "q/k norm weights": ({}, ones(("q_norm.weight", "k_norm.weight"))),
            "the factors by layer": ({}, ones("layer_scalar")),
        },
    )


def gemma4experts():
    """Gemma 4 with experts: the best 2 of 6 beside a dense network, a factor for each expert."""
    sliding, full = "sliding_attention", "full_attention"

    def keys(out, config):
        gemma4_keys(out, config)
        out.add_expert_count(config.num_experts)
        out.add_expert_used_count(config.top_k_experts)
        out.add_expert_feed_forward_length(config.moe_intermediate_size)

    config = gemma4(
        intermediate_size=96, num_hidden_layers=3, layer_types=[sliding, sliding, full], enable_moe_block=True,
        num_experts=6, top_k_experts=2, moe_intermediate_size=32, final_logit_softcapping=5.0,
    )
    return gemma4_model(
        config,
        keys,
        without={
            "the second expert": (dict(top_k_experts=1), None),
            "the right experts (neighbours instead)": ({}, next_expert),
            "the factor of each expert": ({}, ones("per_expert_scale")),
            "the router's scale": ({}, ones("router.scale")),
            "the experts": ({}, zeros("experts.down_proj")),
            "the dense network": ({}, zeros("mlp.down_proj.weight")),
            "the window (one less)": (dict(sliding_window=11), None),
            "the softcap": (dict(final_logit_softcapping=None), None),
        },
    )


def qwen3tied():
    """qwen3 whose heads together are wider than the model, with a tied head: the model of which all parameters are
    trained."""

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        out.add_rope_freq_base(config.rope_parameters["rope_theta"])
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)

    return Golden(
        arch=gguf.MODEL_ARCH.QWEN3,
        config=dict(
            vocab_size=288, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=True,
            rope_parameters=rope("default", 1e6),
        ),
        build=lambda c: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**c)),
        keys=keys,
        tokenizer=QwenTokenizer,
        without={
            "q/k norm weights": ({}, ones(("q_norm.weight", "k_norm.weight"))),
            "the base": (dict(rope_parameters=rope("default", 1e4)), None),
        },
    )


MODELS = [
    qwen3moe, qwen2moe, qwen3yarn, qwen2yarn, gemma3linear, gemma3n, gemma2caps, gemma4keys, gemma4experts, qwen3tied,
]

# The folders of `train`. Experts get no adapter.
TRAININGS = {
    "gemma2caps": Training("gemma2caps"),
    "gemma3n": Training("gemma3n"),
    "gemma4experts": Training("gemma4experts"),
    "gemma4keys": Training("gemma4keys"),
    "qwen2moe": Training("qwen2moe", targets=ATTENTION),
    "qwen3moe": Training("qwen3moe", targets=ATTENTION, trajectories=True),
    "qwen3tied-all": Training("qwen3tied", rank=0, trajectories=True),
    "qwen3tied-rslora": Training("qwen3tied", rank=6, alpha=5, rank_stabilized=True, weighted=True, trajectories=True),
}


def train(name, root):
    """Makes one folder of `train` with the weights of a model's file."""
    chosen = TRAININGS[name]
    golden = next(model for model in MODELS if model.__name__ == chosen.base)()
    ids = golden.tokenizer().encode(PROMPT)
    data = training.batch(ids, [i for i in ids[:1] if i == 2 and "gemma" in chosen.base], chosen.weighted)
    training.make(name, chosen, load(root / chosen.base / f"{chosen.base}-F16.gguf", golden), data, root / "train")


def of_qwen3(path):
    """A model of qwen3 that another file describes, with the file's weights."""
    file = gguf.GGUFReader(path)
    key = {name.removeprefix("qwen3."): field.contents() for name, field in file.fields.items()}
    assert key["general.architecture"] == "qwen3", "only models of qwen3 are compared"
    config = dict(
        vocab_size=len(key["tokenizer.ggml.tokens"]), hidden_size=key["embedding_length"], head_dim=key["attention.key_length"],
        intermediate_size=key["feed_forward_length"], num_hidden_layers=key["block_count"],
        num_attention_heads=key["attention.head_count"], num_key_value_heads=key["attention.head_count_kv"],
        max_position_embeddings=key["context_length"], rms_norm_eps=round(key["attention.layer_norm_rms_epsilon"], 9),
        tie_word_embeddings=all(t.name != "output.weight" for t in file.tensors),
        rope_parameters=rope("default", key["rope.freq_base"]),
    )
    return load(path, dataclasses.replace(qwen3tied(), config=config))


def of_gemma4(path):
    """A model of Gemma 4 with embeddings by layer that another file describes, with the file's weights."""
    file = gguf.GGUFReader(path)
    key = {name.removeprefix("gemma4."): field.contents() for name, field in file.fields.items()}
    assert key["general.architecture"] == "gemma4" and "expert_count" not in key, "only models without experts are compared"
    full, sliding, widths = "full_attention", "sliding_attention", key["feed_forward_length"]
    turned = next(t.data for t in file.tensors if t.name == "rope_freqs.weight") == 1
    config = gemma4(
        intermediate_size=min(widths), use_double_wide_mlp=max(widths) > min(widths), num_hidden_layers=key["block_count"],
        layer_types=[sliding if slides else full for slides in key["attention.sliding_window_pattern"]],
        num_kv_shared_layers=key["attention.shared_kv_layers"], final_logit_softcapping=key["final_logit_softcapping"],
    )
    vocabulary, wide = len(key["tokenizer.ggml.tokens"]), rope("proportional", key["rope.freq_base"], partial_rotary_factor=float(turned.mean()))
    config |= dict(
        vocab_size=vocabulary, vocab_size_per_layer_input=vocabulary, hidden_size=key["embedding_length"],
        num_attention_heads=key["attention.head_count"], num_key_value_heads=key["attention.head_count_kv"],
        num_global_key_value_heads=key["attention.head_count_kv"], head_dim=key["attention.key_length_swa"],
        global_head_dim=key["attention.key_length"], attention_k_eq_v=False, max_position_embeddings=key["context_length"],
        sliding_window=key["attention.sliding_window"], hidden_size_per_layer_input=key["embedding_length_per_layer_input"],
        rope_parameters=dict(full_attention=wide, sliding_attention=rope("default", key["rope.freq_base_swa"])),
    )
    return load(path, gemma4_model(config, gemma4_keys, without={}))


# Models of other files, by architecture.
OTHERS = {"qwen3": of_qwen3, "gemma4": of_gemma4}


def of_file(path):
    """The model of a file of one of these architectures."""
    return OTHERS[gguf.GGUFReader(path).fields["general.architecture"].contents()](path)


def validate(folder):
    """Compares losses, gradients and trajectories with those of a folder about qwen3."""
    path = folder.parent.parent / json.loads((folder / "golden.json").read_text())["base_gguf"]
    apart = list(training.validate(folder, of_qwen3(path)))
    for what, far, bound in apart:
        print(f"{what:<36} {far:9.2e} {bound:9.0e}{'' if far <= bound else '  FAILED'}")
    return all(far <= bound for _, far, bound in apart)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="which models and folders of train/; all without")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--validate", type=pathlib.Path, help="make nothing; compare with this folder of training goldens")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.validate:
        raise SystemExit(not validate(chosen.validate))
    for model in MODELS:
        if not chosen.names or model.__name__ in chosen.names:
            make(model.__name__, model(), chosen.out)
    for name in TRAININGS:
        if not chosen.names or f"train/{name}" in chosen.names:
            train(name, chosen.out)


if __name__ == "__main__":
    main()
