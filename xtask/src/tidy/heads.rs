//! Heads of kernels: they end with the names that a kernel needs, each with its file, and the names
//! that it gives to its pieces.

use super::files::Files;
use super::pieces::names;
use crate::workspace::root;
use anyhow::Context as _;
use kernels::testing::kernel::format::FORMATS;
use kernels::testing::kernel::{Access, Fill, Kernel, Part};
use kernels::testing::language;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of a line of a head.
const COLUMNS: usize = 100;

/// Finds every kernel whose head does not end with the right lines.
pub fn check(files: &Files, found: &mut Vec<String>) {
    for (path, kernels) in by_file() {
        let Some(text) = files.get(&path).and_then(Option::as_deref) else { continue };
        match written(text, &kernels) {
            Ok(right) if right == text => {}
            Ok(_) => found.push(format!("{path}: its head is stale: run `cargo xtask tidy --heads`")),
            Err(e) => found.push(format!("{path}: {e}")),
        }
    }
}

/// Writes the lines into every kernel.
pub fn run() -> anyhow::Result<bool> {
    let mut count = 0;
    for (path, kernels) in by_file() {
        let text = crate::workspace::read(&path)?;
        let right = written(&text, &kernels).with_context(|| path.clone())?;
        if right != text {
            std::fs::write(root().join(&path), right).with_context(|| format!("writing {path}"))?;
            count += 1;
        }
    }
    println!("wrote the heads of {count} kernels");
    Ok(true)
}

/// The kernels by their own file.
fn by_file() -> BTreeMap<String, Vec<&'static Kernel>> {
    let mut all: BTreeMap<String, Vec<&Kernel>> = BTreeMap::new();
    for kernel in language::kernels() {
        all.entry(format!("shaders/{}", kernel.main().0)).or_default().push(kernel);
    }
    all
}

/// The text of a kernel with the right end of its head.
fn written(text: &str, kernels: &[&Kernel]) -> anyhow::Result<String> {
    let head = text.lines().take_while(|line| line.starts_with("//"));
    let kept: Vec<&str> = head.clone().take_while(|line| !line.starts_with("// Needs: ")).collect();
    let code = text.lines().skip(head.count());
    let lines = kept.into_iter().map(str::to_string).chain(wrapped(&ending(text, kernels)?));
    Ok(lines.chain(code.map(str::to_string)).map(|line| line + "\n").collect())
}

/// The last sentences of the head of these kernels, which have the same file.
fn ending(text: &str, kernels: &[&Kernel]) -> anyhow::Result<String> {
    let own = names(text);
    let mut sources: Vec<(String, Vec<&str>)> = vec![];
    for need in own.needs.iter().filter(|need| !need.starts_with("params.")) {
        let of: BTreeSet<String> = kernels.iter().filter_map(|kernel| source(kernel, need)).collect();
        anyhow::ensure!(!of.is_empty(), "no piece gives {need}");
        let of = of.into_iter().collect::<Vec<_>>().join(" or ");
        match sources.iter_mut().find(|(source, _)| *source == of) {
            Some((_, names)) => names.push(need),
            None => sources.push((of, vec![need])),
        }
    }
    let needs: Vec<_> = sources.iter().map(|(source, names)| format!("{} ({source})", names.join(", "))).collect();
    let mut gives = vec![];
    let pieces = kernels.iter().flat_map(|kernel| kernel.variants).flat_map(|variant| variant.pieces().skip(1));
    let texts = pieces.map(|(_, text)| (*text).to_string()).chain(kernels.iter().flat_map(|kernel| of_formats(kernel)));
    for text in texts {
        for need in names(&text).needs {
            let given = need.starts_with("params.") || own.gives.contains(&need);
            if given && !gives.contains(&need) {
                gives.push(need);
            }
        }
    }
    let listed = |all: &[String]| if all.is_empty() { "nothing".to_string() } else { all.join(", ") };
    let bindings = bindings_of_pieces(&own.gives, kernels);
    Ok(format!("Needs: {}. Gives: {}.{bindings}", listed(&needs), listed(&gives)))
}

