//! The fuzz body: opens a file and calls every operation on it. Called by the target `parse` of
//! `fuzz/` and by `tests/mutations.rs`.

use std::io;

use crate::{Array, Gguf, GgufBuilder, Result, Source, Value};

/// Bytes that are only available through positioned reads, as from a file.
struct Positioned(Vec<u8>);

impl Source for Positioned {
    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }
}

/// Opens `bytes` as a file in memory and as a file with positioned reads, and uses both. Panics if
/// they disagree. Returns whether they opened.
pub fn parse(bytes: &[u8]) -> bool {
    let in_memory = Gguf::from_bytes(bytes.to_vec());
    let positioned = Gguf::from_source(Box::new(Positioned(bytes.to_vec())));
    match (in_memory, positioned) {
        (Ok(in_memory), Ok(positioned)) => {
            exercise(&in_memory);
            exercise(&positioned);
            rewrite(&in_memory);
            true
        }
        (Err(a), Err(b)) => {
            assert_eq!(a.to_string(), b.to_string());
            false
        }
        (a, b) => panic!("{a:?} in memory but {b:?} by positioned reads"),
    }
}

fn exercise(gguf: &Gguf) {
    for (key, value) in gguf.metadata() {
        let _ = (value.to_string(), value.describe(), value.as_integer());
        assert!(gguf.get::<Value>(key).is_ok_and(|found| found.ty() == value.ty()));
        let _ = (gguf.get::<u32>(key).is_ok(), gguf.get::<f32>(key).is_ok(), gguf.get::<Vec<&str>>(key).is_ok());
        if let Value::Array(array) = value {
            walk(&array);
        }
    }
    for tensor in gguf.tensors() {
        assert!(gguf.find_tensor(tensor.name()).is_some_and(|found| found == tensor));
        let Ok(values) = gguf.dequantized(tensor) else {
            assert!(tensor.ty().is_err());
            continue;
        };
        assert_eq!(values.len() as u64, tensor.elements());
        let mut last = [0];
        assert!(gguf.read_tensor(tensor, tensor.bytes - 1, &mut last).is_ok());
        assert!(gguf.read_tensor(tensor, tensor.bytes, &mut last).is_err());
        assert!(gguf.tensor_bytes(tensor).is_none_or(|bytes| bytes.last() == Some(&last[0])));
    }
}

fn walk(array: &Array<'_>) {
    assert_eq!(array.iter().count(), array.len());
    assert!(array.get(array.len()).is_none());
    for (i, value) in array.iter().enumerate().take(4) {
        assert!(array.get(i).is_some_and(|found| found.to_string() == value.to_string()));
    }
    let _ = (array.i32s().map(Iterator::count), array.u32s().map(Iterator::count), array.f32s().map(Iterator::count));
    if let Ok(strings) = array.strs() {
        assert_eq!(strings.filter(Result::is_ok).count() <= array.len(), array.byte_strs().is_ok());
    }
}

/// Writes the metadata and tensors to a new file and reads it again.
fn rewrite(gguf: &Gguf) {
    let mut builder = GgufBuilder::new().copy_metadata(gguf);
    for tensor in gguf.tensors() {
        if let (Ok(ty), Some(bytes)) = (tensor.ty(), gguf.tensor_bytes(tensor)) {
            builder = builder.tensor(tensor.name(), tensor.shape(), ty, bytes);
        }
    }
    let again = builder.to_bytes().and_then(Gguf::from_bytes).expect("what was read can be written and read");
    for tensor in again.tensors() {
        let before = gguf.find_tensor(tensor.name()).and_then(|tensor| gguf.tensor_bytes(tensor));
        assert_eq!(again.tensor_bytes(tensor), before);
    }
}
