//! Pieces of shaders: the end of each head lists the names that the piece needs and the names that
//! it gives.

use super::files::Files;
use crate::workspace::FAMILIES;
use std::collections::HashSet;

/// True if a shader is a piece that is composed unchanged. Pieces of formats and state types are
/// renamed by a prefix instead.
fn is_piece(path: &str) -> bool {
    path.starts_with("shaders/shared/") || path.contains("/pieces/")
}

/// Words of the language: statements and declarations.
const KEYWORDS: [&str; 24] = [
    "_",
    "alias",
    "break",
    "case",
    "const",
    "const_assert",
    "continue",
    "continuing",
    "default",
    "else",
    "enable",
    "false",
    "fn",
    "for",
    "if",
    "let",
    "loop",
    "override",
    "return",
    "struct",
    "switch",
    "true",
    "var",
    "while",
];

/// Types, address spaces, roles of cooperative matrices and functions of WGSL. A piece need not
/// list them.
const BUILTINS: [&str; 68] = [
    "A",
    "B",
    "C",
    "abs",
    "any",
    "all",
    "array",
    "atomic",
    "atomicAdd",
    "atomicLoad",
    "atomicMax",
    "atomicStore",
    "bitcast",
    "bool",
    "clamp",
    "coopLoad",
    "coopLoadT",
    "coopMultiplyAdd",
    "coopStore",
    "coopStoreT",
    "coop_mat16x16",
    "countOneBits",
    "dot",
    "dot4I8Packed",
    "exp",
    "exp2",
    "f16",
    "f32",
    "firstLeadingBit",
    "firstTrailingBit",
    "floor",
    "fma",
    "i32",
    "inverseSqrt",
    "log",
    "mat2x4",
    "mat4x4",
    "max",
    "min",
    "pack2x16float",
    "private",
    "pack4xI8Clamp",
    "read",
    "read_write",
    "round",
    "select",
    "sign",
    "sqrt",
    "storage",
    "storageBarrier",
    "subgroupAdd",
    "subgroupBarrier",
    "tanh",
    "trunc",
    "u32",
    "uniform",
    "unpack2x16float",
    "unpack4xI8",
    "unpack4xU8",
    "vec2",
    "vec3",
    "vec4",
    "workgroup",
    "workgroupBarrier",
    "workgroupUniformLoad",
    "subgroupMax",
    "subgroupAny",
    "subgroupExclusiveAdd",
];

/// The identifiers that a file shares with other files, in the order of the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names that are used and not declared; fields of the params as `params.eps`.
    pub needs: Vec<String>,
    /// Names that are declared outside functions.
    pub gives: Vec<String>,
}

/// The family of a piece that kernels of this family and of later ones may use.
fn family(path: &str) -> Option<&str> {
    path.strip_prefix("shaders/")?.split_once("/pieces/").map(|(family, _)| family)
}

/// Finds every piece whose head does not end with the names that it needs and gives, and every
/// kernel that lists a piece from the folder of a later family.
pub fn pieces(files: &Files, found: &mut Vec<String>) {
    let shaders = files.iter().filter(|(path, _)| path.starts_with("shaders/") && path.ends_with(".wgsl"));
    let all: Vec<_> = shaders
        .filter_map(|(path, text)| Some((path, text.as_deref()?)))
        .map(|(path, text)| (path, text, names(text)))
        .collect();
    for (path, text, Names { needs, gives }) in all.iter().filter(|(path, ..)| is_piece(path)) {
        let used = |name: &&String| all.iter().any(|(other, _, names)| other != path && names.needs.contains(name));
        let gives: Vec<_> = gives.iter().filter(used).map(String::as_str).collect();
        let needs: Vec<_> = needs.iter().map(String::as_str).collect();
        let right = format!("// Needs: {}. Gives: {}.", listed(&needs), listed(&gives));
        if said(text) != right {
            found.push(format!("{path}: its head does not end with {right:?}"));
        }
    }
    strangers(files, found);
}

