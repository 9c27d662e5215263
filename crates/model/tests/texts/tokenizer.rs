//! Byte-level BPE with a vocabulary that is small enough to check by hand.

use model::tokenizer::{Control, Decoder, Kind, Parts, Special, Tokenizer, golden};

/// The 256 bytes as ids 0 to 255 in order, then the results of `MERGES`, then `ADDED`.
struct Small {
    tokens: Vec<String>,
    types: Vec<i32>,
    merges: Vec<String>,
}

const MERGES: [&str; 9] = ["h e", "l l", "he ll", "Ġ hell", "a a", "aa aa", "Ã ©", "Ġ a", "e l"];
const ADDED: [(&str, i32); 6] = [
    ("<|endoftext|>", 3),
    ("<|im_start|>", 3),
    ("<|im_end|>", 3),
    ("<think>", 4),
    ("<|im_start|>user", 3),
    ("[PAD]", 5),
];

fn spell(byte: u8) -> char {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if hidden(byte) {
        char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap()
    } else {
        byte as char
    }
}

impl Small {
    fn new() -> Self {
        let merges: Vec<String> = MERGES.map(String::from).to_vec();
        let bytes = (0..=255).map(|byte| spell(byte).to_string());
        let mut tokens: Vec<String> = bytes.chain(merges.iter().map(|merge| merge.replace(' ', ""))).collect();
        let mut types = vec![1; tokens.len()];
        tokens.extend(ADDED.map(|(name, _)| name.to_owned()));
        types.extend(ADDED.map(|(_, kind)| kind));
        Small { tokens, types, merges }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            model: "gpt2",
            pre: Some("qwen2"),
            tokens: self.tokens.iter().map(String::as_bytes).collect(),
            token_type: Some(self.types.clone()),
            merges: Some(self.merges.iter().map(String::as_bytes).collect()),
            eos_token_id: Some(267),
            ..Parts::default()
        }
    }

    fn build(&self) -> Tokenizer {
        Tokenizer::from_parts(&self.parts()).unwrap()
    }
}

#[test]
fn merges_follow_rank_not_length() {
    let tokenizer = Small::new().build();
    assert_eq!(tokenizer.encode("hell", Special::Text).unwrap(), [258]);
    assert_eq!(tokenizer.encode(" hell", Special::Text).unwrap(), [259]);
    // "e l" ranks after "l l", so it merges only if no second l follows.
    assert_eq!(tokenizer.encode("ell", Special::Text).unwrap(), [u32::from(b'e'), 257]);
    assert_eq!(tokenizer.encode("el", Special::Text).unwrap(), [264]);
    assert_eq!(tokenizer.encode("", Special::Parse).unwrap(), [0; 0]);
}

#[test]
fn a_merge_whose_product_was_cut_from_the_vocabulary_never_applies() {
    let mut small = Small::new();
    small.merges.insert(0, "q u".to_string());
    let tokenizer = small.build();
    assert_eq!(tokenizer.encode("qu", Special::Text).unwrap(), [u32::from(b'q'), u32::from(b'u')]);
    assert_eq!(tokenizer.encode("hell", Special::Text).unwrap(), [258]);
}

#[test]
fn composed_and_decomposed_text_are_the_same_ids() {
    let tokenizer = Small::new().build();
    assert_eq!(tokenizer.encode("e\u{301}", Special::Text).unwrap(), [262]);
    assert_eq!(tokenizer.encode("é", Special::Text).unwrap(), [262]);
    assert_eq!(tokenizer.normalize("e\u{301}"), "é");
}

#[test]
fn every_byte_sequence_comes_back() {
    let tokenizer = Small::new().build();
    let text: String = (0..0x11_0000).step_by(61).filter_map(char::from_u32).collect();
    for special in [Special::Parse, Special::Text] {
        assert_eq!(tokenizer.decode(&tokenizer.encode(&text, special).unwrap()), tokenizer.normalize(&text));
    }
    let all: Vec<u32> = (0..256).collect();
    assert_eq!(tokenizer.decode_bytes(&all), (0..=255).collect::<Vec<u8>>());
}

#[test]
fn control_tokens_are_parsed_only_where_asked() {
    let tokenizer = Small::new().build();
    assert_eq!(tokenizer.encode("<|im_end|>", Special::Parse).unwrap(), [267]);
    let ids = tokenizer.encode("<|im_end|>", Special::Text).unwrap();
    assert!(ids.iter().all(|&id| !tokenizer.kind(id).unwrap().is_control()), "{ids:?}");
    assert_eq!(tokenizer.decode(&ids), "<|im_end|>");
}

