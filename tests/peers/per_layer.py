"""Gradients of factors on the per-layer linear layers of Gemma 4 E and Gemma 3n, beside PEFT.

    python tests/peers/per_layer.py path/to/weft path/to/fixtures

Needs torch, transformers, peft and safetensors. Makes the text model of transformers from the
fixture gemma4e and from tests/goldens/gemma3n, adds factors to all linear layers that PEFT's
all-linear has (but the projections between the streams of Gemma 3n, which take none here), and
computes the loss and the gradients. `weft gradients` then reads the adapter as PEFT writes it.
Fails if a gradient differs by more than 1e-4 (relative L2), or the loss by more than 1e-5.
"""

import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from transformers import Gemma3nForCausalLM, Gemma3nTextConfig, Gemma4ForCausalLM, Gemma4TextConfig

GRADIENT, LOSS = 1e-4, 1e-5
GOLDENS = Path(__file__).parent.parent / "goldens"

# GGUF's names of tensors in a layer, and those of transformers.
LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
    "altup_router": "altup.modality_router",
    "altup_router_norm": "altup.router_norm",
    "altup_predict_coef": "altup.prediction_coefs",
    "altup_correct_coef": "altup.correction_coefs",
    "laurel_l": "laurel.linear_left",
    "laurel_r": "laurel.linear_right",
    "laurel_post_norm": "laurel.post_laurel_norm",
}
# Parameters of a layer that are no modules.
PLAIN = {"layer_output_scale": "layer_scalar", "altup_correct_scale": "altup.correct_output_scale"}
# Lists of matrices that GGUF has as one tensor.
STACKED = {"altup_proj": "model.altup_projections", "altup_unembd_proj": "model.altup_unembed_projections"}
WHOLE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "per_layer_token_embd": "model.embed_tokens_per_layer",
    "per_layer_model_proj": "model.per_layer_model_projection",
    "per_layer_proj_norm": "model.per_layer_projection_norm",
}


