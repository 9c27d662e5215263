#!/usr/bin/env python3
"""Compares verdicts and values of this crate with those of the Python package `gguf` 0.19.0.

    cargo build -p gguf --release --example verdicts
    python3 crates/gguf/tests/compare.py target/release/examples/verdicts [FILES]

Makes FILES (100,000 by default) mutations of small files, the same on every run, and reads each with
both readers. Every difference must have a reason in the tables below; otherwise it is printed and
the exit status is 1.
"""

import collections
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType

# Kinds of errors of this crate, each with the reason why Python reads such a file.
ONLY_PYTHON_READS = {
    "BadBool": "numpy takes every byte as a bool",
    "DimensionCount": "Python takes any number of dimensions, also none",
    "Shape": "Python takes dimensions of 0 and products that overflow",
    "Misaligned": "Python does not check the alignment of tensors",
    "Overlap": "Python lets tensors share bytes",
    "OutOfFile": "an offset near 2^64 overflows to a place inside the file",
}
# Parts of Python's errors, each with the reason why this crate reads such a file.
ONLY_WE_READ = {
    "Sorry, file appears to be version 1 ": "Python no longer reads version 1",
    "is not a valid GGMLQuantizationType": "an unknown tensor type is an error here only when the tensor is used",
}
SCALARS = {
    GGUFValueType.UINT8: "u8", GGUFValueType.INT8: "i8", GGUFValueType.UINT16: "u16", GGUFValueType.INT16: "i16",
    GGUFValueType.UINT32: "u32", GGUFValueType.INT32: "i32", GGUFValueType.UINT64: "u64", GGUFValueType.INT64: "i64",
    GGUFValueType.FLOAT32: "f32", GGUFValueType.FLOAT64: "f64", GGUFValueType.BOOL: "bool",
}  # fmt: skip
EDGES = [0, 1, 2, 7, 8, 9, 12, 13, 31, 32, 33, 39, 41, 255, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]


class Endless(Exception):
    """An array longer than the file, over which Python would loop."""


class Reader(GGUFReader):
    """Python's reader, which stops where it would loop for hours."""

    def _get_field_parts(self, orig_offs, raw_type):
        if raw_type == GGUFValueType.ARRAY:
            length = self._get(orig_offs + 4, np.uint64)
            if len(length) and int(length[0]) > len(self.data):
                raise Endless
        return super()._get_field_parts(orig_offs, raw_type)


def text(value):
    return struct.pack("<Q", len(value)) + value


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def seeds():
    """A file of the package with every value type, and files with arrays, strings and tensors."""
    own = Path(__file__).parent / "files" / "python.gguf"
    arrays = [
        pair(b"general.architecture", 8, text(b"qwen3")),
        pair(b"general.alignment", 4, struct.pack("<I", 8)),
        pair(b"n", 9, struct.pack("<IQ3h", 3, 3, -1, 0, 1)),
        pair(b"s", 9, struct.pack("<IQ", 8, 3) + text(b"a") + text(b"") + text("é".encode())),
        pair(b"deep", 9, struct.pack("<IQ", 9, 2) + struct.pack("<IQ2B", 0, 2, 1, 2) + struct.pack("<IQ1d", 12, 1, 0.5)),
        pair(b"on", 7, b"\1"),
    ]
    tensors = [(b"a", [8, 2], 0, 0, 64), (b"b", [32], 8, 64, 34), (b"c", [3, 1, 2], 1, 104, 12)]
    infos = [
        text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset)
        for name, dims, kind, offset, _ in tensors
    ]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(arrays)) + b"".join(arrays + infos)
    header += bytes(-len(header) % 8)
    return [own.read_bytes(), header + bytes(range(120))]


def mutated(rng, seed):
    """One to three changes: a bit, a byte, a number, an end, or bytes that are doubled or removed.

    Most changes keep the length, so that many of the files can still be read.
    """
    data = bytearray(seed)
    for _ in range(rng.randint(1, 3)):
        if len(data) < 16:
            break
        at = rng.randrange(len(data) - 8)
        match rng.choices(range(7), [30, 30, 12, 12, 1, 4, 4])[0]:
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at] = rng.randrange(256)
            case 2:
                data[at : at + 8] = struct.pack("<Q", rng.choice(EDGES))
            case 3:
                data[at : at + 4] = struct.pack("<I", rng.choice(EDGES) & 0xFFFFFFFF)
            case 4:
                del data[at:]
            case 5:
                data[at:at] = data[at : at + rng.randint(1, 64)]
            case _:
                del data[at : at + rng.randint(1, 16)]
    return bytes(data)


