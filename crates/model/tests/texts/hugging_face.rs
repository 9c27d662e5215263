//! The three kinds of tokenizer compared with Hugging Face's `tokenizers`, both built from the same
//! vocabulary and merges.

use crate::texts::{self, Random};
use model::tokenizer::{Parts, Special, Tokenizer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::BpeTrainer;
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::{NormalizedString, Normalizer};

/// Random strings per kind.
const STRINGS: usize = 10_000;
/// Number of merges in the trained vocabularies.
const MERGES: usize = 700;

/// The same tokenizer twice: theirs and ours.
struct Twins {
    theirs: tokenizers::Tokenizer,
    ours: Tokenizer,
    /// Removes characters whose properties differ between the two versions of Unicode: `tokenizers`
    /// normalizes by 9.0.
    newer: Option<Replace>,
    /// Whether a space is added before each stretch of text. Decoding removes only the first one.
    spaced: bool,
}

/// The content of both a `tokenizer.json` and a GGUF file.
struct Vocabulary {
    tokens: Vec<String>,
    /// With the numbers of `tokenizer.ggml.token_type`.
    types: Vec<i32>,
    merges: Vec<[String; 2]>,
}

/// The pieces and merges that Hugging Face's trainer finds in the made-up text. `pipeline` is a
/// `tokenizer.json` without a model.
fn train(pipeline: &Value, alphabet: impl IntoIterator<Item = char>) -> Vocabulary {
    let mut empty = pipeline.clone();
    empty["model"] = json!({ "type": "BPE", "vocab": {}, "merges": [] });
    let mut tokenizer: tokenizers::Tokenizer = serde_json::from_value(empty).expect("a pipeline");
    let alphabet: Vec<char> = alphabet.into_iter().collect();
    let size = alphabet.len() + MERGES;
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size)
        .initial_alphabet(alphabet.into_iter().collect())
        .build();
    tokenizer.train(&mut TrainerWrapper::BpeTrainer(trainer), texts::training().into_iter()).expect("trains");
    let json: Value = serde_json::from_str(&tokenizer.to_string(false).expect("JSON")).expect("JSON");
    let mut ids: Vec<(u64, &String)> =
        json["model"]["vocab"].as_object().expect("a map").iter().map(|(t, id)| (id.as_u64().unwrap(), t)).collect();
    ids.sort_unstable();
    let merges: Vec<[String; 2]> = serde_json::from_value(json["model"]["merges"].clone()).expect("pairs");
    assert!(merges.len() > MERGES / 3, "{} merges", merges.len());
    Vocabulary { tokens: ids.iter().map(|(_, token)| token.to_string()).collect(), types: vec![1; ids.len()], merges }
}

impl Vocabulary {
    fn push(&mut self, token: &str, ty: i32) {
        self.tokens.push(token.to_string());
        self.types.push(ty);
    }

    /// Adds SentencePiece's first tokens in front of the pieces: control tokens, runs of line
    /// breaks and of spaces, bytes.
    fn sentence_piece(self, runs: i32) -> Self {
        let mut all = Self { tokens: vec![], types: vec![], merges: self.merges };
        ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"].into_iter().for_each(|name| all.push(name, 3));
        all.push("<unk>", 2);
        (1..=3).for_each(|n| all.push(&"\n".repeat(n), runs));
        // llama.cpp's converter writes user-defined runs of spaces as plain spaces.
        (2..=5).for_each(|n| all.push(&if runs == 4 { " " } else { "▁" }.repeat(n), runs));
        (0..=255).for_each(|byte| all.push(&format!("<0x{byte:02X}>"), 6));
        let known: Vec<String> = all.theirs().collect();
        self.tokens.iter().filter(|token| !known.contains(token)).for_each(|token| all.push(token, 1));
        all
    }

    /// The tokens in the spelling of `tokenizer.json`.
    fn theirs(&self) -> impl Iterator<Item = String> {
        let blank = |token: &str| token.chars().all(|c| c == ' ');
        self.tokens.iter().map(move |token| if blank(token) { "▁".repeat(token.len()) } else { token.clone() })
    }

