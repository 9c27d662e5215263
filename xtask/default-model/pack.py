#!/usr/bin/env python3
"""Writes the exported weights and tokenizer to a GGUF file, with llama.cpp's metadata for Qwen3.

    pack.py EXPORT_DIR OUT.gguf

The blocks come from the end of training; this script only writes the container (Python gguf 0.19.0).
"""

import json
import os
import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

TYPES = {144: "Q4_K", 176: "Q5_K", 210: "Q6_K"}  # bytes of a block of 256 values
CHAT_TEMPLATE = """{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def type_of(blocks, columns):
    if blocks.dtype == np.float32:
        return GGMLQuantizationType.F32
    return GGMLQuantizationType[TYPES[blocks.shape[1] * 256 // columns]]


def main(source, target):
    config = json.load(open(os.path.join(source, "config.json")))
    tokenizer = json.load(open(os.path.join(source, "tokenizer.json")))
    weights = np.load(os.path.join(source, "weights.npz"))
    out = GGUFWriter(target, "qwen3")
    out.add_type("model")
    out.add_name("Bobbin of the Thimble Isles")
    out.add_description("A small chat model of an invented world, made for Weft")
    out.add_license("MIT OR Apache-2.0")
    out.add_size_label("6M")
    out.add_languages(["en"])
    out.add_block_count(config["block_count"])
    out.add_context_length(config["context_length"])
    out.add_embedding_length(config["embedding_length"])
    out.add_feed_forward_length(config["feed_forward_length"])
    out.add_head_count(config["head_count"])
    out.add_head_count_kv(config["head_count_kv"])
    out.add_key_length(config["key_length"])
    out.add_value_length(config["key_length"])
    out.add_layer_norm_rms_eps(config["eps"])
    out.add_rope_freq_base(config["freq_base"])
    out.add_file_type(15)  # mostly Q4_K, the larger share of llama.cpp's Q4_K_M mix
    out.add_quantization_version(2)
    tokens = tokenizer["tokens"]
    special = {t: i for i, t in enumerate(tokens) if t.startswith("<|")}
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list(tokens)
    out.add_token_types([3 if t in special else 1 for t in tokens])
    out.add_token_merges(tokenizer["merges"])
    out.add_eos_token_id(special["<|im_end|>"])
    out.add_pad_token_id(special["<|endoftext|>"])
    out.add_add_bos_token(False)
    out.add_chat_template(CHAT_TEMPLATE)
    inputs = {"attn_output": config["head_count"] * config["key_length"], "ffn_down": config["feed_forward_length"]}
    for name in weights.files:
        columns = next((n for part, n in inputs.items() if part in name), config["embedding_length"])
        out.add_tensor(name, weights[name], raw_dtype=type_of(weights[name], columns))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    print(f"{target}: {os.path.getsize(target):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
