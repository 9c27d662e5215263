//! Faults that the code of their line excuses. A pattern names a reason of `reasons.rs` for one
//! form of code, so that its lines need no tag. A line whose fault a case does find, though a
//! pattern holds, says so: `//~ seen: KIND`.

#[cfg(test)]
mod tests;

use super::{Fault, code};

/// A form of code, and the reason for which no case finds some faults of it.
pub struct Pattern {
    pub tag: &'static str,
    kinds: &'static [&'static str],
    holds: fn(&Site) -> bool,
}

/// All patterns. One at most holds for a fault.
const PATTERNS: &[Pattern] = &[
    Pattern { tag: "twice", kinds: &["off by one", "guard dropped"], holds: one_thread },
    Pattern { tag: "surplus", kinds: &["comparison", "guard dropped"], holds: spare_variables },
    Pattern { tag: "dropped", kinds: &["sign"], holds: clamped_to_last },
    Pattern { tag: "dropped", kinds: &["sign"], holds: number_of_last },
    Pattern { tag: "empty", kinds: &["comparison"], holds: tiles },
    Pattern { tag: "empty", kinds: &["comparison", "guard dropped"], holds: long_row },
    Pattern { tag: "alike", kinds: &["off by one"], holds: next_exchange },
    Pattern { tag: "unused", kinds: &["guard dropped"], holds: scaled_states },
    Pattern { tag: "meet", kinds: &["comparison"], holds: halves_of_sigmoid },
    Pattern { tag: "weightless", kinds: &["comparison"], holds: weight_past_end },
    Pattern { tag: "rounded", kinds: &["off by one"], holds: corner_of_matrix },
    Pattern { tag: "race", kinds: &["comparison"], holds: own_row },
    Pattern { tag: "free", kinds: &["off by one"], holds: one_turn },
    Pattern {
        tag: "exit",
        kinds: &["comparison", "guard dropped", "sign", "off by one", "product"],
        holds: past_last_product,
    },
    Pattern { tag: "exit", kinds: &["comparison", "guard dropped"], holds: past_last_row },
    Pattern { tag: "whole", kinds: &["comparison", "guard dropped"], holds: past_last_head },
];

/// The pattern that excuses a fault of these lines.
pub fn of(lines: &[&str], fault: &Fault) -> Option<&'static Pattern> {
    all(lines, fault).next().map(|n| &PATTERNS[n])
}

/// The indices of the patterns that hold for a fault.
fn all(lines: &[&str], fault: &Fault) -> impl Iterator<Item = usize> {
    let line = code(lines[fault.line]).trim_start();
    let wrong = fault.after.trim_start();
    let at = line.bytes().zip(wrong.bytes()).take_while(|(right, wrong)| right == wrong).count();
    let site = Site { lines, line: fault.line, code: line, at };
    let holds = move |pattern: &Pattern| pattern.kinds.contains(&fault.kind) && (pattern.holds)(&site);
    PATTERNS.iter().enumerate().filter(move |(_, pattern)| holds(pattern)).map(|(n, _)| n)
}

/// Where a fault is planted.
struct Site<'a> {
    lines: &'a [&'a str],
    line: usize,
    /// The line without its comment and its indentation.
    code: &'a str,
    /// The first byte of `code` that the fault changes.
    at: usize,
}