/// Finds kernels that list a piece of a later family. Pieces that no family has to itself belong in
/// `shaders/shared/`.
fn strangers(files: &Files, found: &mut Vec<String>) {
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path, text.as_deref()?))) {
        for declaration in text.split("\nkernel! {").skip(1) {
            let declaration = declaration.split("\n}").next().unwrap_or_default();
            let mut listed = declaration.split('"').filter(|part| part.ends_with(".wgsl"));
            let own = listed.next().and_then(|main| main.split('/').next()).unwrap_or_default();
            let place = |name: &str| FAMILIES.iter().position(|family| *family == name);
            let later = |piece: &&str| family(&format!("shaders/{piece}")).is_some_and(|of| place(of) > place(own));
            for piece in listed.filter(later) {
                found.push(format!("{path}: {piece} is a piece of a later family"));
            }
        }
    }
}

/// The end of a head, from `Needs:` on, in one line.
fn said(text: &str) -> String {
    let head = text.lines().map_while(|line| line.strip_prefix("// ")).skip_while(|line| !line.starts_with("Needs: "));
    format!("// {}", head.collect::<Vec<_>>().join(" "))
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_string() } else { names.join(", ") }
}

/// The words, numbers and punctuation of a text, without comments.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = vec![];
    for line in text.lines() {
        let mut code = line.split("//").next().unwrap_or_default().trim_start();
        while let Some(first) = code.chars().next() {
            let inside = |c: char| c.is_alphanumeric() || c == '_' || (first.is_ascii_digit() && c == '.');
            let end = if inside(first) { code.find(|c| !inside(c)).unwrap_or(code.len()) } else { first.len_utf8() };
            let (token, rest) = code.split_at(end);
            found.push(token);
            code = rest.trim_start();
        }
    }
    found
}

/// True if a `var` declares the word at `at`. The `var` may have an address space.
fn named_by_var(tokens: &[&str], at: usize) -> bool {
    match tokens[..at].last() {
        Some(&"var") => true,
        Some(&">") => {
            let open = tokens[..at].iter().rposition(|token| *token == "<");
            open.is_some_and(|open| {
                open > 0 && tokens[open - 1] == "var" && tokens[open + 1..at - 1].iter().all(|t| *t == "," || word(t))
            })
        }
        _ => false,
    }
}

fn word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names that a file needs and gives. A name that a function declares is local until the
/// function ends.
#[must_use]
pub fn names(text: &str) -> Names {
    let tokens = tokens(text);
    let (mut names, mut own, mut depth, mut fields) = (Names::default(), HashSet::new(), 0_u32, false);
    for (at, &token) in tokens.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).map_or("", |at| tokens[at]);
        let after = |n: usize| tokens.get(at + n).copied().unwrap_or_default();
        match token {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "fn" if depth == 0 => own.clear(),
            "struct" => fields = true,
            _ => {}
        }
        fields &= !(token == "}" && depth == 0);
        let built_in = before(1) == "(" && before(2) == "builtin" || ["@", ".", "enable"].contains(&before(1));
        if !word(token)
            || built_in
            || KEYWORDS.contains(&token)
            || BUILTINS.contains(&token)
            || token.starts_with("subgroupShuffle")
        {
            continue;
        }
        let declared = ["fn", "struct", "let", "const", "alias"].contains(&before(1)) || named_by_var(&tokens, at);
        if declared && depth == 0 {
            names.gives.push(token.to_string());
        } else if declared || depth == 0 && after(1) == ":" {
            own.insert(token);
        } else if !(own.contains(token) || fields && after(1) == ":") {
            let used =
                if token == "params" && after(1) == "." { format!("params.{}", after(2)) } else { token.to_string() };
            if !names.needs.contains(&used) {
                names.needs.push(used);
            }
        }
    }
    let Names { needs, gives } = &mut names;
    needs.retain(|name| !gives.contains(name));
    names
}
