//! A chat template drawn from a grammar of Jinja: 48 bytes choose the conversation, the others the
//! template.

#![no_main]

#[path = "../../crates/model/tests/common/counting.rs"]
mod counting;
#[path = "../../crates/model/tests/drawn/draw/mod.rs"]
mod draw;
mod render;

use draw::Draw;

#[global_allocator]
static HEAP: counting::Counting = counting::Counting::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (conversation, template) = bytes.split_at(bytes.len().min(48));
    let depth = usize::from(template.first().copied().unwrap_or(0) % 5);
    let source = Draw::Bytes(template.get(1..).unwrap_or_default()).jinja(depth);
    let (messages, options) = Draw::Bytes(conversation).conversation();
    render::rendered(&HEAP, &source, &messages, &options, bytes.len().is_multiple_of(4));
});