#[test]
fn user_defined_tokens_are_found_in_both_modes() {
    let tokenizer = Small::new().build();
    for special in [Special::Parse, Special::Text] {
        assert_eq!(tokenizer.encode("a<think>a", special).unwrap(), [97, 268, 97]);
    }
}

#[test]
fn the_longest_added_token_wins_and_free_slots_never_match() {
    let tokenizer = Small::new().build();
    assert_eq!(tokenizer.encode("<|im_start|>user", Special::Parse).unwrap(), [269]);
    assert_eq!(tokenizer.encode("<|im_start|>use", Special::Parse).unwrap(), [266, 117, 115, 101]);
    assert_eq!(tokenizer.encode("[PAD]", Special::Parse).unwrap().len(), 5);
}

#[test]
fn one_word_of_a_megabyte_is_one_word() {
    let tokenizer = Small::new().build();
    let ids = tokenizer.encode(&"a".repeat(1 << 20), Special::Text).unwrap();
    assert_eq!(ids, vec![261; 1 << 18]);
}

#[test]
fn streamed_text_equals_decoded_text_and_never_splits_a_character() {
    let tokenizer = Small::new().build();
    let mut ids: Vec<u32> = "é世🚀a".bytes().map(u32::from).collect();
    // An incomplete character, a lone continuation byte, an overlong form, a surrogate, a control
    // token, an id without a token, an incomplete end.
    ids.extend([0xE4, 97, 0x80, 0xC0, 0x80, 0xED, 0xA0, 0x80, 266, 9999, 0xF0, 0x9F, 0x9A]);
    let mut decoder = Decoder::new(Control::Show);
    let mut pieces: Vec<String> = ids.iter().map(|&id| decoder.push(&tokenizer, id).to_owned()).collect();
    assert_eq!(pieces[..10], ["", "é", "", "", "世", "", "", "", "🚀", "a"]);
    pieces.push(decoder.finish().to_owned());
    assert_eq!(pieces.concat(), tokenizer.decode(&ids));
    assert_eq!(pieces.last().unwrap(), "\u{FFFD}");
}

#[test]
fn a_hiding_decoder_leaves_out_control_tokens_alone() {
    let tokenizer = Small::new().build();
    let mut decoder = Decoder::new(Control::Hide);
    let text: String = [266, 97, 268, 267].iter().map(|&id| decoder.push(&tokenizer, id).to_owned()).collect();
    assert_eq!(text, "a<think>");
}

#[test]
fn generation_ends_on_the_keys_and_on_the_known_names() {
    let small = Small::new();
    let tokenizer =
        Tokenizer::from_parts(&Parts { eot_token_id: Some(5), eom_token_id: Some(7), ..small.parts() }).unwrap();
    assert_eq!(tokenizer.ends(), [5, 7, 265, 267]);
    assert!(tokenizer.is_end(265) && !tokenizer.is_end(266));
    assert_eq!((tokenizer.bos(), tokenizer.adds_bos(), tokenizer.eos()), (None, false, Some(267)));
}

#[test]
fn tokens_are_found_by_the_files_spelling() {
    let tokenizer = Small::new().build();
    assert_eq!(tokenizer.token_to_id("Ġhell"), Some(259));
    assert_eq!(tokenizer.id_to_token(259).as_deref(), Some("Ġhell"));
    assert_eq!((tokenizer.token_bytes(259), tokenizer.token_bytes(9999)), (&b" hell"[..], &b""[..]));
    assert_eq!((tokenizer.id_to_token(9999), tokenizer.kind(9999), tokenizer.token_to_id("")), (None, None, None));
    assert_eq!((tokenizer.vocab_size(), tokenizer.kind(268)), (271, Some(Kind::UserDefined)));
}

#[test]
fn bos_is_added_once() {
    let small = Small::new();
    let parts = Parts { bos_token_id: Some(265), add_bos_token: Some(true), ..small.parts() };
    let tokenizer = Tokenizer::from_parts(&parts).unwrap();
    assert_eq!(tokenizer.encode_prompt("a", Special::Parse).unwrap(), [265, 97]);
    assert_eq!(tokenizer.encode_prompt("<|endoftext|>a", Special::Parse).unwrap(), [265, 97]);
    assert_eq!(tokenizer.encode("a", Special::Parse).unwrap(), [97]);
}

