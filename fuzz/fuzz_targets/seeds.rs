//! Writes small valid inputs for every target, and fuzzes nothing: `cargo run --release --bin seeds
//! -- FOLDER`.

#![no_main]

#[path = "../../crates/model/tests/common/mod.rs"]
mod common;
#[path = "../../crates/model/tests/common/lora.rs"]
mod lora;

use common::Tiny;
use gguf::{GgmlType, Gguf, GgufBuilder};
use kernels::Executor;
use kernels::testing::kernel::random::Gen;
use lora::Lora;
use model::{KvType, SessionOptions};
use serde_json::json;
use std::path::Path;

/// The sides of the models whose headers are seeds.
fn small(tiny: Tiny) -> Tiny {
    Tiny { embedding: 32, feed_forward: 32, context: 64, ..tiny }
}

/// What stands before the weights.
fn header(bytes: &[u8]) -> &[u8] {
    let file = Gguf::from_bytes(bytes.to_vec()).expect("a good file");
    let data: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
    &bytes[..bytes.len() - data as usize]
}

fn load() -> Vec<Vec<u8>> {
    let tiny = [
        Tiny::qwen2(),
        Tiny::qwen3(),
        Tiny::qwen2moe(),
        Tiny::qwen3moe(),
        Tiny::gemma2(),
        Tiny::gemma3(),
        Tiny::gemma4(),
    ];
    let written = tiny.map(|tiny| small(tiny).file().to_bytes().expect("writes"));
    let goldens = ["qwen2yarn", "qwen3yarn", "gemma3linear", "gemma3n"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens");
    let read = goldens.map(|name| std::fs::read(root.join(name).join(format!("{name}-F16.gguf"))).expect("a golden"));
    written.iter().chain(&read).map(|bytes| header(bytes).to_vec()).collect()
}

/// A file with one block of each type.
fn parse() -> Vec<Vec<u8>> {
    let one = |ty: GgmlType| {
        GgufBuilder::new().tensor(
            "t",
            &[ty.block_size() as u64],
            ty,
            vec![0x3c; ty.row_bytes(ty.block_size()).expect("a block")],
        )
    };
    let mut files: Vec<_> = GgmlType::ALL.iter().map(|&ty| one(ty).to_bytes().expect("writes")).collect();
    let keys = GgufBuilder::new().set("a", 1_u8).set("b", -1_i64).set("c", 0.5_f32).set("d", true).set("e", "text");
    files.push(keys.set("f", vec!["x", "y"]).set("g", vec![1_i32, 2]).to_bytes().expect("writes"));
    files
}

fn adapter() -> Vec<Vec<u8>> {
    let lora = Lora::whole(&Tiny::narrow(), 1, 1);
    let few = Lora::random(&Tiny::narrow(), 1, 1, &["attn_q"]);
    let peft = |lora: &Lora, ty| [lora.config("").as_bytes(), &[0], &lora::safetensors(&lora.tensors(ty))].concat();
    let gguf = |lora: &Lora| lora.builder("qwen3", GgmlType::F16).to_bytes().expect("writes");
    vec![peft(&few, GgmlType::F32), peft(&few, GgmlType::BF16), peft(&lora, GgmlType::F16), gguf(&few), gguf(&lora)]
}

/// Saved sessions as the target reads them: without magic number, version and checksums.
fn snapshot() -> Vec<Vec<u8>> {
    let model = Tiny::narrow().on(&Executor::Cpu);
    let saved = |tokens: u32| {
        let mut session = model.session(SessionOptions::default().kv(KvType::F32).context(32)).expect("room");
        session.feed(&(1..=tokens).collect::<Vec<_>>()).expect("fits");
        session.logits(|_, _, _| ()).expect("runs");
        let mut bytes = vec![];
        session.save(&mut bytes).expect("saves");
        let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
        let (header, rows) = (&bytes[16..16 + length], &bytes[16 + length + 32..bytes.len() - 32]);
        [&(length as u16).to_le_bytes()[..], header, rows].concat()
    };
    vec![saved(1), saved(5), saved(20)]
}

fn manifest() -> Vec<Vec<u8>> {
    let digest = |of: &str| format!("sha256:{}", of.repeat(32));
    let layer = |kind: &str| json!({ "mediaType": format!("application/vnd.ollama.image.{kind}"), "digest": digest("ab"), "size": 5 });
    let config =
        json!({ "mediaType": "application/vnd.docker.container.image.v1+json", "digest": digest("01"), "size": 2 });
    let with = |kinds: &[&str]| {
        let layers: Vec<_> = kinds.iter().map(|kind| layer(kind)).collect();
        json!({ "schemaVersion": 2, "config": config, "layers": layers }).to_string().into_bytes()
    };
    vec![with(&["model"]), with(&["model", "params", "template", "system", "adapter", "projector"]), b"{}".to_vec()]
}

fn tokenizer() -> Vec<Vec<u8>> {
    let sections = |head: [u8; 2], parts: [&str; 5]| [&head[..], parts.map(str::as_bytes).join(&0).as_slice()].concat();
    let pieces = "ab\naba\n▁ab\n▁▁\n世";
    vec![
        sections([0, 0], ["ab\naba\nĠa", "", "", "a b\nab a\nĠ a", "ab aba  ab don't 12\r\n 世\u{301}"]),
        sections([1, 0], [pieces, "", "\u{1}\u{2}\u{3}\u{4}", "", "ab aba  ab▁ab\n世界"]),
        sections([2, 16], [pieces, "", "", "a b\nab a\n▁ ab\n▁ ▁", "  ab aba\n\nab"]),
        sections([0, 2], ["<|im_end|>\n<think>\nab", "\u{3}\u{4}\u{1}", "", "a b", "<think>ab<|im_end|>"]),
        sections([2, 11], ["a\nb\n<0x41>\n<unk>", "\u{1}\u{1}\u{6}\u{2}", "", "a b", "abAé"]),
    ]
}

/// Files of examples, each with the bytes that choose texts and options.
fn dataset() -> Vec<Vec<u8>> {
    let call = json!({ "type": "function", "function": { "name": "sun", "arguments": { "in": "Lodz" } } });
    let talk = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Sun?" },
        { "role": "assistant", "content": "", "reasoning_content": "Look.", "tool_calls": [call] },
        { "role": "tool", "content": "yes" },
        { "role": "assistant", "content": "It is." },
        { "role": "user", "content": "Thanks." },
        { "role": "assistant", "content": "<|im_end|>" },
    ]);
    let lines = [
        json!({ "messages": talk, "tools": [call] }),
        json!({ "prompt": "Hi.", "completion": "Ho." }),
        json!({ "instruction": "Add.", "input": "1 and 2", "output": "3" }),
        json!({ "text": "Once upon a time.<|im_end|>" }),
        json!({ "ids": [1, 2, 3], "targets": [-100, 3, 4], "weights": [0, 1, 0.5] }),
    ];
    let mut files: Vec<Vec<u8>> =
        (0..).zip(&lines).map(|(n, line)| format!("{}\0\u{7f}{line}\n", char::from(n)).into_bytes()).collect();
    let all: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    files.push(format!("\u{3}\u{4}\u{60}{}\n\nbad\n", all.join("\n")).into_bytes());
    files.push(b"\x02\x08\x0cSome text\nwith lines, words and \xc3\xa9.\n\n\xff\nMore.".to_vec());
    files
}