impl<'a> Site<'a> {
    /// The code of the line that lies so many lines below.
    fn below(&self, n: usize) -> &'a str {
        self.lines.get(self.line + n).map_or("", |line| code(line).trim_start())
    }

    /// The code of the line above, if this is not the first.
    fn above(&self) -> Option<Site<'a>> {
        let line = self.line.checked_sub(1)?;
        Some(Site { line, code: code(self.lines[line]).trim_start(), ..*self })
    }

    /// The condition, if the line is an `if`.
    fn condition(&self) -> Option<&'a str> {
        self.code.strip_prefix("if (")?.strip_suffix(") {")
    }

    /// The sides of the comparison, if the line is an early return where `left >= right`.
    fn early_return(&self) -> Option<(&'a str, &'a str)> {
        let sides = self.condition()?.split_once(" >= ")?;
        (self.below(1) == "return;" && self.below(2) == "}").then_some(sides)
    }

    /// The number that the fault changes, with what stands before and after it.
    fn number(&self) -> Option<(&'a str, u32, &'a str)> {
        let digit = |c: char| c.is_ascii_digit();
        let start = self.code[..self.at].trim_end_matches(digit).len();
        let end = start + self.code[start..].find('u')? + 1;
        Some((&self.code[..start], number(&self.code[start..end])?, &self.code[end..]))
    }

    /// The value with which the nearest `let` above declares a name.
    fn value(&self, name: &str) -> Option<&'a str> {
        let before = self.lines[..self.line].iter().rev();
        before
            .map(|line| code(line).trim_start())
            .find_map(|code| code.strip_prefix("let ")?.strip_prefix(name)?.strip_prefix(" = ")?.strip_suffix(';'))
    }
}

/// `a`, `a_1`
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// `a`, `a.b`
fn is_path(text: &str) -> bool {
    text.split('.').all(is_name)
}

/// `WG`
fn is_const(text: &str) -> bool {
    is_name(text) && text.starts_with(|c: char| c.is_ascii_uppercase()) && !text.contains(|c: char| c.is_lowercase())
}

/// The names and numbers of an expression.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// The value of `4u`.
fn number(text: &str) -> Option<u32> {
    text.strip_suffix('u')?.parse().ok()
}

/// `if (lid == 0u) {`: the threads of a workgroup or the lanes of a group have the same value. Any
/// thread may store it, and all may.
fn one_thread(site: &Site) -> bool {
    let thread = site.condition().and_then(|condition| condition.strip_suffix(" == 0u"));
    thread.is_some_and(|thread| {
        let of_group = thread.split_once(" % ").filter(|(_, lanes)| is_const(lanes) || *lanes == "32u");
        let thread = of_group.map_or(thread, |(thread, _)| thread);
        ["lid", "lane", "(lid & (width - 1u))"].contains(&thread)
    })
}

/// `if (HEADS > 1u) {` around assignments to local variables: with a smaller constant nothing reads
/// the variables.
fn spare_variables(site: &Site) -> bool {
    let compared = site.condition().and_then(|condition| condition.split_once(" > "));
    let assigns = |code: &str| {
        let Some((left, right)) = code.strip_suffix(';').and_then(|code| code.split_once(" = ")) else { return false };
        let left = left.strip_prefix("let ").unwrap_or(left);
        let left = left.strip_suffix([' ', '+', '*']).unwrap_or(left);
        is_path(left.trim_end()) && !right.contains(" = ")
    };
    let assigns = |code: &str| assigns(&code.replacen(" += ", " = ", 1).replacen(" *= ", " = ", 1));
    let body = (1..).map(|n| site.below(n)).take_while(|code| assigns(code)).count();
    compared.is_some_and(|(name, least)| is_const(name) && number(least).is_some())
        && body > 0
        && site.below(body + 1) == "}"
}

/// `min(row, rows - 1u)`: the row past the last, or what follows it, is read in its place and
/// dropped.
fn clamped_to_last(site: &Site) -> bool {
    let (before, from) = site.code.split_at(site.at);
    let unit = from.strip_prefix("- ").and_then(|from| from.split_once(')')).map_or("", |(unit, _)| unit);
    let (mut depth, mut comma) = (0, None);
    let open = before.char_indices().rev().find(|&(at, c)| {
        let opens = c == '(' && depth == 0;
        depth += i32::from(c == ')') - i32::from(c == '(');
        comma = comma.or((c == ',' && depth == 0).then_some(at));
        opens
    });
    let (Some((open, _)), Some(comma)) = (open, comma) else { return false };
    let last = &before[comma..];
    let product = !last.contains(" + ") && !last.contains(" - ");
    (number(unit).is_some() || is_const(unit)) && product && before[..open].ends_with("min")
}