    /// The merges that transformers derives from a SentencePiece model: for each piece in order,
    /// all ways to cut it, the longer left part first.
    fn cuts(&self) -> Vec<[String; 2]> {
        let theirs: Vec<String> = self.theirs().collect();
        let pieces: std::collections::HashSet<&str> =
            theirs.iter().zip(&self.types).filter(|(_, ty)| [1, 4].contains(*ty)).map(|(t, _)| t.as_str()).collect();
        let cut = |piece: &str| -> Vec<[String; 2]> {
            let ways = piece.char_indices().rev().map(|(at, _)| piece.split_at(at));
            let ways = ways.filter(|(left, right)| pieces.contains(left) && pieces.contains(right));
            ways.map(|(left, right)| [left.to_string(), right.to_string()]).collect()
        };
        theirs.iter().filter(|piece| pieces.contains(piece.as_str())).flat_map(|piece| cut(piece)).collect()
    }

    /// `pipeline` with this vocabulary as its model and with its added tokens.
    fn tokenizer_json(
        &self,
        mut pipeline: Value,
        merges: &[[String; 2]],
        byte_fallback: bool,
    ) -> tokenizers::Tokenizer {
        let vocab: serde_json::Map<String, Value> =
            self.theirs().enumerate().map(|(id, token)| (token, id.into())).collect();
        let unknown = byte_fallback.then_some("<unk>");
        pipeline["model"] = json!({ "type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": byte_fallback, "fuse_unk": true, "unk_token": unknown });
        let added = self.theirs().enumerate().filter(|(id, _)| [2, 3, 4].contains(&self.types[*id]));
        pipeline["added_tokens"] = added.map(|(id, content)| {
            let special = self.types[id] != 4;
            json!({ "id": id, "content": content, "special": special, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false })
        }).collect();
        serde_json::from_value(pipeline).expect("a tokenizer.json")
    }

    fn parts(&self) -> Parts<'_> {
        let tokens = self.tokens.iter().map(String::as_bytes).collect();
        Parts { tokens, token_type: Some(self.types.clone()), add_space_prefix: Some(false), ..Parts::default() }
    }
}

fn merged(merges: &[[String; 2]]) -> Vec<String> {
    merges.iter().map(|pair| pair.join(" ")).collect()
}

fn bytes(merges: &[String]) -> Option<Vec<&[u8]>> {
    Some(merges.iter().map(String::as_bytes).collect())
}

/// Qwen's tokenizer: NFC, the pre-tokenizer's regular expression, bytes.
fn byte_level() -> Twins {
    let pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let bytes_json =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false });
    let split = json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
    let pipeline = json!({
        "version": "1.0", "normalizer": { "type": "NFC" }, "decoder": bytes_json, "post_processor": null, "added_tokens": [],
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [split, bytes_json] },
    });
    let mut vocabulary = train(&pipeline, tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet());
    ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].into_iter().for_each(|name| vocabulary.push(name, 3));
    ["<think>", "</think>"].into_iter().for_each(|name| vocabulary.push(name, 4));
    let theirs = vocabulary.tokenizer_json(pipeline, &vocabulary.merges, false);
    let newer = Some(Replace::new(ReplacePattern::Regex(r"[^\p{Age:9.0}]".into()), "").expect("an expression"));
    let merges = merged(&vocabulary.merges);
    let parts = Parts { model: "gpt2", pre: Some("qwen2"), merges: bytes(&merges), ..vocabulary.parts() };
    Twins { theirs, ours: Tokenizer::from_parts(&parts).expect("a tokenizer"), newer, spaced: false }
}

/// Spaces become U+2581; text is not cut.
fn sentence_piece_pipeline() -> Value {
    json!({
        "version": "1.0", "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "pre_tokenizer": null, "post_processor": null, "decoder": null, "added_tokens": [],
    })
}

/// The tokenizer of Gemma 2 and 3: merges by score.
fn by_score(space_prefix: bool) -> Twins {
    let mut pipeline = sentence_piece_pipeline();
    let vocabulary = train(&pipeline, ['\u{2581}']).sentence_piece(4);
    if space_prefix {
        let prepend = json!({ "type": "Prepend", "prepend": "▁" });
        pipeline["normalizer"] = json!({ "type": "Sequence", "normalizers": [prepend, pipeline["normalizer"]] });
    }
    let theirs = vocabulary.tokenizer_json(pipeline, &vocabulary.cuts(), true);
    let scores =
        (0..vocabulary.tokens.len()).map(|id| if vocabulary.types[id] == 1 { -(id as f32) } else { -1000.0 }).collect();
    let unknown = vocabulary.types.iter().position(|&ty| ty == 2).map(|id| id as u32);
    let parts = Parts {
        model: "llama",
        scores: Some(scores),
        unknown_token_id: unknown,
        add_space_prefix: Some(space_prefix),
        ..vocabulary.parts()
    };
    Twins { theirs, ours: Tokenizer::from_parts(&parts).expect("a tokenizer"), newer: None, spaced: space_prefix }
}

