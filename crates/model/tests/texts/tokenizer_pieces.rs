//! SentencePiece-like tokenizers, by score and by merges, with a vocabulary that is small enough to
//! check by hand.

use model::tokenizer::{Control, Decoder, Parts, Special, Tokenizer};

const FIRST: [(&str, i32, f32); 8] = [
    ("<pad>", 3, -1000.0),
    ("<eos>", 3, -1000.0),
    ("<bos>", 3, -1000.0),
    ("<unk>", 2, -1000.0),
    ("<end_of_turn>", 3, -1000.0),
    ("\n\n", 4, -1000.0),
    ("  ", 4, -1000.0),
    ("   ", 4, -1000.0),
];
const LAST: [(&str, i32, f32); 8] = [
    ("▁", 1, -9.0),
    ("a", 1, -8.0),
    ("b", 1, -7.0),
    ("▁a", 1, -1.0),
    ("ab", 1, -2.0),
    ("▁ab", 1, -3.0),
    ("aba", 1, -4.0),
    ("\n", 1, -6.0),
];
const SPACE: u32 = 8 + 256;
const A: u32 = SPACE + 1;
const B: u32 = SPACE + 2;
const SPACE_A: u32 = SPACE + 3;
const AB: u32 = SPACE + 4;
const SPACE_AB: u32 = SPACE + 5;
const ABA: u32 = SPACE + 6;
const NEWLINE: u32 = SPACE + 7;

/// `FIRST`, the 256 bytes, `LAST`.
struct Small {
    tokens: Vec<String>,
    types: Vec<i32>,
    scores: Vec<f32>,
}

