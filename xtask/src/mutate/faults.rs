//! The kinds of faults that people make in shaders, found by their text.

/// One change of one line.
pub struct Fault {
    pub kind: &'static str,
    pub line: usize,
    pub before: String,
    pub after: String,
}

impl Fault {
    /// The text with the fault in it.
    pub fn plant(&self, text: &str) -> String {
        let mut lines: Vec<&str> = text.lines().collect();
        lines[self.line] = &self.after;
        let mut planted = lines.join("\n");
        planted.push('\n');
        planted
    }
}

/// Text that stands for other text wherever it occurs: (kind, right, wrong, in loop headers too).
const SWAPS: &[(&str, &str, &str, bool)] = &[
    ("barrier dropped", "workgroupBarrier();", "", false),
    ("epsilon lost", "params.eps", "0.0", false),
    ("sign", " + ", " - ", false),
    ("sign", " - ", " + ", false),
    ("sign", " += ", " -= ", false),
    ("sign", "(-", "(", false),
    ("product", " / ", " * ", false),
    ("product", " % ", " / ", false),
    ("comparison", " < ", " <= ", true),
    ("comparison", " >= ", " > ", false),
    ("comparison", " > ", " >= ", false),
    ("minimum", "min(", "max(", true),
    ("minimum", "max(", "min(", true),
    ("component", ".x", ".y", false),
    ("component", ".y", ".x", false),
    ("component", ".z", ".w", false),
    ("component", ".w", ".z", false),
];

/// Every fault of a file.
pub fn of(text: &str) -> Vec<Fault> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (n, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default().trim_end();
        let declares = ["struct ", "@", "const ", "const_assert ", "var<", "fn ", "}"].iter().any(|start| line.starts_with(start));
        if code.is_empty() || declares {
            continue;
        }
        let next = lines.get(n + 1).map_or("", |next| next.trim());
        let mut add = |kind, after: String| {
            // A mask of nothing but ones is the same with its nibbles swapped.
            if after != code {
                found.push(Fault { kind, line: n, before: (*line).to_string(), after });
            }
        };
        swaps(code, &mut add);
        numbers(code, &mut add);
        arms(code, &mut add);
        condition(code, next, &mut add);
    }
    found
}

fn word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn swaps(code: &str, add: &mut impl FnMut(&'static str, String)) {
    let header = code.trim_start().starts_with("for ");
    for &(kind, right, wrong, in_headers) in SWAPS.iter().filter(|swap| swap.3 || !header) {
        debug_assert!(in_headers || !header);
        for (at, _) in code.match_indices(right) {
            let (before, after) = (&code[..at], &code[at + right.len()..]);
            if after.strip_prefix("0u").is_some_and(|rest| kind == "sign" && !word(rest.chars().next())) {
                continue; // nothing, added or taken away
            }
            let starts_word = !word(right.chars().next()) || !word(before.chars().next_back());
            let ends_word = !word(right.chars().next_back()) || !word(after.chars().next());
            if starts_word && ends_word {
                add(kind, format!("{before}{wrong}{after}"));
            }
        }
    }
}

/// Integers one too large: indices, shifts, masks and counts. A mask also loses its lowest bit, the nibble its place.
fn numbers(code: &str, add: &mut impl FnMut(&'static str, String)) {
    let header = code.trim_start().starts_with("for ");
    let mut at = 0;
    while let Some(start) = code[at..].find(|c: char| c.is_ascii_digit()).map(|n| at + n) {
        let length = code[start..].find(|c: char| !c.is_alphanumeric()).unwrap_or(code.len() - start);
        at = start + length;
        let Some(digits) = code[start..at].strip_suffix('u') else { continue };
        let hex = digits.strip_prefix("0x");
        let value = hex.map_or_else(|| digits.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok());
        let Some(value) = value.filter(|_| !word(code[..start].chars().next_back())) else { continue };
        let mut put = |kind, value: u32| {
            let text = if hex.is_some() { format!("0x{value:08x}u") } else { format!("{value}u") };
            add(kind, format!("{}{text}{}", &code[..start], &code[at..]));
        };
        let before = code[..start].trim_end();
        match () {
            () if hex.is_some() => put("nibble swapped", value.rotate_left(4)),
            () if before.ends_with('&') => put("mask", value >> 1),
            () if before.ends_with(">>") || before.ends_with("<<") => put("shift", value + 1),
            // A step or an end of a loop moved might never end it.
            () if header && !before.ends_with("= 0") && before.ends_with('=') && !before.ends_with("+=") => put("off by one", value + 1),
            () if header => {}
            () => put("off by one", value + 1),
        }
    }
}

/// The first two arguments of `select`, swapped.
fn arms(code: &str, add: &mut impl FnMut(&'static str, String)) {
    for (at, name) in code.match_indices("select(") {
        let start = at + name.len();
        let (mut depth, mut commas) = (0, vec![]);
        for (n, c) in code[start..].char_indices() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' if depth == 0 => break,
                ')' | ']' => depth -= 1,
                ',' if depth == 0 => commas.push(start + n),
                _ => {}
            }
        }
        if let [first, second] = commas[..] {
            let (a, b) = (&code[start..first], code[first + 1..second].trim());
            add("arms swapped", format!("{}{b}, {a}{}", &code[..start], &code[second..]));
        }
    }
}

/// Guards that let everything through: of a tail, or of an early return.
fn condition(code: &str, next: &str, add: &mut impl FnMut(&'static str, String)) {
    if let Some(at) = code.find("if (")
        && code.ends_with(") {")
    {
        let passes = if next == "return;" { "false" } else { "true" };
        add("guard dropped", format!("{}if ({passes}) {{", &code[..at]));
    }
}
