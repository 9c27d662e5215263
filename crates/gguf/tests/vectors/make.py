#!/usr/bin/env python3
"""Writes one vector file per block type: random blocks and their values.

The values come from the Python package `gguf` 0.19.0.

Usage: make.py [FOLDER]; needs gguf==0.19.0 and numpy. Each TYPE.bin holds the blocks, then their elements as f32.
The package cannot dequantize Q1_0, Q8_1 and Q8_K; they are computed here from ggml's structs.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type

BLOCKS = 6
PLAIN = [Type.F32, Type.F16, Type.F64, Type.I8, Type.I16, Type.I32, Type.I64]
# The package counts two f32 for Q8_1; ggml's block_q8_1 has two f16.
SIZES = {**GGML_QUANT_SIZES, Type.Q8_1: (32, 36)}
# Offsets of the f16 scales of each type. The scales are drawn as numbers, because random bits would
# mostly give extreme values.
HALVES = {
    Type.Q1_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q8_1: [0, 2],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
    Type.IQ1_S: [0], Type.IQ2_XXS: [0], Type.IQ2_XS: [0], Type.IQ2_S: [0], Type.IQ3_XXS: [0], Type.IQ3_S: [0],
    Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.TQ1_0: [52], Type.TQ2_0: [64],
}


def blocks_of(ty, rng):
    _, size = SIZES[ty]
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in HALVES.get(ty, []):
        blocks[:, at : at + 2] = rng.normal(size=BLOCKS).astype(np.float16).reshape(-1, 1).view(np.uint8)
        blocks[0, at : at + 2] = np.array([5.96e-8], np.float16).view(np.uint8)  # the smallest subnormal
    if ty == Type.Q8_K:
        blocks[:, :4] = rng.normal(size=BLOCKS).astype(np.float32).reshape(-1, 1).view(np.uint8)
    if ty == Type.IQ1_M:
        # The f16 lies in the upper nibbles of four words; these exponents keep it finite.
        blocks[:, 55] = (blocks[:, 55] & 0x8F) | 0x30
    if ty == Type.MXFP4:
        blocks[:, 0] = [0, 1, 2, 127, 128, 251]
    if ty == Type.NVFP4:
        blocks[:3, :4] = [[0x00, 0x7F, 0xFF, 0x01], [0x07, 0x08, 0x7E, 0x80], [0x38, 0x39, 0x40, 0x87]]
    return blocks


def dequantized(ty, blocks):
    if ty == Type.Q1_0:
        d = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return np.where(np.unpackbits(blocks[:, 2:], axis=1, bitorder="little") == 1, d, -d)
    if ty in (Type.Q8_1, Type.Q8_K):
        wide = ty == Type.Q8_K
        d = blocks[:, : 4 if wide else 2].copy().view(np.float32 if wide else np.float16).astype(np.float32)
        return d * blocks[:, 4 : 260 if wide else 36].view(np.int8).astype(np.float32)
    return quants.dequantize(blocks, ty)


def plain(ty, rng):
    dtype = {Type.F32: "<f4", Type.F16: "<f2", Type.F64: "<f8", Type.I8: "i1", Type.I16: "<i2", Type.I32: "<i4", Type.I64: "<i8"}[ty]
    if ty in (Type.F32, Type.F16, Type.F64):
        values = np.concatenate([rng.normal(size=12), [0.0, -0.0, 6e-8, 65504.0]]).astype(dtype)
    else:
        info = np.iinfo(dtype)
        values = np.concatenate([rng.integers(info.min, info.max, 14, dtype=dtype), [info.min, info.max]]).astype(dtype)
    return values.view(np.uint8), values.astype(np.float32)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    for ty in Type:
        rng = np.random.default_rng(int(ty))
        if ty in PLAIN:
            raw, values = plain(ty, rng)
        elif ty == Type.BF16:
            raw = rng.normal(size=16).astype(np.float32).view(np.uint8).reshape(-1, 4)[:, 2:].copy().reshape(1, -1)
            values = quants.dequantize(raw, ty)
        else:
            raw = blocks_of(ty, rng)
            values = dequantized(ty, raw)
        assert values.dtype == np.float32 and np.isfinite(values).all(), ty.name
        (folder / f"{ty.name}.bin").write_bytes(raw.tobytes() + values.astype("<f4").tobytes())


main()