def read_gguf(path):
    """The metadata, and the tensors of types F32 and F16, in float64."""
    data, at = Path(path).read_bytes(), 0

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        size = number("Q")
        at += size
        return data[at - size : at].decode("utf-8", "replace")

    forms = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            of, count = number("I"), number("Q")
            return [value(of) for _ in range(count)]
        return number(forms[kind])

    number("I"), number("I")
    tensors, entries = number("Q"), number("Q")
    metadata = {text(): value(number("I")) for _ in range(entries)}
    infos = [(text(), [number("Q") for _ in range(number("I"))], number("I"), number("Q")) for _ in range(tensors)]
    start = -(-at // 32) * 32
    read = {}
    for name, dims, kind, offset in infos:
        dtype, size = {0: (torch.float32, 4), 1: (torch.float16, 2)}[kind]
        count = torch.Size(dims).numel()
        raw = bytearray(data[start + offset : start + offset + count * size])
        read[name] = torch.frombuffer(raw, dtype=dtype).double().reshape(dims[::-1])
    return metadata, read


def gemma4(of, vocabulary):
    """A model of transformers from the metadata, without weights."""
    return Gemma4ForCausalLM(
        Gemma4TextConfig(
            **common(of, vocabulary),
            intermediate_size=min(of("feed_forward_length")),
            use_double_wide_mlp=True,
            head_dim=of("attention.key_length_swa"),
            global_head_dim=of("attention.key_length"),
        )
    )


def gemma3n(of, vocabulary):
    """The same for Gemma 3n."""
    normal = torch.distributions.normal.Normal(0.0, 1.0)
    sparsity = [normal.cdf(torch.tensor(x)).item() if x > float("-inf") else 0.0 for x in of("activation_sparsity_scale")]
    rope = {"full_attention": of("rope.freq_base"), "sliding_attention": of("rope.freq_base_swa")}
    return Gemma3nForCausalLM(
        Gemma3nTextConfig(
            **common(of, vocabulary),
            intermediate_size=of("feed_forward_length"),
            head_dim=of("attention.key_length"),
            rope_parameters={kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in rope.items()},
            altup_active_idx=of("altup.active_idx"),
            altup_num_inputs=of("altup.num_inputs"),
            altup_correct_scale=True,
            laurel_rank=16,
            activation_sparsity_pattern=sparsity,
        )
    )


def common(of, vocabulary):
    """What both configurations have."""
    return dict(
        vocab_size=vocabulary,
        vocab_size_per_layer_input=vocabulary,
        hidden_size=of("embedding_length"),
        num_hidden_layers=of("block_count"),
        num_attention_heads=of("attention.head_count"),
        num_key_value_heads=of("attention.head_count_kv"),
        sliding_window=of("attention.sliding_window"),
        layer_types=["sliding_attention" if s else "full_attention" for s in of("attention.sliding_window_pattern")],
        num_kv_shared_layers=of("attention.shared_kv_layers"),
        hidden_size_per_layer_input=of("embedding_length_per_layer_input"),
        final_logit_softcapping=of("final_logit_softcapping"),
        max_position_embeddings=of("context_length"),
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        attn_implementation="eager",
    )


def base_model(path):
    """The text model of a file in float64."""
    meta, tensors = read_gguf(path)
    architecture = meta["general.architecture"]
    make = {"gemma4": gemma4, "gemma3n": gemma3n}[architecture]
    model = make(lambda key: meta[f"{architecture}.{key}"], tensors["token_embd.weight"].shape[0]).double().eval()
    state = {}
    for name, tensor in tensors.items():
        layer, ours = re.fullmatch(r"(?:blk\.(\d+)\.)?(.+)\.weight", name).groups()
        if ours in STACKED:
            state |= {f"{STACKED[ours]}.{n}.weight": matrix for n, matrix in enumerate(tensor)}
        elif ours in PLAIN:
            state[f"model.layers.{layer}.{PLAIN[ours]}"] = tensor
        elif layer is not None:
            state[f"model.layers.{layer}.{LAYER[ours]}.weight"] = tensor
        elif ours != "rope_freqs":
            state[WHOLE[ours] + ".weight"] = tensor
    missing, unexpected = model.load_state_dict(state, strict=False)
    # Keys and values of layers that take them from an earlier layer are in no file.
    unused = [name for name in missing if re.search(r"self_attn\.[kv]_(proj|norm)", name)]
    assert not unexpected and set(missing) <= {"lm_head.weight", *unused}, (missing, unexpected)
    model.tie_weights()
    return model


def relative(got, expected):
    return ((got - expected).norm() / expected.norm()).item()


def compare(weft, gguf, batch):
    """Prints the largest difference of each kind of layer; whether all are within the bounds."""
    model = get_peft_model(
        base_model(gguf),
        LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", exclude_modules=r".*altup_(un)?(embed_)?projections.*", task_type="CAUSAL_LM"),
    )
    factors = {name: p for name, p in model.named_parameters() if p.requires_grad}
    for p in factors.values():
        # Values of f32, so that both programs start from equal numbers.
        p.data = (0.05 * torch.randn_like(p)).float().double()
    for part in ("per_layer_input_gate", "per_layer_projection", "per_layer_model_projection"):
        assert any(part in name for name in factors), f"PEFT's all-linear has no {part}"
    targets = [[-100 if t is None else t for t in row] for row in batch["targets"]]
    total, count = 0.0, 0
    for ids, wanted in zip(batch["sequences"], targets):
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()
        total = total + torch.nn.functional.cross_entropy(logits, torch.tensor(wanted), ignore_index=-100, reduction="sum")
        count += sum(t >= 0 for t in wanted)
    loss = total / count
    loss.backward()

    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        model.float().save_pretrained(at / "adapter")
        lines = [json.dumps({"ids": ids, "targets": wanted}) for ids, wanted in zip(batch["sequences"], targets)]
        (at / "batch.jsonl").write_text("\n".join(lines) + "\n")
        words = [weft, "gradients", gguf, "--data", at / "batch.jsonl", "--init", at / "adapter", "-o", at / "g.safetensors"]
        run = subprocess.run([*map(str, words), "--device", "cpu", "--json"], check=True, stdout=subprocess.PIPE, text=True)
        report, got = json.loads(run.stdout), load_file(at / "g.safetensors")

    kinds = {}
    for name, p in factors.items():
        if p.grad is None:
            # A factor of keys or values that the model does not use: weft leaves it out with a note.
            assert name.replace(".default", "") not in got, name
            continue
        kind = re.sub(r"\.lora_.*", "", name).split(".")[-1]
        kinds[kind] = max(kinds.get(kind, 0.0), relative(got.pop(name.replace(".default", "")).double(), p.grad))
    assert not got, f"gradients that PEFT does not have: {list(got)}"
    for kind, value in sorted(kinds.items()):
        print(f"{kind:30} {value:.1e}")
    off = abs(report["loss"] - loss.item()) / loss.item()
    print(f"loss {report['loss']:.9f}, PEFT's {loss.item():.9f}: {off:.1e}; gradients of {len(factors)} factors: {max(kinds.values()):.1e}")
    return off <= LOSS and max(kinds.values()) <= GRADIENT


def main(weft, fixtures):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    all_hold = True
    for gguf, folder in [
        (f"{fixtures}/gemma4e/gemma4e-F16.gguf", Path(fixtures) / "train/gemma4e"),
        (GOLDENS / "gemma3n/gemma3n-F16.gguf", GOLDENS / "train/gemma3n"),
    ]:
        print(gguf)
        all_hold &= compare(weft, gguf, json.loads((folder / "batch.json").read_text()))
    return 0 if all_hold else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