/// `let last = rows - 1u;`: with another number of the last row, the row past the last, or what
/// follows it, is read in its place and dropped.
fn number_of_last(site: &Site) -> bool {
    let value = site.code.strip_prefix("let ").and_then(|code| code.split_once(" = "));
    value.is_some_and(|(name, value)| {
        (name == "last" || name == "final_row") && value.strip_suffix(" - 1u;").is_some_and(is_path)
    })
}

/// `for (var tile = start; tile < end; tile += WG) {`: an iteration past the last has no element
/// inside. All threads have the same tile.
fn tiles(site: &Site) -> bool {
    let parts = site.code.strip_prefix("for (var ").and_then(|code| code.strip_suffix(") {"));
    let parts: Vec<_> = parts.unwrap_or_default().split("; ").collect();
    let [start, condition, step] = parts[..] else { return false };
    let (Some((name, start)), Some((left, end)), Some((stepped, step))) =
        (start.split_once(" = "), condition.split_once(" < "), step.split_once(" += "))
    else {
        return false;
    };
    let shared = words(start).all(|word| !["lid", "lane", "group", "band"].contains(&word));
    let a_tile = |word: &str| word == "groups" || (is_const(word) && word != "LANES" && word != "STEPS");
    let strides = words(step).any(a_tile);
    let counted = !end.starts_with("min(") && end.contains(|c: char| c.is_lowercase() && c != 'u');
    name == left && name == stepped && shared && strides && counted
}

/// `if (quads > 2u * WG) {`: a thread has an element more only in a long row.
fn long_row(site: &Site) -> bool {
    let sides = site.condition().and_then(|condition| condition.split_once(" > "));
    sides.is_some_and(|(count, least)| {
        let (times, least) = least.split_once(" * ").unwrap_or(("1u", least));
        is_name(count) && !is_const(count) && number(times).is_some() && least == "WG"
    })
}

/// `most = max(most, lanes_other(most, 2u, lid));` after the line with `1u`: the lane at distance 3
/// has what the lane at distance 2 has.
fn next_exchange(site: &Site) -> bool {
    let Some((before, distance, _)) = site.number() else { return false };
    let Some(call) = before.rfind("lanes_other").or_else(|| before.rfind("subgroupShuffleXor")) else { return false };
    let exchanged = |distance: u32| format!("{}{distance}u", &before[call..]);
    let one_value = before[call..].split_once('(').and_then(|(_, rest)| rest.strip_suffix(", ")).is_some_and(is_name);
    let (mut above, mut done) = (site.above(), distance);
    while let Some(line) = above
        && done > 1
        && line.code.contains(&exchanged(done / 2))
    {
        done /= 2;
        above = line.above();
    }
    one_value && distance > 1 && done == 1
}

/// `if (k_state_scaled) {`: states without scales do not use the largest element.
fn scaled_states(site: &Site) -> bool {
    site.condition().is_some_and(|name| name.ends_with("_state_scaled") && is_name(name))
}

/// `select(e, 1.0, x >= 0.0) / (1.0 + e)`: both halves of the sigmoid are 0.5 at 0.
fn halves_of_sigmoid(site: &Site) -> bool {
    let from = site.code[site.at..].strip_prefix("= ");
    let from = from.and_then(|from| from.strip_prefix("0.0").or_else(|| from.strip_prefix("vec4<f32>(0.0)")));
    from.is_some_and(|from| from.starts_with(") / (1.0 + e)"))
}

