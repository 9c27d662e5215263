"""A small Qwen3 in PyTorch.

RMSNorm, per-head q/k norm, rotary NEOX, grouped heads, SwiGLU, tied embedding.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    embedding_length: int = 256
    block_count: int = 6
    head_count: int = 8
    head_count_kv: int = 2
    key_length: int = 64
    feed_forward_length: int = 768
    vocab_size: int = 2048
    context_length: int = 1024
    freq_base: float = 10000.0
    eps: float = 1e-6


def kind_of(name):
    """The type of a tensor in the shipped file, by its GGUF name."""
    if name.endswith("norm.weight"):
        return "F32"
    if name == "token_embd.weight" or "attn_v" in name or "ffn_down" in name:
        return "Q6_K"
    return "Q5_K" if "attn_q" in name or "attn_k" in name else "Q4_K"


def rms_norm(x, w, eps):
    y = x.float()
    return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * w


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Model(nn.Module):
    """Parameters carry the names of the GGUF file (dots become double underscores)."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        d, q, kv, ff = c.embedding_length, c.head_count * c.key_length, c.head_count_kv * c.key_length, c.feed_forward_length
        shapes = {"token_embd": (c.vocab_size, d), "output_norm": (d,)}
        for i in range(c.block_count):
            shapes |= {f"blk.{i}.{n}": s for n, s in {
                "attn_norm": (d,), "attn_q": (q, d), "attn_k": (kv, d), "attn_v": (kv, d), "attn_output": (d, q), "attn_q_norm": (c.key_length,),
                "attn_k_norm": (c.key_length,), "ffn_norm": (d,), "ffn_gate": (ff, d), "ffn_up": (ff, d), "ffn_down": (d, ff)}.items()}
        for name, shape in shapes.items():
            deep = (2 * c.block_count) ** -0.5 if name.endswith(("attn_output", "ffn_down")) else 1.0
            w = torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * (0.02 if name == "token_embd" else deep * shape[1] ** -0.5)
            self.register_parameter(self.attr(name + ".weight"), nn.Parameter(w))
        inv = c.freq_base ** (-torch.arange(0, c.key_length, 2, dtype=torch.float64) / c.key_length)
        angle = torch.outer(torch.arange(c.context_length, dtype=torch.float64), inv)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    @staticmethod
    def attr(name):
        return name.replace(".", "__")

    def named(self):
        """(GGUF name, parameter) in a fixed order."""
        return [(n.replace("__", "."), p) for n, p in self.named_parameters()]

    def forward(self, ids, last=None):
        """Logits [B, T, V] of `ids` [B, T]; with `last` [B], of one position per row, [B, V]."""
        c, (b, t) = self.c, ids.shape
        w = lambda l, n: getattr(self, f"blk__{l}__{n}__weight")
        cos, sin = self.cos[:t], self.sin[:t]
        h = F.embedding(ids, self.token_embd__weight)
        for l in range(c.block_count):
            x = rms_norm(h, w(l, "attn_norm"), c.eps)
            heads = lambda n, k: F.linear(x, w(l, n)).view(b, t, k, c.key_length).transpose(1, 2)
            q = rope(rms_norm(heads("attn_q", c.head_count), w(l, "attn_q_norm"), c.eps), cos, sin)
            k = rope(rms_norm(heads("attn_k", c.head_count_kv), w(l, "attn_k_norm"), c.eps), cos, sin)
            v = heads("attn_v", c.head_count_kv)
            a = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True, enable_gqa=True)
            h = h + F.linear(a.transpose(1, 2).reshape(b, t, -1), w(l, "attn_output"))
            x = rms_norm(h, w(l, "ffn_norm"), c.eps)
            h = h + F.linear(F.silu(F.linear(x, w(l, "ffn_gate"))) * F.linear(x, w(l, "ffn_up")), w(l, "ffn_down"))
        if last is not None:
            h = h[torch.arange(b, device=h.device), last]
        return F.linear(rms_norm(h, self.output_norm__weight, c.eps), self.token_embd__weight)
