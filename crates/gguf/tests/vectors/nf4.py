#!/usr/bin/env python3
"""Writes nf4.bin: values, and the NF4 blocks that bitsandbytes makes of them.

Usage: nf4.py [FOLDER]; needs bitsandbytes==0.50.2 and torch, on a CPU.
The file has b blocks of 64 values, f32; then b times 32 bytes of codes, as bitsandbytes packs them (the first code of
a byte in its high nibble); then b times the absmax, f32; then the dequantized values, f32.
"""

import sys
from pathlib import Path

import bitsandbytes.functional as bnb
import numpy as np
import torch


def thresholds(absmax):
    """A block with every value half way between two codes, and its neighbours among f32."""
    code = bnb.get_4bit_type("nf4", device="cpu").numpy()
    half_way = ((code[:-1] + code[1:]) / np.float32(2)) * np.float32(absmax)
    below, above = np.nextafter(half_way, np.float32(-np.inf)), np.nextafter(half_way, np.float32(np.inf))
    all_of_them = np.concatenate([half_way, below, above, code * np.float32(absmax)])
    return np.pad(all_of_them, (0, 64 - len(all_of_them)))


def blocks():
    rng = np.random.default_rng(4)
    one = np.zeros(64, np.float32)
    one[17] = -3e-5
    yield from rng.normal(size=(3, 64)).astype(np.float32)
    yield rng.normal(size=64).astype(np.float16).astype(np.float32) * 0.02
    # Quotients that are rounded: no absmax but the first is a power of two.
    for absmax in [1.0, 0.37, 0.0211, 3.3e4, 1.7e38]:
        yield thresholds(absmax)
    yield np.zeros(64, np.float32)
    yield -np.zeros(64, np.float32)
    yield one
    yield rng.normal(size=64).astype(np.float32) * np.float32(1e-39)
    yield np.full(64, -0.25, np.float32)


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    values = np.stack(list(blocks())).astype(np.float32)
    packed, state = bnb.quantize_4bit(torch.from_numpy(values), blocksize=64, quant_type="nf4")
    back = bnb.dequantize_4bit(packed, state)
    parts = [values, packed.numpy().astype(np.uint8), state.absmax.numpy().astype(np.float32), back.numpy().astype(np.float32)]
    (folder / "nf4.bin").write_bytes(b"".join(part.tobytes() for part in parts))


if __name__ == "__main__":
    main()
