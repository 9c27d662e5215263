//! Reads many files from stdin, each behind its length (u32), and prints a line for each: `ok`
//! with all values, or `error` with its kind. `tests/compare.py` compares the lines with Python's
//! reader.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Read, Write};

use gguf::{Array, Gguf, Value};

fn main() -> io::Result<()> {
    let (mut input, mut out) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let mut length = [0; 4];
    while input.read_exact(&mut length).is_ok() {
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        input.read_exact(&mut bytes)?;
        match Gguf::from_bytes(bytes) {
            Ok(gguf) => writeln!(out, "ok {}", contents(&gguf))?,
            // The name of the variant, and the message.
            Err(error) => {
                let name = format!("{error:?}");
                let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                writeln!(out, "error {name} {}", error.to_string().escape_debug())?;
            }
        }
    }
    Ok(())
}

/// Keys with their values, then tensors with their types, shapes, sizes and places.
fn contents(gguf: &Gguf) -> String {
    let mut out = format!("version {}; alignment {}", gguf.version(), gguf.alignment());
    for (key, value) in gguf.metadata() {
        let _ = write!(out, "; {} ", hex(key.as_bytes()));
        write(&mut out, value);
    }
    for tensor in gguf.tensors() {
        let shape = tensor.shape().iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let _ = write!(out, "; {} {} {shape}", hex(tensor.name().as_bytes()), tensor.ty_number);
        // A type that is unknown has no size.
        if tensor.ty().is_ok() {
            let _ = write!(out, " {} at {}", tensor.bytes, tensor.offset);
        }
    }
    out
}

/// Floats by their bits and texts in hex, so that nothing is lost.
fn write(out: &mut String, value: Value<'_>) {
    let _ = match value {
        Value::U8(n) => write!(out, "u8 {n}"),
        Value::I8(n) => write!(out, "i8 {n}"),
        Value::U16(n) => write!(out, "u16 {n}"),
        Value::I16(n) => write!(out, "i16 {n}"),
        Value::U32(n) => write!(out, "u32 {n}"),
        Value::I32(n) => write!(out, "i32 {n}"),
        Value::U64(n) => write!(out, "u64 {n}"),
        Value::I64(n) => write!(out, "i64 {n}"),
        Value::F32(n) => write!(out, "f32 {:08x}", n.to_bits()),
        Value::F64(n) => write!(out, "f64 {:016x}", n.to_bits()),
        Value::Bool(on) => write!(out, "bool {}", u8::from(on)),
        Value::Str(text) => write!(out, "str {}", hex(text.as_bytes())),
        Value::Bytes(bytes) => write!(out, "str {}", hex(bytes)),
        Value::Array(array) => return write_array(out, array),
    };
}

fn write_array(out: &mut String, array: Array<'_>) {
    let _ = write!(out, "[{}", array.len());
    for value in array.iter() {
        out.push(' ');
        write(out, value);
    }
    out.push(']');
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
