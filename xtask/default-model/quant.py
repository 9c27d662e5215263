"""The K types of GGUF in PyTorch. Training, evaluation and the file use the same rounding.

The formats follow ggml's block_q4_K, block_q5_K and block_q6_K: super-blocks of 256 values.
"""

import numpy as np
import torch

KIND = {"Q4_K": 15, "Q5_K": 31, "Q6_K": 32}  # the largest code; Q6_K is symmetric, -32..31


def f16(x):
    return x.half().float()


def codes(w, kind):
    """`w` [.., 256 n] -> integer codes and scales of every super-block, as a dict of tensors."""
    x = w.detach().float().reshape(-1, 256)
    if kind == "Q6_K":
        x = x.view(-1, 16, 16)
        extreme = x.gather(2, x.abs().argmax(2, keepdim=True)).squeeze(2)
        step = extreme / -32.0
        largest = step.gather(1, step.abs().argmax(1, keepdim=True))
        d = f16(largest / -128.0)
        scale = torch.where(d != 0, (step / torch.where(d != 0, d, 1)).round().clamp(-128, 127), 0)
        unit = (d * scale).unsqueeze(2)
        q = torch.where(unit != 0, (x / torch.where(unit != 0, unit, 1)).round().clamp(-32, 31), 0)
        return {"d": d, "scale": scale, "q": q}
    top = KIND[kind]
    x = x.view(-1, 8, 32)
    low = x.amin(2).clamp(max=0)
    step, floor = (x.amax(2).clamp(min=0) - low) / top, -low
    d, dmin = f16(step.amax(1, keepdim=True) / 63), f16(floor.amax(1, keepdim=True) / 63)
    scale = torch.where(d > 0, (step / torch.where(d > 0, d, 1)).round().clamp(0, 63), 0)
    base = torch.where(dmin > 0, (floor / torch.where(dmin > 0, dmin, 1)).round().clamp(0, 63), 0)
    unit = (d * scale).unsqueeze(2)
    q = torch.where(unit > 0, ((x + (dmin * base).unsqueeze(2)) / torch.where(unit > 0, unit, 1)).round().clamp(0, top), 0)
    return {"d": d, "dmin": dmin, "scale": scale, "base": base, "q": q}


def values(c, kind):
    """The dequantized values of the codes, [blocks, 256]."""
    x = (c["d"] * c["scale"]).unsqueeze(2) * c["q"]
    if kind != "Q6_K":
        x = x - (c["dmin"] * c["base"]).unsqueeze(2)
    return x.reshape(-1, 256)


def rounded(w, kind):
    """`w` after a round trip through `kind`; F32 is unchanged."""
    return w if kind == "F32" else values(codes(w, kind), kind).reshape(w.shape).to(w.dtype)


def to_bytes(w, kind):
    """The blocks of `w` as the file holds them, uint8 [rows, bytes per row]."""
    c = {k: v.cpu().numpy() for k, v in codes(w, kind).items()}
    half = lambda x: x.astype("<f2").view(np.uint8).reshape(-1, 2)
    n = len(c["d"])
    if kind == "Q6_K":
        q = (c["q"].astype(np.int16) + 32).astype(np.uint8).reshape(n, 2, 4, 32)
        low = np.concatenate([q[:, :, 0] & 15 | (q[:, :, 2] & 15) << 4, q[:, :, 1] & 15 | (q[:, :, 3] & 15) << 4], axis=2).reshape(n, 128)
        high = (q[:, :, 0] >> 4 | q[:, :, 1] >> 4 << 2 | q[:, :, 2] >> 4 << 4 | q[:, :, 3] >> 4 << 6).reshape(n, 64)
        blocks = [low, high, c["scale"].astype(np.int8).view(np.uint8), half(c["d"])]
    else:
        s, m = c["scale"].astype(np.uint8), c["base"].astype(np.uint8)
        packed = np.concatenate([s[:, :4] | s[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6, s[:, 4:] & 15 | (m[:, 4:] & 15) << 4], axis=1)
        q = c["q"].astype(np.uint8).reshape(n, 4, 2, 32)
        low = (q[:, :, 0] & 15 | (q[:, :, 1] & 15) << 4).reshape(n, 128)
        blocks = [half(c["d"]), half(c["dmin"]), packed]
        if kind == "Q5_K":
            bits = np.arange(4, dtype=np.uint8)[None, :, None]
            blocks.append(((q[:, :, 0] >> 4) << (2 * bits) | (q[:, :, 1] >> 4) << (2 * bits + 1)).sum(1).astype(np.uint8))
        blocks.append(low)
    return np.concatenate(blocks, axis=1).reshape(w.shape[0], -1)
