//! A file of examples. Three bytes choose the model's texts and the options; the rest is the file.

#![no_main]

#[path = "../../crates/train/tests/data/common.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../crates/model/tests/common/counting.rs"]
mod counting;

use common::{data, gemma3, gemma4, options, qwen2, qwen3, stream};
use std::sync::LazyLock;
use train::{Document, Learn, Longer, Texts};

#[global_allocator]
static HEAP: counting::Counting = counting::Counting::new();

static TEXTS: LazyLock<[Texts; 5]> = LazyLock::new(|| [qwen2(), qwen3(), gemma3(), gemma4(), qwen2().raw()]);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let &[of, flags, length, ref file @ ..] = bytes else { return };
    let texts = &TEXTS[usize::from(of) % TEXTS.len()];
    let options = options()
        .length(u32::from(length) + 1)
        .longer(if flags & 1 == 0 { Longer::Cut } else { Longer::Drop })
        .learn(if flags & 2 == 0 { Learn::Completions } else { Learn::All })
        .skip_bad(flags & 4 == 0);
    let name = if flags & 8 == 0 { "file.jsonl" } else { "file" };
    let mut once = stream(name, file, texts.clone(), &options);
    let (read, most) = HEAP.most_during(|| once.next(u32::MAX));
    // Each turn of a conversation is rendered with the turns before it. Gzip makes at most 1032
    // bytes of one.
    let packed = file.starts_with(b"\x1f\x8b");
    let bytes = if packed { 1032 * file.len() } else { file.len() };
    assert!(most <= 4096 * bytes + (16 << 20), "{most} bytes for a file of {}", file.len());
    for document in read.iter().flatten() {
        let Document { ids, targets, weights, .. } = document;
        assert!(!ids.is_empty() && ids.len() <= options.length as usize && targets.len() == ids.len());
        assert!(weights.is_empty() || weights.len() == ids.len());
        assert!(texts.pieces(document).iter().any(|piece| piece.learnt));
    }
    match (data(name, file, texts.clone(), &options), read) {
        (Ok(data), Ok(read)) => {
            assert_eq!(data.counts(), once.counts());
            let found = (0..data.len()).rev().map(|n| data.documents(n).expect("as before"));
            let mut found: Vec<Vec<Document>> = found.collect();
            found.reverse();
            assert_eq!(found.concat(), read);
        }
        (Err(train::Error::NoExample { .. } | train::Error::Empty { .. }), Ok(read)) => assert!(read.is_empty()),
        // A stream is read before all of it is unpacked.
        (Err(_), _) if packed => {}
        (Err(indexed), Err(streamed)) => assert_eq!(indexed.to_string(), streamed.to_string()),
        (indexed, streamed) => panic!("{:?} by an index, {streamed:?} as a stream", indexed.map(|data| data.counts())),
    }
});
