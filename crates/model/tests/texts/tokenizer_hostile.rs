//! Thousands of damaged vocabularies: each is refused or works; none panics.

use model::tokenizer::{Control, Decoder, Parts, Special, Tokenizer};

/// A xorshift generator: the same damage on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

const WORDS: [&[u8]; 22] = [
    b"",
    b" ",
    b"a",
    b"b",
    b"ab",
    b"a b",
    b"ab a",
    b"aba",
    b"a ",
    b" a",
    b"\xFF",
    b"\xE4\xBD",
    b"<0x41>",
    b"<0xZZ>",
    b"<0x-1>",
    b"  ",
    "▁".as_bytes(),
    "▁▁".as_bytes(),
    "Ġ".as_bytes(),
    "▁ ▁".as_bytes(),
    b"<|im_end|>",
    "世".as_bytes(),
];
const TEXTS: [&str; 6] =
    ["", "ab aba  ab", "<|im_end|>a\n\n世\u{301} ▁▁", "\u{0}\u{FEFF}🚀<0x41>", "aaaa bbbb", "a<b>  \r\n "];

/// The 256 bytes in both spellings, then words, with merges and scores for all.
fn sound(tokens: &[Vec<u8>]) -> Parts<'_> {
    let types = tokens.iter().map(|token| match token.as_slice() {
        [b'<', b'0', b'x', ..] => 6,
        [b'<', ..] => 3,
        _ => 1,
    });
    Parts {
        model: "gpt2",
        pre: Some("qwen2"),
        tokens: tokens.iter().map(Vec::as_slice).collect(),
        token_type: Some(types.collect()),
        scores: Some((0..tokens.len()).map(|i| -(i as f32)).collect()),
        merges: Some(vec![b"a b", b"ab a", "▁ ▁".as_bytes()]),
        eos_token_id: Some(1),
        unknown_token_id: Some(2),
        ..Parts::default()
    }
}

fn damage(parts: &mut Parts, random: &mut Random) {
    let (at, word) = (random.below(parts.tokens.len().max(1)), WORDS[random.below(WORDS.len())]);
    match random.below(9) {
        0 => parts.tokens.iter_mut().skip(at).take(1).for_each(|token| *token = word),
        1 => parts.tokens.truncate(at),
        2 => parts.tokens.push(word),
        3 => parts.token_type.iter_mut().flatten().skip(at).take(1).for_each(|kind| *kind = random.below(9) as i32 - 1),
        4 => parts.token_type = None,
        5 => parts
            .scores
            .iter_mut()
            .flatten()
            .skip(at)
            .take(1)
            .for_each(|score| *score = [f32::NAN, f32::INFINITY, 0.0][random.below(3)]),
        6 => parts.merges.iter_mut().flatten().take(1).for_each(|merge| *merge = word),
        7 => parts.merges.iter_mut().for_each(|merges| merges.push(word)),
        _ => parts.unknown_token_id = [None, Some(0), Some(u32::MAX)][random.below(3)],
    }
}

#[test]
fn damaged_vocabularies_are_refused_or_work() {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let bytes =
        (0..=255u8).flat_map(|byte| [spell(byte).to_string().into_bytes(), format!("<0x{byte:02X}>").into_bytes()]);
    let words = ["ab", "aba", "▁", "▁▁", "<|im_end|>"].map(|word| word.as_bytes().to_vec());
    let tokens: Vec<Vec<u8>> = bytes.chain(words).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut accepted = 0;
    for round in 0..3000 {
        let mut parts = Parts { model: ["gpt2", "llama", "gemma4"][round % 3], ..sound(&tokens) };
        (0..random.below(4)).for_each(|_| damage(&mut parts, &mut random));
        let Ok(tokenizer) = Tokenizer::from_parts(&parts) else { continue };
        accepted += 1;
        for (text, special) in TEXTS.into_iter().flat_map(|text| [(text, Special::Parse), (text, Special::Text)]) {
            let Ok(ids) = tokenizer.encode_prompt(text, special) else { continue };
            assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()), "{text:?} became {ids:?}");
            let mut decoder = Decoder::new(Control::Show);
            let mut streamed: String = ids.iter().map(|&id| decoder.push(&tokenizer, id).to_owned()).collect();
            streamed.push_str(decoder.finish());
            assert_eq!(streamed, tokenizer.decode(&ids));
        }
    }
    assert!((500..3000).contains(&accepted), "{accepted} of 3000 were accepted");
}
