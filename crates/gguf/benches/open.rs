//! Opening a large file: 5 GB (sparse), 400 tensors, a vocabulary of 151,936 tokens with merges and
//! types.

use std::fs::OpenOptions as FileOptions;
use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use gguf::{GgmlType, Gguf, GgufBuilder, OpenOptions};

const TOKENS: u32 = 151_936;
const TENSORS: u64 = 400;

/// Columns and rows of each tensor: 12.5 MB as F16, 5 GB in all.
const DIMS: [u64; 2] = [2500, 2500];
const TENSOR_BYTES: u64 = 2 * DIMS[0] * DIMS[1];

/// Type number of the placeholder tensors. Each has one byte of data, so the header can be built
/// without 5 GB in memory.
const UNKNOWN_TYPE: u32 = u32::MAX;

/// Writes a header with placeholder tensors, then patches their types and offsets to F16 tensors in
/// a sparse file.
fn make(path: &Path) {
    let tokens: Vec<String> = (0..TOKENS).map(|i| format!("Ġtoken{i}")).collect();
    let merges: Vec<String> = (0..TOKENS - 549).map(|i| format!("Ġto ken{i}")).collect();
    let mut builder = GgufBuilder::new()
        .set("general.architecture", "qwen3")
        .set("tokenizer.ggml.tokens", tokens)
        .set("tokenizer.ggml.token_type", vec![1i32; TOKENS as usize])
        .set("tokenizer.ggml.merges", merges);
    for i in 0..TENSORS {
        builder = builder.tensor_of_number(format!("blk.{i}.weight"), &DIMS, UNKNOWN_TYPE, vec![0u8]);
    }
    let mut bytes = builder.to_bytes().expect("a header");
    let header_end = bytes.len() - (TENSORS * 32) as usize;
    bytes.truncate(header_end);
    // Each info ends with type and offset: u32, u64. The placeholders lie 32 bytes apart.
    for i in 0..TENSORS {
        let old = [UNKNOWN_TYPE.to_le_bytes().as_slice(), &(32 * i).to_le_bytes()].concat();
        let new =
            [(GgmlType::F16 as u32).to_le_bytes().as_slice(), &(TENSOR_BYTES.next_multiple_of(32) * i).to_le_bytes()]
                .concat();
        let at = bytes.windows(12).rposition(|window| window == old).expect("the info");
        bytes[at..at + 12].copy_from_slice(&new);
    }
    let mut file = FileOptions::new().write(true).create(true).truncate(true).open(path).expect("a file");
    file.write_all(&bytes).expect("room");
    file.seek(SeekFrom::Start(0)).expect("a regular file");
    file.set_len(header_end as u64 + TENSOR_BYTES.next_multiple_of(32) * TENSORS).expect("a sparse file");
}

/// Peak resident memory of this process in bytes, if the system reports it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn open(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.gguf");
    // Making the file needs far more memory than reading it. It runs in another process, so that
    // the peak here is the reader's.
    if let Some(target) = std::env::var_os("GGUF_BENCH_MAKE") {
        make(Path::new(&target));
        std::process::exit(0);
    }
    let own = std::env::current_exe().expect("this program");
    let made = std::process::Command::new(own).arg("--bench").env("GGUF_BENCH_MAKE", &path).status().expect("a child");
    assert!(made.success());

    let before = peak_bytes();
    let gguf = Gguf::open(&path).expect("the file");
    let after = peak_bytes();
    assert_eq!(gguf.tensors().len() as u64, TENSORS);
    assert!(gguf.source().len_bytes() > 5_000_000_000);
    if let (Some(before), Some(after)) = (before, after) {
        println!("open raises the peak of resident memory by {:.1} MB", (after - before) as f64 / 1e6);
        assert!(after - before < 60_000_000);
    }
    drop(gguf);

    for mmap in [false, true] {
        let name = if mmap { "open mapped" } else { "open by reads" };
        c.bench_function(name, |b| {
            b.iter(|| black_box(Gguf::open_with(&path, OpenOptions::default().mmap(mmap)).expect("the file")))
        });
    }
    let gguf = Gguf::open(&path).expect("the file");
    c.bench_function("walk the tokens", |b| {
        b.iter(|| {
            let tokens: gguf::Array = gguf.get("tokenizer.ggml.tokens").expect("tokens");
            tokens.strs().expect("strings").map(|token| token.map_or(0, str::len)).sum::<usize>()
        })
    });
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = open }
criterion_main!(benches);
