// Rewrites one text of a GGUF file's metadata. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

const STRING = 8;
const ARRAY = 9;
// Bytes of the types of a number, by their codes: u8 i8 u16 i16 u32 i32 f32 bool, and u64 i64 f64.
const BYTES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const ALIGNMENT = 32;

// The file with another text under a key that it has. Offsets of tensors count from the aligned
// end of the header, so only the padding before the data changes.
export function withText(file, key, text) {
  let at = 8;
  const u32 = () => file.readUInt32LE((at += 4) - 4);
  const u64 = () => Number(file.readBigUInt64LE((at += 8) - 8));
  const string = () => {
    const length = u64();
    return file.toString('utf8', at, (at += length));
  };
  const skip = (type) => {
    if (type === STRING) string();
    else if (type === ARRAY) {
      const of = u32();
      for (let left = u64(); left > 0; left -= 1) skip(of);
    } else at += BYTES[type];
  };
  const [tensors, pairs] = [u64(), u64()];
  let value;
  for (let pair = 0; pair < pairs; pair += 1) {
    const name = string();
    const type = u32();
    const from = at;
    skip(type);
    if (name === key && type === STRING) value = [from, at];
  }
  if (value === undefined) throw new Error(`the file has no text ${key}`);
  for (let tensor = 0; tensor < tensors; tensor += 1) {
    string();
    const dimensions = u32();
    at += dimensions * 8 + 4 + 8;
  }
  const length = Buffer.alloc(8);
  const bytes = Buffer.from(text);
  length.writeBigUInt64LE(BigInt(bytes.length));
  const header = Buffer.concat([file.subarray(0, value[0]), length, bytes, file.subarray(value[1], at)]);
  const aligned = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
  return Buffer.concat([header, Buffer.alloc(aligned(header.length) - header.length), file.subarray(aligned(at))]);
}