/// `let p = select(0.0, exp(s - most), key < end);`: the key at the end has the least score.
fn weight_past_end(site: &Site) -> bool {
    let arguments = site.code.split_once(" = select(").and_then(|(_, rest)| rest.strip_suffix(");"));
    let [zero, weight, condition] = arguments.unwrap_or_default().split(", ").collect::<Vec<_>>()[..] else {
        return false;
    };
    let difference = weight.strip_prefix("exp(").and_then(|rest| rest.strip_suffix(')'));
    ["0.0", "vec4<f32>(0.0)"].contains(&zero)
        && difference.and_then(|it| it.split_once(" - ")).is_some_and(|(s, most)| is_name(s) && is_name(most))
        && condition.split_once(" < ").is_some_and(|(_, end)| is_path(end))
}

/// `finish(y0 + 16u, x0 + 32u, base, lane);`, `b_tile(n0 + 16u, depth)` or
/// `add(o1, p, column + 4u);`: the columns of a matrix are read and stored four at a time.
fn corner_of_matrix(site: &Site) -> bool {
    let Some((before, number, after)) = site.number() else { return false };
    let calls = ["finish(y0 + ", "= b_tile(n0 + "].iter().any(|call| before.ends_with(call));
    let second = before.starts_with("finish(y0 + ") && before.ends_with(", x0 + ");
    let column = before.ends_with(", column + ") && after == ");";
    ((calls || second) && number % 16 == 0) || (column && number % 4 == 0)
}

/// `lid < WEIGHT_ROWS && r + lid < params.n`: one thread more stores where the next workgroup does,
/// or past the end.
fn own_row(site: &Site) -> bool {
    let declared = || site.code.strip_prefix("let inside = ")?.strip_suffix(';');
    let sides = site.condition().or_else(declared).and_then(|condition| condition.split_once(" && "));
    sides.is_some_and(|(thread, row)| {
        thread.strip_prefix("lid < ").is_some_and(is_const) && row.strip_prefix("r + lid < ").is_some_and(is_path)
    })
}

/// `for (var first = tile; first == 0u; first = 1u) {`: a branch that is taken once, at the first
/// tile or at another.
fn one_turn(site: &Site) -> bool {
    let rest = site.code.strip_prefix("for (var ").and_then(|code| code.split_once(" = "));
    rest.is_some_and(|(name, rest)| {
        let rest = rest.split_once("; ").filter(|(start, _)| is_name(start));
        rest.is_some_and(|(_, rest)| rest == format!("{name} == 0u; {name} = 1u) {{"))
    })
}

/// `if (number >= before_c + (rows + ROWS - 1u) / ROWS) {` and a return: workgroups past the last
/// of a group of products.
fn past_last_product(site: &Site) -> bool {
    site.early_return().is_some_and(|(left, right)| left == "number" && right.starts_with("before_c + ("))
}

/// `if (number * WEIGHT_ROWS >= params.n) {` and a return: workgroups past the last row, each store
/// of which has its own guard.
fn past_last_row(site: &Site) -> bool {
    const NUMBER: &str = "workgroup_number(id, extents)";
    site.early_return().is_some_and(|(left, right)| {
        let numbered = left.strip_prefix("number * ").is_some_and(is_name);
        let value = site.value(left).filter(|_| is_name(left));
        let strides = value.is_some_and(|value| {
            let last = value.strip_prefix(NUMBER).and_then(|rest| rest.strip_prefix(" * "));
            let first = value.strip_suffix(NUMBER).and_then(|rest| rest.strip_suffix(" * "));
            last.or(first).is_some_and(is_const)
        });
        (numbered || strides) && right.starts_with("params.") && is_path(right)
    })
}

/// `if (number >= params.rows * params.heads) {` and a return: grids over heads are exact.
fn past_last_head(site: &Site) -> bool {
    site.early_return().is_some_and(|(left, right)| {
        let last = right.rsplit(" * ").next().and_then(|path| path.rsplit('.').next());
        is_name(left)
            && right.split(" * ").all(is_path)
            && last.is_some_and(|last| ["heads", "q_heads", "kv_heads", "splits"].contains(&last))
    })
}