/// The bindings that pieces declare for these kernels, as a sentence with a space before it, or
/// nothing. Pieces that replace each other may give a binding different types.
fn bindings_of_pieces(own: &[String], kernels: &[&Kernel]) -> String {
    let mut sources: Vec<(String, Vec<&str>)> = vec![];
    for kernel in kernels {
        for (binding, _) in kernel.bindings.iter().filter(|(binding, _)| !own.iter().any(|name| name == binding)) {
            let Some(of) = source(kernel, binding) else { continue };
            match sources.iter_mut().find(|(source, _)| *source == of) {
                Some((_, names)) if names.contains(binding) => {}
                Some((_, names)) => names.push(binding),
                None => sources.push((of, vec![binding])),
            }
        }
    }
    let all: Vec<_> = sources.iter().map(|(source, names)| format!("{} ({source})", names.join(", "))).collect();
    if all.is_empty() { String::new() } else { format!(" Bindings of pieces: {}.", all.join(", ")) }
}

/// The pieces of every format for the weights of a kernel.
fn of_formats(kernel: &Kernel) -> Vec<String> {
    let hows = kernel
        .bindings
        .iter()
        .filter_map(|(_, access)| if let Access::Weight(how) = access { Some(how) } else { None });
    hows.flat_map(|how| FORMATS.iter().filter(|format| how.reads(format)).filter_map(|format| how.pieces(format, true)))
        .collect()
}

/// Where a kernel gets a name: a file, a slot, the variant in Rust, or the pieces of a binding.
fn source(kernel: &Kernel, name: &str) -> Option<String> {
    let gives = |text: &str| names(text).gives.iter().any(|given| given == name);
    for part in &kernel.wgsl[1..] {
        match part {
            Part::Piece((path, text)) if gives(text) => {
                return Some(path.rsplit('/').next().unwrap_or_default().to_string());
            }
            Part::Slot(slot) => {
                for (_, fill) in kernel.variants.iter().flat_map(|variant| variant.fill).filter(|(of, _)| of == slot) {
                    match fill {
                        Fill::Choose(pieces) if pieces.iter().any(|(_, text)| gives(text)) => {
                            return Some(format!("slot {slot}"));
                        }
                        Fill::Vary(constants) if constants.iter().any(|(of, _)| *of == name) => {
                            return Some("the variant".to_string());
                        }
                        _ => {}
                    }
                }
            }
            Part::Piece(_) => {}
        }
    }
    let of = |binding: &str| name.strip_prefix(binding).is_some_and(|rest| rest.starts_with('_'));
    kernel.bindings.iter().filter(|(binding, _)| of(binding)).find_map(|(binding, access)| match access {
        Access::Weight(_) => Some(format!("the format of {binding}")),
        Access::Kv(_) => Some(format!("the type of {binding}")),
        _ => None,
    })
}

/// A text in lines of a comment.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec!["//".to_string()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        if line.len() + 1 + word.len() > COLUMNS {
            lines.push(format!("// {word}"));
        } else {
            line.push_str(&format!(" {word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> &'static Kernel {
        language::kernels().into_iter().find(|kernel| kernel.name == name).expect("a kernel")
    }

    #[test]
    fn names_come_from_files_slots_variants_and_formats() {
        let of = |kernel_name: &str, name: &str| source(kernel(kernel_name), name);
        assert_eq!(of("rms_norm", "reduce_add").as_deref(), Some("reduce.wgsl"));
        assert_eq!(of("matmul_vec", "x_load4").as_deref(), Some("slot quads"));
        assert_eq!(of("matmul_vec", "WG").as_deref(), Some("the variant"));
        assert_eq!(of("matmul_vec", "w_part").as_deref(), Some("the format of w"));
        assert_eq!(of("rms_norm", "nothing_gives_it"), None);
    }

    #[test]
    fn bindings_are_named_only_where_pieces_declare_them() {
        let of = |name: &str| bindings_of_pieces(&names(kernel(name).main().1).gives, &[kernel(name)]);
        assert_eq!(of("matmul_vec"), " Bindings of pieces: x (slot quads).");
        assert_eq!(of("norm_pack_matmul_vec"), " Bindings of pieces: h, u (acts_norm.wgsl).");
        assert_eq!(of("rms_norm"), "");
    }

    #[test]
    fn a_stale_head_is_written_again_and_a_right_one_stays() {
        let kernel = kernel("rms_norm");
        let right = written(kernel.main().1, &[kernel]).expect("pieces give every name");
        let stale = right.replacen("reduce_add", "reduce_mul", 1);
        assert_ne!(stale, right);
        assert_eq!(written(&stale, &[kernel]).expect("the code is unchanged"), right);
        assert_eq!(written(&right, &[kernel]).expect("the code is unchanged"), right);
    }
}
