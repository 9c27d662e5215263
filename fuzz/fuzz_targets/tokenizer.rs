//! A vocabulary and a text. Two bytes choose the kind; zeros part the lines of tokens, the types,
//! the scores, the lines of merges, and the text.

#![no_main]

#[path = "../../crates/model/tests/common/counting.rs"]
mod counting;

use model::tokenizer::{Control, Decoder, Parts, Special, Tokenizer};

#[global_allocator]
static HEAP: counting::Counting = counting::Counting::new();

/// The 256 bytes as vocabularies of bytes spell them, then as `<0x41>`, with a space.
static BYTES: std::sync::LazyLock<[Vec<String>; 2]> = std::sync::LazyLock::new(|| {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    // Without a piece for it, a space would be encoded as the bytes of U+2581, and come back as
    // them.
    let pieces = (0..=255).map(|byte| format!("<0x{byte:02X}>")).chain(["▁".to_string()]);
    [(0..=255).map(|byte| spell(byte).to_string()).collect(), pieces.collect()]
});

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    if bytes.is_empty() { vec![] } else { bytes.split(|byte| *byte == b'\n').collect() }
}

/// Bytes of the data as a file stores it: strings have their lengths in 8 bytes.
fn stored_bytes(parts: &Parts) -> usize {
    let strings = parts.tokens.iter().chain(parts.merges.iter().flatten());
    let numbers = parts.token_type.as_ref().map_or(0, Vec::len) + parts.scores.as_ref().map_or(0, Vec::len);
    strings.map(|text| text.len() + 8).sum::<usize>() + 4 * numbers
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let &[kind, flags, ref rest @ ..] = bytes else { return };
    let mut sections = rest.splitn(5, |byte| *byte == 0);
    let [own, types, scores, merges, text] = [(); 5].map(|()| sections.next().unwrap_or_default());
    let model = ["gpt2", "llama", "gemma4", "other"][usize::from(kind % 4)];
    // With all bytes, and only normal tokens besides, every text comes back as it was.
    let (whole, sound) = (flags & 1 == 0, flags & 3 == 0);
    let spelled = &BYTES[usize::from(model != "gpt2")];
    let bytes_of = if whole { spelled.as_slice() } else { &[] };
    let tokens: Vec<&[u8]> = bytes_of.iter().map(|text| text.as_bytes()).chain(lines(own)).collect();
    let byte_type = if model == "gpt2" { 1 } else { 6 };
    let type_of = |at: usize| if sound { 1 } else { types.get(at).map_or(1, |byte| i32::from(byte % 8)) };
    let parts = Parts {
        model,
        pre: [None, Some("qwen2"), Some("qwen35"), Some("gemma4")][usize::from(kind >> 2) % 4],
        token_type: Some(
            (0..tokens.len())
                .map(|at| at.checked_sub(bytes_of.len()).map_or(if at < 256 { byte_type } else { 1 }, type_of))
                .collect(),
        ),
        scores: Some(
            (0..tokens.len()).map(|at| -f32::from(scores.get(at % 64).copied().unwrap_or(at as u8))).collect(),
        ),
        merges: Some(lines(merges)),
        bos_token_id: (flags & 4 != 0).then_some(u32::from(flags)),
        unknown_token_id: (flags & 8 != 0).then_some(0),
        add_space_prefix: [None, Some(true), Some(false)][usize::from(flags >> 4) % 3],
        tokens,
        ..Parts::default()
    };
    let (tokenizer, most) = HEAP.most_during(|| Tokenizer::from_parts(&parts));
    assert!(most <= 16 * stored_bytes(&parts) + (64 << 20), "{most} bytes for {} in a file", stored_bytes(&parts));
    let Ok(tokenizer) = tokenizer else { return };
    let text = String::from_utf8_lossy(text);
    for special in [Special::Parse, Special::Text] {
        let Ok(ids) = tokenizer.encode(&text, special) else {
            assert!(!whole, "{text:?} is not encoded");
            continue;
        };
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()), "{text:?} became {ids:?}");
        let decoded = tokenizer.decode(&ids);
        assert!(!sound || decoded == tokenizer.normalize(&text), "{text:?} became {decoded:?}");
        let mut decoder = Decoder::new(Control::Show);
        let mut streamed: String = ids.iter().map(|&id| decoder.push(&tokenizer, id).to_owned()).collect();
        streamed.push_str(decoder.finish());
        assert_eq!(streamed, decoded);
    }
});
