//! Texts on which tokenizers tend to differ: every script, emoji sequences, controls, broken UTF-8,
//! and random mixtures.

/// Marsaglia's xorshift64: the same texts on every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Words of several scripts, program text and numbers, for training vocabularies.
const WORDS: [&str; 40] = [
    "the",
    "weaver",
    "looms",
    "thread",
    "shuttle",
    "and",
    "other",
    "warp",
    "weft",
    "window",
    "they'll",
    "I've",
    "naïve",
    "café",
    "größer",
    "return",
    "self",
    "fn",
    "main()",
    "{",
    "}",
    "=>",
    "x += 1;",
    "//",
    "0x1F",
    "3.14",
    "2026",
    "привет",
    "нить",
    "ткань",
    "γεια",
    "νήμα",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "你好",
    "世界",
    "ありがとう",
    "안녕하세요",
    "🧵",
];

/// Lines of made-up text, enough for training several hundred merges.
pub fn training() -> Vec<String> {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let separators = [" ", " ", " ", " ", "  ", ", ", "\t", ". ", "-", "    "];
    let line = |random: &mut Random| {
        (0..3 + random.below(9)).map(|_| [random.pick(&WORDS), random.pick(&separators)].concat()).collect()
    };
    (0..400).map(|_| line(&mut random)).collect()
}

/// Strings, each with one special case.
const CHOSEN: [&str; 46] = [
    "",
    " ",
    "  ",
    "     ",
    "\n",
    "\n\n\n\n\n\n\n",
    "\r\n\r\n",
    "\t\t \t\n \n  \n",
    "Hello, world",
    "  leading and trailing  ",
    "I've they'RE rock'n'roll 'ſo 'LL 'd",
    "x=3.14159; y=12345678901234567890 ²³ ½ Ⅷ ٣٤ 一二",
    "def f(a, b=2):\n    return a+b  # sum\n",
    "naïve café e\u{301} a\u{308}\u{323} ö\u{301} \u{1112}\u{1161}\u{11ab} 각",
    "\u{212b} \u{fb01} \u{f900} \u{2126} \u{1e9b}\u{323} \u{0344}",
    "你好，世界。「織物」",
    "ありがとうございます 안녕하세요 Привет مرحبا بالعالم שלום नमस्ते สวัสดี ສະບາຍດີ မင်္ဂလာပါ",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪🇯🇵 1️⃣ ❤️ 👨🏿‍🚀 🧵🪡",
    "☃︎☃️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "zero\u{200b}width\u{200c}non\u{200d}joiner\u{2060}\u{feff}",
    "\u{202e}right to left\u{202c} \u{2066}isolate\u{2069}",
    "no\u{a0}break\u{2003}em\u{3000}ideographic\u{2028}line\u{2029}paragraph\u{85}next",
    "!!!???...---===***   ///\n\n\\\\\n",
    "camelCaseAndsnake_case HTTPServer2 __init__",
    "<|im_start|>user\nhi<|im_end|>",
    "<|im_start|><|im_end|><|endoftext|>",
    "<think>\nhm\n</think>\n\nyes <think/> <thin k>",
    "<start_of_turn>user\nhi<end_of_turn>\n",
    "<|turn>user\nhi<turn|>",
    "<bos><eos><unk><pad>",
    "<0x41><0xZZ> <0x0A>",
    "▁already ▁▁ two ▁▁▁▁▁ a▁b",
    "a b  c   d    e     f      g       h        i",
    "                                        forty spaces",
    "\u{0}\u{1}\u{2}\u{7}\u{8}\u{b}\u{c}\u{e}\u{1b}[0m\u{1f}\u{7f}\u{80}\u{9f}",
    "\u{fffd}\u{fffe}\u{ffff}\u{10ffff}\u{e000}\u{f8ff}",
    "ß ẞ İ ı ǆ ǅ Ǆ ﬃ",
    "Ⅷ ⅷ Ⓐ 🄰 ℵ ℝ ⨀ ∑",
    "̈̈̈̈a",
    "\u{300}\u{301}",
    "'",
    "''s 's's",
    "a'",
    "don\u{2019}t won\u{02bc}t",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "the the the thethe  the\nthe\tthe",
];

/// Invalid UTF-8, after lossy conversion.
fn broken() -> impl Iterator<Item = String> {
    let cases: [&[u8]; 8] = [
        b"\xff\xfe",
        b"a\x80b",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf0\x9f\xa7",
        b"caf\xe9 ol\xe9",
        b"\xe4\xbd\xe4\xbd\xa0",
        b"\xf4\x90\x80\x80 ",
    ];
    cases.into_iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Strings of 64 consecutive code points, sampled from the planes in use, and for each a string of
/// every 16th of them with spaces between.
fn scripts() -> impl Iterator<Item = String> {
    let starts =
        (0..0x2_0000).step_by(64).chain((0x2_0000..0x3_2400).step_by(4096)).chain((0xE_0000..0xE_0200).step_by(64));
    starts.flat_map(|start| {
        let chars = move |step| (start..start + 64).step_by(step).filter_map(char::from_u32);
        [chars(1).collect(), chars(16).flat_map(|c| [c, ' ']).collect()]
    })
}

/// All texts that are not random.
pub fn chosen() -> impl Iterator<Item = String> {
    CHOSEN.into_iter().map(str::to_string).chain(broken()).chain(scripts())
}

const SPACES: [&str; 12] =
    [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u{a0}", "\u{3000}", "\u{2581}", "\u{2581}\u{2581}", " \n "];
const MARKS: [&str; 12] =
    ["\u{301}", "\u{308}", "\u{323}", "\u{200d}", "\u{fe0f}", "\u{1f3fd}", "'", "'s", "\u{0}", "\u{ad}", ".", "…"];
const NAMES: [&str; 9] = ["<|im_end|>", "<think>", "</think>", "<bos>", "<unk>", "<0x41>", "<|im_", "<", "|>"];

/// A string of up to a few dozen pieces: words, spaces, marks, names of tokens, any character,
/// invalid UTF-8.
pub fn random(random: &mut Random) -> String {
    let mut bytes = vec![];
    for _ in 0..random.below(24) {
        match random.below(9) {
            0..=2 => bytes.extend(random.pick(&WORDS).bytes()),
            3 => bytes.extend(random.pick(&SPACES).bytes()),
            4 => bytes.extend(random.pick(&MARKS).bytes()),
            5 => bytes.extend(random.pick(&NAMES).bytes()),
            6 => bytes.push(b' ' + random.below(95) as u8),
            7 => {
                let limit = [0x250, 0x3000, 0x1_0000, 0x2_0000][random.below(4)];
                bytes.extend(char::from_u32(random.below(limit) as u32).unwrap_or('\u{fffd}').to_string().bytes());
            }
            _ if random.below(8) == 0 => bytes.push(random.below(256) as u8),
            _ => bytes.push(b' '),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
