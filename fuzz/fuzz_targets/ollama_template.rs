//! A template of Ollama's, drawn from a grammar of Go templates: 48 bytes choose the conversation,
//! the others the template.

#![no_main]

#[path = "../../crates/model/tests/common/counting.rs"]
mod counting;
#[path = "../../crates/model/tests/drawn/draw/mod.rs"]
mod draw;
mod render;

use draw::Draw;
use model::chat::{ChatError, ChatTemplate};

#[global_allocator]
static HEAP: counting::Counting = counting::Counting::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (conversation, template) = bytes.split_at(bytes.len().min(48));
    let depth = usize::from(template.first().copied().unwrap_or(0) % 8);
    let go = Draw::Bytes(template.get(1..).unwrap_or_default()).go(depth, false);
    let Ok(source) = model::ollama::jinja(&go) else { return };
    match ChatTemplate::new(&source, &render::TOKENIZER).check() {
        Ok(()) | Err(ChatError::Limit { .. } | ChatError::Unbounded { .. }) => {}
        Err(error) => panic!("{error}: {go}\nbecame {source}"),
    }
    let (messages, options) = Draw::Bytes(conversation).conversation();
    render::rendered(&HEAP, &source, &messages, &options, bytes.len().is_multiple_of(4));
});
