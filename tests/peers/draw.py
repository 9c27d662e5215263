"""Models that a seed draws, in the form of `tests/goldens/make.py`: shapes, biases, tied or separate heads, windows."""

import gguf
import numpy as np
import transformers
from make import GemmaTokenizer, Golden, QwenTokenizer, built, fill, rope


def shapes(draw, vocabulary):
    """Sizes that no golden has: odd numbers of blocks, heads that are wider or narrower than the model."""
    kv = int(draw.choice([1, 2, 3]))
    heads = kv * int(draw.choice([1, 2, 3]))
    # transformers takes widths that heads divide, also where heads have a width of their own.
    return dict(
        vocab_size=vocabulary, hidden_size=8 * heads * int(draw.integers(2, 5)), intermediate_size=32 * int(draw.integers(2, 8)),
        num_hidden_layers=int(draw.integers(2, 5)), num_attention_heads=heads,
        num_key_value_heads=kv, head_dim=int(draw.choice([16, 24, 32, 64])), max_position_embeddings=512, rms_norm_eps=1e-6,
        tie_word_embeddings=bool(draw.integers(2)),
    )


def keys_of_heads(out, config):
    out.add_feed_forward_length(config.intermediate_size)
    out.add_key_length(config.head_dim)
    out.add_value_length(config.head_dim)


def qwen2(draw):
    config = shapes(draw, 288)
    # Heads of Qwen2 share the width.
    config["hidden_size"] = config["num_attention_heads"] * config.pop("head_dim")

    def keys(out, config):
        out.add_feed_forward_length(config.intermediate_size)
        out.add_rope_freq_base(config.rope_parameters["rope_theta"])

    config["rope_parameters"] = rope("default", float(draw.choice([1e4, 1e6])))
    build = lambda c: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**c))
    return Golden(gguf.MODEL_ARCH.QWEN2, config, build, keys, QwenTokenizer, without={})


def qwen3(draw):
    config = shapes(draw, 288)

    def keys(out, config):
        keys_of_heads(out, config)
        out.add_rope_freq_base(config.rope_parameters["rope_theta"])

    config["rope_parameters"] = rope("default", float(draw.choice([1e4, 1e6])))
    build = lambda c: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**c))
    return Golden(gguf.MODEL_ARCH.QWEN3, config, build, keys, QwenTokenizer, without={})


def gemma3(draw):
    config = shapes(draw, 384) | dict(tie_word_embeddings=True, sliding_window=int(draw.integers(5, 20)))
    # A file has the scale of scores only as the width of a head; every sixth layer sees all keys.
    config |= dict(query_pre_attn_scalar=config["head_dim"], num_hidden_layers=int(draw.integers(6, 8)))
    full, sliding = rope("default", 1e6), rope("default", 1e4)
    config["rope_parameters"] = dict(full_attention=full, sliding_attention=sliding)

    def keys(out, config):
        keys_of_heads(out, config)
        out.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
        out.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
        out.add_sliding_window(config.sliding_window)

    build = lambda c: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**c))
    return Golden(gguf.MODEL_ARCH.GEMMA3, config, build, keys, GemmaTokenizer, without={}, unit_offset=True, embedding=0.15)


ARCHITECTURES = [qwen2, qwen3, gemma3]


def model(architecture, seed):
    """The description of a model, and transformers' model with the weights that the seed draws."""
    golden = architecture(np.random.default_rng([seed, ARCHITECTURES.index(architecture)]))
    drawn = built(golden, golden.config)
    fill(drawn, golden, seed)
    return golden, drawn


def documents(golden, draw, count, chosen):
    """Documents of drawn ids and lengths. Some targets are masked; `chosen` ones have weights other than 1."""
    ids = lambda n: [int(i) for i in draw.integers(6, golden.config["vocab_size"] - 6, n)]
    first = [2] if "gemma" in gguf.MODEL_ARCH_NAMES[golden.arch] else []
    sequences = [first + ids(int(n)) for n in draw.integers(2, 60, count)]
    targets = [[t if draw.random() < 0.8 else -100 for t in [*s[1:], -100][:-1]] + [-100] for s in sequences]
    data = {"sequences": sequences, "targets": targets}
    if chosen:
        data["weights"] = [[float(draw.choice([0.5, 1.0, 2.0])) for _ in s] for s in sequences]
    return data