/// Gemma 4's tokenizer: the same spelling, merges from a list, runs of line breaks and of spaces
/// first.
fn by_merges() -> Twins {
    let pipeline = sentence_piece_pipeline();
    let mut vocabulary = train(&pipeline, ['\u{2581}']).sentence_piece(1);
    let mut merges: Vec<[String; 2]> = vocabulary
        .cuts()
        .into_iter()
        .filter(|[left, right]| {
            [left, right].iter().all(|half| half.chars().all(|c| c == '\n') || half.chars().all(|c| c == '▁'))
        })
        .collect();
    merges.extend(vocabulary.merges.iter().filter(|merge| !merges.contains(merge)).cloned().collect::<Vec<_>>());
    vocabulary.merges = merges;
    let theirs = vocabulary.tokenizer_json(pipeline, &vocabulary.merges, true);
    let merges = merged(&vocabulary.merges);
    let parts = Parts { model: "gemma4", merges: bytes(&merges), ..vocabulary.parts() };
    Twins { theirs, ours: Tokenizer::from_parts(&parts).expect("a tokenizer"), newer: None, spaced: false }
}

impl Twins {
    /// Checks that both give the same ids, with and without parsing special tokens, and that our
    /// ids decode to the text.
    #[track_caller]
    fn agree(&mut self, text: &str) {
        let mut known = NormalizedString::from(text);
        self.newer.iter().for_each(|newer| newer.normalize(&mut known).expect("replaces"));
        let text = known.get();
        for special in [Special::Parse, Special::Text] {
            self.theirs.set_encode_special_tokens(special == Special::Text);
            let theirs = self.theirs.encode_fast(text, false).expect("encodes");
            let ours = self.ours.encode(text, special).unwrap();
            assert_eq!(ours, theirs.get_ids(), "{text:?}, {special:?}");
            if !self.spaced {
                assert_eq!(self.ours.decode(&ours), self.ours.normalize(text), "{text:?}");
            }
        }
    }

    fn agree_on_everything(mut self) {
        texts::chosen().for_each(|text| self.agree(&text));
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        (0..STRINGS).for_each(|_| self.agree(&texts::random(&mut random)));
        self.hurry();
    }

    /// Checks that a megabyte takes less than two seconds, both of words and of line breaks only.
    /// The best of a few attempts counts. The measure is this thread's processor time, if the
    /// system provides it, because other tests run at the same time.
    fn hurry(&self) {
        for part in [texts::training().join("\n").as_str(), "\n"] {
            let text = part.repeat((1 << 20) / part.len() + 1);
            let attempt = || {
                let (began, busy) = (Instant::now(), busy());
                assert!(!self.ours.encode(&text, Special::Parse).unwrap().is_empty());
                busy.zip(self::busy()).map_or(began.elapsed(), |(before, after)| after - before)
            };
            let quick = (0..5).any(|_| attempt() < Duration::from_secs(2));
            assert!(quick, "{} bytes of {:?}", text.len(), part.chars().take(20).collect::<String>());
        }
    }
}

/// Processor time of this thread; `None` if the system does not provide it.
fn busy() -> Option<Duration> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(counts.split(' ').next()?.parse().ok()?)).filter(|busy| !busy.is_zero())
}

#[test]
fn byte_level_with_qwens_words() {
    byte_level().agree_on_everything();
}

#[test]
fn pieces_by_score_as_in_gemma_2_and_3() {
    by_score(false).agree_on_everything();
}

#[test]
fn pieces_by_score_behind_an_added_space() {
    by_score(true).agree_on_everything();
}

#[test]
fn pieces_by_merges_as_in_gemma_4() {
    by_merges().agree_on_everything();
}