/// Choices for a grammar.
fn drawn() -> Vec<Vec<u8>> {
    let mut g = Gen::new(18);
    (0..60).map(|n| (0..60 + n * 8).map(|_| (g.bits() >> 7) as u8).collect()).collect()
}

fn write(folder: &str) -> std::io::Result<()> {
    let all = [
        ("parse", parse()),
        ("load", load()),
        ("template", drawn()),
        ("ollama_template", drawn()),
        ("tokenizer", tokenizer()),
        ("snapshot", snapshot()),
        ("adapter", adapter()),
        ("manifest", manifest()),
        ("dataset", dataset()),
    ];
    for (target, inputs) in all {
        let folder = Path::new(folder).join(target);
        std::fs::create_dir_all(&folder)?;
        println!("{target}: {:?} bytes", inputs.iter().map(Vec::len).collect::<Vec<_>>());
        for (n, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{n:02}")), input)?;
        }
    }
    Ok(())
}

// Code that counts its edges links only with libFuzzer, whose main function calls this.
libfuzzer_sys::fuzz_target!(
    init: {
        write(&std::env::args().nth(1).expect("name a folder")).expect("a folder to write to");
        // No input follows.
        if true {
            std::process::exit(0)
        }
    },
    |_bytes: &[u8]| {}
);
