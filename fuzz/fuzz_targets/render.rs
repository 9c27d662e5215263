//! The check of every chat template: it renders or is refused within its limits, and it leaves
//! nothing in memory.

use crate::counting::Counting;
use crate::draw;
use model::chat::{ChatTemplate, Message, RenderOptions};
use model::tokenizer::Tokenizer;
use std::sync::LazyLock;

/// Bytes of values and of output, and what the engine takes besides.
const MOST_BYTES: usize = 128 << 20;

/// Bytes that the tokenizer needs for each byte of a text.
const BYTES_OF_A_BYTE: usize = 48;

pub static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let tokenizer = draw::tokenizer();
    // The engine makes tables that it keeps.
    let _ = ChatTemplate::new("{{ 1 | string }}", &tokenizer).render(&[], &RenderOptions::default());
    tokenizer
});

/// `whole` also keeps the messages out of control tokens.
pub fn rendered(heap: &Counting, source: &str, messages: &[Message], options: &RenderOptions, whole: bool) {
    let tokenizer: &Tokenizer = &TOKENIZER;
    let render = || {
        let template = ChatTemplate::new(source, tokenizer);
        match whole {
            true => template.encode(tokenizer, messages, options).map_or(0, |ids| ids.len()),
            false => template.render(messages, options).map_or(0, |text| text.len()),
        }
    };
    let before = heap.live_bytes();
    let (length, most) = heap.most_during(render);
    assert!(length <= 16 << 20, "{length} bytes of output: {source}");
    // The tokenizer needs memory for each byte of a long word, and for the ids.
    let text = || ChatTemplate::new(source, tokenizer).render(messages, options).map_or(0, |text| text.len());
    let most_bytes = MOST_BYTES + if whole && most > MOST_BYTES { BYTES_OF_A_BYTE * text() } else { 0 };
    assert!(most <= most_bytes, "{most} bytes, {most_bytes} allowed: {source}");
    let after = heap.live_bytes();
    if after != before {
        // What the engine keeps, it makes once.
        render();
        assert_eq!(heap.live_bytes(), after, "bytes stay: {source}");
    }
}
