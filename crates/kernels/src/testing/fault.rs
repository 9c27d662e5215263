//! A fault in the text of a shader that makes every result wrong: floats are 1.1 times as large,
//! indices are one larger.

use crate::device::Device;
use crate::kernel::compose::Shader;

/// The factor of a planted fault.
const FACTOR: &str = "* 1.1";

/// Functions of one argument that give the words of floats.
const WORDS_OF: [&str; 5] =
    ["pack2x16float(", "halves_of_quad(", "bitcast<u32>(", "bitcast<vec2<u32>>(", "bitcast<vec4<u32>>("];

impl Device {
    /// This device, on which the kernels of this name are faulty.
    ///
    /// # Panics
    /// If a kernel of this name writes nothing that [`faulty`] finds.
    #[must_use]
    pub fn with_fault(&self, label: &str) -> Self {
        let label = label.to_string();
        self.with_sources(move |shader| (shader.label() == label).then(|| faulty(shader)))
    }
}

/// The text of a shader whose results are wrong.
///
/// # Panics
/// If the text stores nothing to a binding.
#[must_use]
pub fn faulty(shader: &Shader) -> String {
    let mut text = shader.source();
    let before = text.clone();
    for (name, access) in shader.variant.kernel.bindings {
        if access.writes() {
            text = stores(&text, name);
        }
    }
    assert_ne!(text, before, "{} stores nothing", shader.label());
    text
}

/// Makes everything wrong that the text stores to a binding.
fn stores(text: &str, name: &str) -> String {
    let declared = format!("read_write> {name}: array<");
    let Some(at) = text.find(&declared) else { return text.to_string() };
    let element = &text[at + declared.len()..];
    let element = &element[..element.find(';').unwrap_or(element.len())];
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(&format!("{name}[")) {
        let (before, here) = rest.split_at(at);
        out.push_str(before);
        match store(here, &out) {
            Some((target, value)) => {
                out.push_str(target);
                out.push_str(&wrong(value, element));
                rest = &here[target.len() + value.len()..];
            }
            None => {
                out.push_str(&here[..=name.len()]);
                rest = &here[name.len() + 1..];
            }
        }
    }
    out + rest
}

/// The target with its operator, and the value, if a statement that stores begins here.
fn store<'a>(here: &'a str, before: &str) -> Option<(&'a str, &'a str)> {
    let line = before.rsplit('\n').next().unwrap_or("");
    if line.contains("//") || !before.trim_end().ends_with(['{', '}', ';']) && !line.trim().is_empty() {
        return None;
    }
    let mut depth = 0;
    let equals = here.char_indices().find_map(|(at, c)| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            '=' | ';' | '{' if depth == 0 => return Some((at, c)),
            _ => {}
        }
        (depth < 0).then_some((at, c))
    });
    let (equals, '=') = equals? else { return None };
    let (target, value) = here.split_at(equals + 1);
    (!value.starts_with('=')).then(|| (target, &value[..value.find(';').unwrap_or(value.len())]))
}

/// A wrong value for this one, by the type of the elements.
fn wrong(value: &str, element: &str) -> String {
    if element.contains("f32") {
        return format!(" ({}) {FACTOR}", value.trim());
    }
    let (mut out, mut rest) = (String::new(), value);
    while let Some((at, function)) = WORDS_OF.iter().filter_map(|of| Some((rest.find(of)?, of))).min() {
        let start = at + function.len();
        let end = start + closing(&rest[start..]);
        out += &format!("{}({}) {FACTOR}", &rest[..start], &rest[start..end]);
        rest = &rest[end..];
    }
    if !out.is_empty() {
        return out + rest;
    }
    let value = value.trim();
    match value {
        // The quants of a block stay right. The scale of the block is wrong.
        _ if value.ends_with(".quants") || value.starts_with("pack4x") => format!(" {value}"),
        _ if value.ends_with(".word") => format!(" bitcast<u32>(bitcast<f32>({value}) {FACTOR})"),
        // Halves that are copied: one more in both exponents.
        _ if element.starts_with("vec") => format!(" ({value}) + 0x04000400u"),
        _ => format!(" ({value}) + 1u"),
    }
}

/// The index of the parenthesis that closes an open one.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let closes = |c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    };
    text.find(closes).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_of_floats_halves_and_indices_become_wrong_and_reads_stay() {
        let text = "var<storage, read_write> y: array<f32>;\nfn f() {\n    // y[i] = 3.0;\n    if (y[i] == 1.0) {\n        \
                    y[i + x[2]] = a * (b + c);\n    }\n    y[i] += y[j];\n}\n";
        let made = stores(text, "y");
        assert!(
            made.contains("y[i + x[2]] = (a * (b + c)) * 1.1;") && made.contains("y[i] += (y[j]) * 1.1;"),
            "{made}"
        );
        assert_eq!(made.matches(FACTOR).count(), 2, "{made}");
        let words = |value| wrong(value, "vec4<u32>>");
        assert_eq!(
            words(" vec2<u32>(pack2x16float(a.xy), pack2x16float(g(b)))"),
            " vec2<u32>(pack2x16float((a.xy) * 1.1), pack2x16float((g(b)) * 1.1))"
        );
        assert_eq!(words(" bitcast<vec4<u32>>(v[j])"), " bitcast<vec4<u32>>((v[j]) * 1.1)");
        assert_eq!(wrong(" best.y", "u32>"), " (best.y) + 1u");
    }
}