#[test]
fn a_recording_is_checked_and_a_wrong_one_is_noticed() {
    let tokenizer = Small::new().build();
    assert_eq!(golden::check(&tokenizer, r#"[{"text": "hell", "hf": [258]}, {"text": "", "hf": []}]"#).unwrap(), 2);
    assert!(golden::check(&tokenizer, r#"[{"text": "hell", "hf": [256, 257]}]"#).is_err());
    assert!(golden::check(&tokenizer, r#"[{"text": "hell"}]"#).is_err());
}

/// The error for a damaged copy of the vocabulary.
fn refusal(spoil: impl FnOnce(&mut Parts)) -> String {
    let small = Small::new();
    let mut parts = small.parts();
    spoil(&mut parts);
    Tokenizer::from_parts(&parts).err().expect("should be refused").to_string()
}

#[test]
fn broken_files_are_refused_by_the_key_at_fault() {
    let cases = [
        (refusal(|p| p.model = "bert"), "tokenizer.ggml.model is \"bert\""),
        (refusal(|p| p.pre = Some("llama-bpe")), "tokenizer.ggml.pre is \"llama-bpe\""),
        (refusal(|p| p.merges = None), "tokenizer.ggml.merges is missing"),
        (refusal(|p| p.tokens.clear()), "tokenizer.ggml.tokens is empty"),
        (refusal(|p| p.tokens.truncate(260)), "tokenizer.ggml.eos_token_id is 267, outside the 260 tokens"),
        (refusal(|p| p.bos_token_id = Some(u32::MAX)), "tokenizer.ggml.bos_token_id is 4294967295"),
        (refusal(|p| p.padding_token_id = Some(271)), "tokenizer.ggml.padding_token_id is 271"),
        (refusal(|p| p.token_type = Some(vec![1; 270])), "tokenizer.ggml.token_type has 270 entries for 271 tokens"),
        (refusal(|p| p.token_type.as_mut().unwrap()[3] = -1), "tokenizer.ggml.token_type[3] is -1"),
        (refusal(|p| p.token_type.as_mut().unwrap()[4] = 6), "tokenizer.ggml.tokens[4] is \"Ą\", but a byte token"),
        (refusal(|p| p.tokens[270] = b"he"), "tokenizer.ggml.tokens has \"he\" twice, at 256 and 270"),
        (refusal(|p| p.merges.as_mut().unwrap()[1] = b"ll"), "tokenizer.ggml.merges[1] is \"ll\""),
        (refusal(|p| p.merges.as_mut().unwrap()[2] = b"h e l"), "tokenizer.ggml.merges[2]"),
        (refusal(|p| p.merges.as_mut().unwrap()[0] = b" he"), "tokenizer.ggml.merges[0]"),
        (refusal(|p| p.merges.as_mut().unwrap()[8] = b"hehe he"), "tokenizer.ggml.merges[8] needs \"hehe\""),
        (refusal(|p| p.merges.as_mut().unwrap()[8] = b"\xFF \xFE"), "tokenizer.ggml.merges[8] needs"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{found:?} should contain {expected:?}");
    }
}

/// The parts of a changed copy of the vocabulary.
fn built(change: impl FnOnce(&mut Parts)) -> (Tokenizer, Vec<String>) {
    let small = Small::new();
    let mut parts = small.parts();
    change(&mut parts);
    let tokenizer = Tokenizer::from_parts(&parts).unwrap();
    let notes = tokenizer.notes().iter().map(ToString::to_string).collect();
    (tokenizer, notes)
}

#[test]
fn a_file_without_pre_is_cut_as_qwen2_with_a_note() {
    let (named, none) = built(|_| {});
    let (tokenizer, notes) = built(|p| p.pre = None);
    let text = "I've 12 cats\n\n  hell!";
    assert_eq!(tokenizer.encode(text, Special::Text).unwrap(), named.encode(text, Special::Text).unwrap());
    assert!(
        none.is_empty() && notes.len() == 1 && notes[0].starts_with("tokenizer.ggml.pre is missing"),
        "{none:?} {notes:?}"
    );
}

#[test]
fn a_pre_tokenizer_that_names_no_rule_is_a_missing_one() {
    let (_, missing) = built(|p| p.pre = None);
    for nothing in ["", " ", "default"] {
        let (tokenizer, notes) = built(|p| p.pre = Some(nothing));
        assert_eq!(notes, missing, "{nothing:?}");
        assert_eq!(tokenizer.encode(" hell", Special::Text).unwrap(), [259]);
    }
}

#[test]
fn tokens_of_turns_are_control_tokens_whatever_their_type_with_a_note() {
    let turns = [("<|endoftext|>", 265), ("<|im_start|>", 266), ("<|im_end|>", 267)];
    // Normal, user-defined, unused, and no types at all.
    for kind in [Some(1), Some(4), Some(5), None] {
        let (tokenizer, notes) = built(|p| match kind {
            Some(kind) => p.token_type.as_mut().unwrap()[265..268].fill(kind),
            None => p.token_type = None,
        });
        let named = "control tokens of <|endoftext|>, <|im_start|>, <|im_end|>; they end";
        assert!(notes.len() == 1 && notes[0].contains(named), "{kind:?}: {notes:?}");
        for (name, id) in turns {
            assert_eq!((tokenizer.kind(id), tokenizer.control(name)), (Some(Kind::Control), Some(id)));
            assert_eq!(tokenizer.encode(name, Special::Parse).unwrap(), [id]);
            assert!(!tokenizer.encode(name, Special::Text).unwrap().contains(&id), "{name} in a text from a user");
        }
        assert_eq!(tokenizer.ends(), [265, 267]);
    }
}

#[test]
fn tokens_that_keys_name_as_ends_are_control_tokens_but_for_bytes() {
    let keys: [fn(&mut Parts); 4] = [
        |p| p.eos_token_id = Some(268),
        |p| p.eot_token_id = Some(268),
        |p| p.eom_token_id = Some(268),
        |p| p.eos_token_ids = vec![268],
    ];
    for (n, set) in keys.into_iter().enumerate() {
        let (tokenizer, notes) = built(set);
        assert_eq!((tokenizer.kind(268), tokenizer.is_end(268)), (Some(Kind::Control), true), "{n}");
        assert!(notes.len() == 1 && notes[0].contains("control tokens of <think>; they end"), "{notes:?}");
    }
    let (tokenizer, notes) = built(|p| p.eos_token_id = Some(10));
    assert_eq!((tokenizer.kind(10), tokenizer.is_end(10), notes.len()), (Some(Kind::Normal), true, 0));
    assert_eq!(tokenizer.encode("\n", Special::Text).unwrap(), [10]);
    let (_, notes) = built(|p| p.eos_token_ids = (256..265).collect());
    assert!(notes[0].contains("control tokens of he, ll, hell, Ġhell and 5 more; they end"), "{notes:?}");
}

#[test]
fn a_vocabulary_that_lacks_bytes_refuses_the_text_that_needs_them() {
    let (tokenizer, notes) = built(|p| {
        p.tokens[usize::from(b'h')] = b"hh";
        p.tokens[usize::from(b'z')] = b"zz";
    });
    assert!(
        notes.len() == 1 && notes[0].contains("no token for 2 of the 256 bytes, the first of them 0x68"),
        "{notes:?}"
    );
    assert_eq!(tokenizer.decode(&tokenizer.encode("ell<think>", Special::Text).unwrap()), "ell<think>");
    let error = tokenizer.encode("a hell", Special::Text).unwrap_err().to_string();
    assert!(error.contains("needs the byte 0x68"), "{error}");
}

#[test]
fn a_name_that_is_too_long_to_search_for_is_noted() {
    let name: &str = "x".repeat(1025).leak();
    let (tokenizer, notes) = built(|p| p.tokens[267] = name.as_bytes());
    assert!(!tokenizer.encode(name, Special::Parse).unwrap().contains(&267));
    assert!(notes.len() == 1 && notes[0].contains("more than 1024 bytes"), "{notes:?}");
    let (tokenizer, notes) = built(|p| p.tokens[267] = &name.as_bytes()[1..]);
    assert_eq!((tokenizer.encode(&name[1..], Special::Parse).unwrap(), notes.len()), (vec![267], 0));
}

#[test]
fn a_token_longer_than_the_limit_is_refused() {
    let long = vec![b'x'; (1 << 16) + 1];
    let small = Small::new();
    let mut parts = small.parts();
    parts.tokens[270] = &long;
    let error = Tokenizer::from_parts(&parts).err().unwrap().to_string();
    assert_eq!(error, "tokenizer.ggml.tokens[270] has 65537 bytes; the limit is 65536");
}

#[test]
fn empty_and_non_utf8_slots_are_tolerated() {
    let mut small = Small::new();
    small.types.extend([3, 4, 1]);
    let mut parts = small.parts();
    parts.tokens.extend([b"" as &[u8], b"", b"\xFF\xFE"]);
    let tokenizer = Tokenizer::from_parts(&parts).unwrap();
    assert_eq!(tokenizer.encode("ab", Special::Parse).unwrap(), [97, 98]);
    assert_eq!(tokenizer.token_bytes(273), b"\xFF\xFE");
}