def written(parts, at, kind):
    """One value from the parts of a field, as `verdicts` writes it, and the index behind it."""
    if kind == GGUFValueType.STRING:
        return f"str {parts[at + 1].tobytes().hex()}", at + 2
    if kind != GGUFValueType.ARRAY:
        raw = parts[at].tobytes()
        number = f"{int.from_bytes(raw, 'little'):0{2 * len(raw)}x}" if SCALARS[kind][0] == "f" else str(int(parts[at][0]))
        return f"{SCALARS[kind]} {number}", at + 1
    inner, length = GGUFValueType(int(parts[at][0])), int(parts[at + 1][0])
    values, at = [], at + 2
    for _ in range(length):
        value, at = written(parts, at, inner)
        values.append(f" {value}")
    return f"[{length}{''.join(values)}]", at


def contents(reader):
    """What `verdicts` prints for the same file."""
    out = [f"version {int(reader.fields['GGUF.version'].parts[0][0])}; alignment {int(reader.alignment)}"]
    for name, field in reader.fields.items():
        if not name.startswith("GGUF."):
            out.append(f"{field.parts[1].tobytes().hex()} {written(field.parts, 3, field.types[0])[0]}")
    for tensor in reader.tensors:
        shape = ",".join(str(int(n)) for n in tensor.shape)
        place = f"{tensor.n_bytes} at {tensor.data_offset}"
        out.append(f"{tensor.name.encode().hex()} {int(tensor.tensor_type)} {shape} {place}")
    return "ok " + "; ".join(out)


def theirs(path):
    try:
        return contents(Reader(path))
    except Endless:
        return "error Endless"
    except Exception as error:  # the package raises many kinds
        return f"error {type(error).__name__}: {error}"


def compare(ours, python):
    """(agree or differ, and the class of it); the class is None for a difference without a reason."""
    if ours == python:
        return "same", "both read it, with the same values"
    if ours.startswith("error") and python.startswith("error"):
        return "same", "both refuse it"
    if ours.startswith("error"):
        kind = ours.split()[1]
        reason = ONLY_PYTHON_READS.get(kind)
        return "only Python reads it", reason and f"{kind}: {reason}"
    if python.startswith("error"):
        message = python.removeprefix("error ")
        found = next((part for part in ONLY_WE_READ if part in message), None)
        return "only we read it", found and f"{found}: {ONLY_WE_READ[found]}"
    # Sizes of tensors of type 9, with blocks of 36 bytes where Python has 40.
    corrected = re.sub(r"(; [0-9a-f]* 9 [\d,]+ )(\d+)", lambda found: f"{found[1]}{int(found[2]) * 36 // 40}", python)
    if ours == corrected:
        return "other values", "Python counts 40 bytes for a block of Q8_1; ggml's struct has 36"
    return "other values", None


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    rng, all_seeds, classes, unexplained = random.Random(1), seeds(), collections.Counter(), 0
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        for start in range(0, count, 2000):
            batch = [mutated(rng, all_seeds[n % len(all_seeds)]) for n in range(start, min(start + 2000, count))]
            packed = b"".join(struct.pack("<I", len(data)) + data for data in batch)
            lines = subprocess.run([program], input=packed, capture_output=True, check=True).stdout.split(b"\n")
            for data, line in zip(batch, lines, strict=False):
                Path(file.name).write_bytes(data)
                ours, python = line.decode(errors="replace"), theirs(file.name)
                verdict = compare(ours, python)
                classes[verdict] += 1
                if verdict[1] is None:
                    unexplained += 1
                    if unexplained <= 20:
                        print(f"{verdict[0]}\n  ours   {ours}\n  python {python}")
    for (verdict, reason), number in classes.most_common():
        print(f"{number:>7}  {verdict}: {reason or 'NO REASON'}")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