impl Small {
    fn new() -> Self {
        let bytes = (0..256).map(|byte| (format!("<0x{byte:02X}>"), 6, -1000.0));
        let named = |&(text, kind, score): &(&str, i32, f32)| (text.to_owned(), kind, score);
        let all: Vec<_> = FIRST.iter().map(named).chain(bytes).chain(LAST.iter().map(named)).collect();
        Small {
            tokens: all.iter().map(|entry| entry.0.clone()).collect(),
            types: all.iter().map(|entry| entry.1).collect(),
            scores: all.iter().map(|entry| entry.2).collect(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            model: "llama",
            tokens: self.tokens.iter().map(String::as_bytes).collect(),
            token_type: Some(self.types.clone()),
            scores: Some(self.scores.clone()),
            bos_token_id: Some(2),
            eos_token_id: Some(1),
            unknown_token_id: Some(3),
            add_space_prefix: Some(false),
            ..Parts::default()
        }
    }

    fn by_merges<'a>(&'a self, merges: &[&'a str]) -> Parts<'a> {
        let merges = merges.iter().map(|merge| merge.as_bytes()).collect();
        Parts { model: "gemma4", merges: Some(merges), ..self.parts() }
    }
}

fn encode(parts: &Parts, text: &str) -> Vec<u32> {
    Tokenizer::from_parts(parts).unwrap().encode(text, Special::Parse).unwrap()
}

#[test]
fn the_best_score_joins_first() {
    let small = Small::new();
    // "▁a" (-1) merges before "ab" (-2); either way the result is "▁ab" (-3).
    assert_eq!(encode(&small.parts(), " ab"), [SPACE_AB]);
    assert_eq!(encode(&small.parts(), " aba"), [SPACE_AB, A]);
    assert_eq!(encode(&small.parts(), " aab"), [SPACE_A, AB]);
    assert_eq!(encode(&small.parts(), "aba"), [ABA]);
    assert_eq!(encode(&small.parts(), "abab"), [AB, AB]);
}

#[test]
fn merges_join_by_rank_and_not_by_score() {
    let small = Small::new();
    let parts = small.by_merges(&["a b", "▁ ab", "ab a", "▁ a"]);
    assert_eq!(encode(&parts, " ab"), [SPACE_AB]);
    assert_eq!(encode(&parts, "aba a"), [ABA, SPACE_A]);
    assert_eq!(encode(&small.by_merges(&["▁ a", "a b"]), " ab"), [SPACE_A, B]);
}

#[test]
fn lines_are_merged_apart_where_the_file_brings_merges() {
    let mut small = Small::new();
    let joined = small.tokens.len() as u32;
    small.tokens.push("\na".to_string());
    small.types.push(1);
    small.scores.push(-0.5);
    assert_eq!(encode(&small.by_merges(&["\n a"]), "b\na"), [B, NEWLINE, A]);
    assert_eq!(encode(&small.parts(), "b\na"), [B, joined]);
}

#[test]
fn unknown_characters_become_their_bytes() {
    let small = Small::new();
    assert_eq!(encode(&small.parts(), "aé"), [A, 8 + 0xC3, 8 + 0xA9]);
    let tokenizer = Tokenizer::from_parts(&small.parts()).unwrap();
    assert_eq!(tokenizer.decode(&[A, 8 + 0xC3, 8 + 0xA9, SPACE_A]), "aé a");
    assert_eq!(tokenizer.decode(&tokenizer.encode("世 🚀\n<0x41>", Special::Text).unwrap()), "世 🚀\n<0x41>");
}

#[test]
fn without_bytes_unknown_runs_become_one_unknown() {
    let small = Small::new();
    let mut parts = small.parts();
    parts.token_type.as_mut().unwrap()[8 + 0xC3] = 5;
    assert_eq!(encode(&parts, "aéübé"), [A, 3, B, 3]);
    assert_eq!(encode(&parts, "é世"), [3, 8 + 0xE4, 8 + 0xB8, 8 + 0x96], "a character that has all its bytes");
    assert!(Tokenizer::from_parts(&parts).unwrap().notes().is_empty());
    parts.unknown_token_id = None;
    let tokenizer = Tokenizer::from_parts(&parts).unwrap();
    assert_eq!(tokenizer.notes().len(), 1);
    assert_eq!(tokenizer.encode("a世", Special::Text).unwrap(), [A, 8 + 0xE4, 8 + 0xB8, 8 + 0x96]);
    let error = tokenizer.encode("aé", Special::Text).unwrap_err().to_string();
    assert!(error.contains("needs the byte 0xC3"), "{error}");
}

#[test]
fn user_defined_line_breaks_match_whole_and_spaces_by_merging() {
    let small = Small::new();
    assert_eq!(encode(&small.parts(), "a\n\n\na"), [A, 5, NEWLINE, A]);
    assert_eq!(encode(&small.parts(), "a  b"), [A, 6, B]);
    // Pairs of spaces merge before triples, from the left. The remaining space merges with the pair
    // beside it.
    assert_eq!(encode(&small.parts(), "     b"), [6, 7, B]);
}

#[test]
fn ordinary_text_never_becomes_a_control_token() {
    let small = Small::new();
    let tokenizer = Tokenizer::from_parts(&small.parts()).unwrap();
    let ids = tokenizer.encode("<bos><unk><0x41>", Special::Text).unwrap();
    assert!(ids.iter().all(|&id| !tokenizer.kind(id).unwrap().is_control()), "{ids:?}");
    assert_eq!(ids[0], 8 + u32::from(b'<'));
    assert_eq!(tokenizer.encode("<bos>", Special::Parse).unwrap(), [2]);
}

#[test]
fn a_space_prefix_is_added_and_taken_away_again() {
    let small = Small::new();
    let parts = Parts { add_space_prefix: Some(true), ..small.parts() };
    let tokenizer = Tokenizer::from_parts(&parts).unwrap();
    let ids = tokenizer.encode("a a", Special::Text).unwrap();
    assert_eq!(ids, [SPACE_A, SPACE_A]);
    assert_eq!(tokenizer.decode(&ids), "a a");
    let mut decoder = Decoder::new(Control::Show);
    let streamed: String = ids.iter().map(|&id| decoder.push(&tokenizer, id).to_owned()).collect();
    assert_eq!(streamed, "a a");
}

#[test]
fn defaults_are_those_of_each_kind() {
    let small = Small::new();
    let bare = Parts { add_space_prefix: None, ..small.parts() };
    assert_eq!(encode(&bare, "a"), [SPACE_A]);
    assert_eq!(encode(&Parts { add_space_prefix: None, ..small.by_merges(&["▁ a"]) }, "a"), [A]);
    let tokenizer = Tokenizer::from_parts(&bare).unwrap();
    assert_eq!((tokenizer.adds_bos(), tokenizer.ends()), (true, &[1, 4][..]));
}

#[test]
fn gemma4_as_ollamas_converter_writes_it_is_gemma4() {
    let mut small = Small::new();
    let ours = Tokenizer::from_parts(&small.by_merges(&["▁ a", "a b"])).unwrap();
    // The file's scores are the ids, its bytes are typed as text, and it denies the BOS that begins
    // every text.
    small.types.iter_mut().filter(|kind| **kind == 6).for_each(|kind| *kind = 1);
    small.scores = (0..small.tokens.len()).map(|id| id as f32).collect();
    let parts =
        Parts { model: "llama", pre: Some("gemma4"), add_bos_token: Some(false), ..small.by_merges(&["▁ a", "a b"]) };
    let theirs = Tokenizer::from_parts(&Parts { add_space_prefix: None, ..parts }).unwrap();
    for text in ["a b ab", " aab\nab", "é<0x41>", "<bos>a<end_of_turn>", "  a"] {
        let ids = ours.encode(text, Special::Parse).unwrap();
        assert_eq!(theirs.encode(text, Special::Parse).unwrap(), ids, "{text:?}");
        assert_eq!(theirs.decode(&ids), ours.decode(&ids), "{text:?}");
    }
    assert_eq!(theirs.encode_prompt("a", Special::Parse).unwrap(), [2, A]);
    assert_eq!(theirs.ends(), ours.ends());
}

#[test]
fn merges_of_pieces_that_gemma4s_vocabulary_lacks_never_apply() {
    let small = Small::new();
    let (whole, more) = (small.by_merges(&["▁ a", "a b"]), small.by_merges(&["no where", "▁ a", "a none", "a b"]));
    for text in ["a b ab", " aab", "nowhere"] {
        assert_eq!(encode(&more, text), encode(&whole, text), "{text:?}");
    }
    assert!(Tokenizer::from_parts(&small.by_merges(&["▁a"])).is_err(), "one that is none is refused");
}

#[test]
fn every_id_of_the_list_of_ends_ends() {
    let small = Small::new();
    let listed = Parts { eos_token_ids: vec![1, 6], ..small.parts() };
    assert_eq!(Tokenizer::from_parts(&listed).unwrap().ends(), [1, 4, 6]);
    let beyond = Parts { eos_token_ids: vec![1, 6000], ..small.parts() };
    let error = Tokenizer::from_parts(&beyond).err().expect("refused").to_string();
    assert!(error.contains("tokenizer.ggml.eos_token_ids") && error.contains("6000"), "{error}");
}

#[test]
fn broken_scores_and_byte_tokens_are_refused_by_their_key() {
    let mut small = Small::new();
    let refusal = |parts: &Parts| Tokenizer::from_parts(parts).err().expect("should be refused").to_string();
    assert!(refusal(&Parts { scores: None, ..small.parts() }).contains("tokenizer.ggml.scores is missing"));
    assert!(
        refusal(&Parts { scores: Some(vec![0.0]), ..small.parts() }).contains("tokenizer.ggml.scores has 1 entries")
    );
    let mut parts = small.parts();
    parts.scores.as_mut().unwrap()[SPACE as usize] = f32::NAN;
    assert!(refusal(&parts).contains(&format!("tokenizer.ggml.scores[{SPACE}]")));
    for bad in ["<0x-1>", "<0xZZ>", "<0x1>", "<0x100>", "0x41", "<0x+1>", ""] {
        small.tokens[8] = bad.to_owned();
        assert!(refusal(&small.parts()).contains("tokenizer.ggml.tokens[8]"), "{bad}");
    }
}
