#!/usr/bin/env python3
"""Writes python.gguf beside itself with the Python package `gguf` 0.19.0.

The file has every value type, arrays, and four tensors.

With a path as argument it instead reads that file with the package and fails if it differs.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter

OWN = Path(__file__).parent / "python.gguf"


def write(path):
    writer = GGUFWriter(path, "qwen3")
    writer.add_custom_alignment(64)
    writer.add_uint8("t.u8", 200)
    writer.add_int8("t.i8", -100)
    writer.add_uint16("t.u16", 60000)
    writer.add_int16("t.i16", -30000)
    writer.add_uint32("t.u32", 4_000_000_000)
    writer.add_int32("t.i32", -2_000_000_000)
    writer.add_uint64("t.u64", 2**63 + 1)
    writer.add_int64("t.i64", -(2**62))
    writer.add_float32("t.f32", 0.1)
    writer.add_float64("t.f64", 0.1)
    writer.add_bool("t.bool", True)
    writer.add_string("t.str", "wärp")
    writer.add_array("t.strs", ["a", "", "Ġthe", "日本"])
    writer.add_array("t.ints", [1, -2, 3])
    writer.add_array("t.floats", [0.5, -1.5])
    writer.add_array("t.bools", [True, False])
    writer.add_token_list([b"ok", b"\xff\xfe", b"<0x0A>"])
    f32 = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer.add_tensor("a.weight", f32)
    writer.add_tensor("b.weight", f32.astype(np.float16))
    blocks = np.arange(2 * 2 * 34, dtype=np.uint8).reshape(2, 68)
    writer.add_tensor("c.weight", blocks, raw_dtype=GGMLQuantizationType.Q8_0)
    writer.add_tensor("d.weight", np.arange(24, dtype=np.int32).reshape(2, 3, 4))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def same(path):
    ours, theirs = GGUFReader(path), GGUFReader(OWN)
    assert list(ours.fields) == list(theirs.fields)
    for name, field in theirs.fields.items():
        other = ours.fields[name]
        assert other.types == field.types and all(np.array_equal(a, b) for a, b in zip(other.parts, field.parts, strict=True)), name
    for a, b in zip(ours.tensors, theirs.tensors, strict=True):
        assert (a.name, a.tensor_type, a.data_offset) == (b.name, b.tensor_type, b.data_offset)
        assert np.array_equal(a.shape, b.shape) and np.array_equal(a.data, b.data), a.name


if len(sys.argv) > 1:
    same(Path(sys.argv[1]))
    print("identical")
else:
    write(OWN)
