//! Composes the WGSL of a shader from a variant of a kernel and the pieces that its bindings need.

use crate::kernel::format::{self, FORMATS, Format, How};
use crate::kernel::{self, Access, Fill, Kernel, KvUse, Only, Scalar, Variant};
use cpu_ref::KvType;
use gguf::GgmlType;
use std::fmt::Write as _;

/// The type that determines the pieces of a binding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    Weight(GgmlType),
    Kv(KvType),
}

/// A variant with the formats, state types and subgroup form of its bindings chosen. A pipeline is
/// built from it and cached by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shader {
    pub variant: &'static Variant,
    /// One entry per binding; `None` for a binding without pieces.
    pub pieces: Vec<Option<Piece>>,
    /// Whether reductions use subgroup operations.
    pub subgroups: bool,
    /// Whether subgroup operations assume that 32 neighbouring threads share a subgroup, without
    /// code for smaller subgroups.
    pub wide: bool,
    /// Params that are constants in the code, by field; `None` for fields that are read. Empty if
    /// all fields are read.
    pub given: Vec<Option<u32>>,
}

/// Pieces that have a form with subgroup operations, and the fewest threads of a subgroup with
/// which this form is right.
const SUBGROUP_FORMS: [(&str, &str, u32); 3] = [
    ("shared/reduce.wgsl", wgsl!("shared/reduce_subgroup.wgsl"), 1),
    ("shared/lanes.wgsl", wgsl!("shared/lanes_subgroup.wgsl"), 1),
    // The threads of a block.
    ("shared/pack_q8.wgsl", wgsl!("shared/pack_q8_subgroup.wgsl"), FEWEST),
];

/// The fewest threads of a subgroup with which every subgroup form is right that is not for wide
/// subgroups alone. Devices with smaller subgroups run the portable forms.
pub(crate) const FEWEST: u32 = 8;

/// Pieces that have a form for subgroups of at least [`WIDE`] threads. The form has no code for
/// smaller subgroups: unused code is still loaded and takes registers, which cost kernels with a
/// reduction at the end as much time as the form saves.
const WIDE_FORMS: [(&str, &str); 4] = [
    ("shared/lanes_near.wgsl", wgsl!("shared/lanes_near_wide.wgsl")),
    ("attention/pieces/part_weights.wgsl", wgsl!("attention/pieces/part_weights_wide.wgsl")),
    ("attention/pieces/sixteen.wgsl", wgsl!("attention/pieces/sixteen_wide.wgsl")),
    ("attention/pieces/sixteen_share.wgsl", wgsl!("attention/pieces/sixteen_share_wide.wgsl")),
];

const WIDE: u32 = 32;

const KV_PIECES: [(KvType, &str, &str); 3] = [
    (KvType::F32, wgsl!("kv/f32.wgsl"), wgsl!("kv/f32_store.wgsl")),
    (KvType::F16, wgsl!("kv/f16.wgsl"), wgsl!("kv/f16_store.wgsl")),
    (KvType::Q8_0, wgsl!("kv/q8_0.wgsl"), wgsl!("kv/q8_0_store.wgsl")),
];

impl Shader {
    /// Whether the variant has a piece with a subgroup form.
    #[must_use]
    pub fn reduces(variant: &Variant) -> bool {
        SUBGROUP_FORMS.iter().any(|(of, ..)| variant.includes(of))
    }

    /// The fewest threads of a subgroup with which the shader is right, 0 without subgroup form.
    /// Cooperative matrices take 32.
    #[must_use]
    pub fn fewest_threads(&self) -> u32 {
        let forms = SUBGROUP_FORMS
            .iter()
            .filter(|(of, ..)| self.subgroups && self.variant.includes(of))
            .map(|(.., fewest)| *fewest);
        let wide = self.wide || self.variant.kernel.cooperative();
        forms.chain(wide.then_some(WIDE)).max().unwrap_or(0)
    }

    /// How a variant reduces on a device whose smallest subgroup has `threads` threads (0 without
    /// subgroups): ([`Shader::subgroups`], [`Shader::wide`]).
    pub(crate) fn form(variant: &Variant, threads: u32) -> (bool, bool) {
        let widens = WIDE_FORMS.iter().any(|(of, _)| variant.includes(of));
        let subgroups = threads > 0 && Self::reduces(variant);
        (subgroups, subgroups && widens && threads >= WIDE)
    }

    /// Every shader that a variant can become on devices whose smallest subgroups have these
    /// numbers of threads (0 without subgroups). There is one for each weight format and each KV
    /// type that the variant reads; all bindings of a kind have the same one.
    #[must_use]
    pub fn all(variant: &'static Variant, threads: &[u32]) -> Vec<Self> {
        let bindings = variant.kernel.bindings;
        let hows = || {
            bindings.iter().filter_map(|(_, access)| if let Access::Weight(how) = access { Some(how) } else { None })
        };
        let reads = |format: &&Format| {
            hows().all(|how| how.reads(format)) && (variant.only != Only::Blockless || format.ty.block_size() == 1)
        };
        let formats: Vec<_> = match hows().next() {
            Some(_) => FORMATS.iter().filter(reads).map(|format| Some(format.ty)).collect(),
            None => vec![None],
        };
        let kv = KV_PIECES.iter().map(|(ty, ..)| *ty).filter(|ty| variant.only != Only::Step || *ty == KvType::F32);
        let kv: Vec<_> = match bindings.iter().any(|(_, access)| matches!(access, Access::Kv(_))) {
            true => kv.map(Some).collect(),
            false => vec![None],
        };
        let mut forms: Vec<_> = threads.iter().map(|&threads| Self::form(variant, threads)).collect();
        forms.dedup();
        let mut all = vec![];
        let forms = forms.as_slice();
        for (format, kv, &(subgroups, wide)) in
            formats.iter().flat_map(|f| kv.iter().flat_map(move |k| forms.iter().map(move |s| (f, k, s))))
        {
            let piece = |(_, access): &(&str, Access)| match access {
                Access::Weight(_) => format.map(Piece::Weight),
                Access::Kv(_) => kv.map(Piece::Kv),
                Access::Read | Access::Write | Access::State => None,
            };
            all.push(Self { variant, pieces: bindings.iter().map(piece).collect(), subgroups, wide, given: vec![] });
        }
        all
    }

    /// A name that includes every choice, for tables and labels: `matmul_vec q4_k +subgroups`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = self.variant.name.to_string();
        for piece in self.pieces.iter().flatten() {
            let _ = match piece {
                Piece::Weight(ty) => write!(label, " {}", ty.name().to_lowercase()),
                Piece::Kv(ty) => write!(label, " kv-{ty}"),
            };
        }
        if self.subgroups {
            label.push_str(if self.wide { " +wide subgroups" } else { " +subgroups" });
        }
        label
    }

    /// The whole WGSL text. The kernel file comes first, so that its line numbers are correct; then
    /// follow shared pieces and pieces of bindings.
    #[must_use]
    pub fn source(&self) -> String {
        let mut text = String::new();
        for fill in self.variant.filled() {
            match fill {
                Fill::Vary(constants) => {
                    text.extend(constants.iter().map(|(name, value)| format!("const {name} = {value}u;\n")))
                }
                Fill::Choose(pieces) => text.extend(pieces.iter().flat_map(|piece| [self.formed(piece), "\n"])),
            }
        }
        let mut before = "";
        for ((name, access), piece) in self.variant.kernel.bindings.iter().zip(&self.pieces) {
            match (access, piece) {
                (Access::Weight(how), Some(Piece::Weight(ty))) => {
                    let pieces = how.pieces(of(*ty), self.wide);
                    let pieces = pieces.unwrap_or_else(|| panic!("{} is not read in {how:?}", ty.name()));
                    match how {
                        How::Second => text.push_str(&second(&pieces, "W", name, before)),
                        _ => text.push_str(&instantiate(&pieces, "W", name)),
                    }
                }
                (Access::Kv(of), Some(Piece::Kv(ty))) => {
                    let found = KV_PIECES.iter().find(|p| p.0 == *ty);
                    let (_, load, store) = found.unwrap_or_else(|| panic!("{ty:?} has no piece"));
                    if *of != KvUse::Write {
                        text.push_str(&instantiate(load, "S", name));
                    }
                    if *of != KvUse::Read {
                        text.push_str(&instantiate(store, "S", name));
                    }
                }
                _ => {}
            }
            before = name;
            text.push('\n');
        }
        if self.given.is_empty() { text } else { with_constants(&text, self.variant.kernel, &self.given) }
    }

    /// The text for a browser's compiler; `None` if no browser can run the kernel, because it needs
    /// cooperative matrices. naga refuses the directives that a browser needs for subgroup
    /// operations, so only this text has them. They stand on the first line, so that line numbers
    /// are those of [`Shader::source`].
    #[must_use]
    pub fn browser_source(&self) -> Option<String> {
        // Conditions around subgroup operations have one value for all threads that exchange
        // values. A browser cannot prove this, and the second directive makes it accept them.
        let directives = if self.subgroups { "enable subgroups; diagnostic(off, subgroup_uniformity); " } else { "" };
        (!self.variant.kernel.cooperative()).then(|| format!("{directives}{}", self.source()))
    }

    /// The text of a piece in the form for the shader's subgroups.
    fn formed(&self, (path, text): &kernel::Piece) -> &'static str {
        let wide = WIDE_FORMS.iter().filter(|_| self.wide).copied();
        let forms = SUBGROUP_FORMS.iter().filter(|_| self.subgroups).map(|(of, form, _)| (*of, *form));
        forms.chain(wide).find(|(of, _)| of == path).map_or(*text, |(_, form)| form)
    }
}

/// The declaration of params in every shader.
const UNIFORM: &str = "@group(0) @binding(0) var<uniform> params: Params;";

/// A shader's text with constants for the params that have a word. The other params are read from
/// the uniform, which gets another name. The number of lines does not change.
fn with_constants(text: &str, kernel: &Kernel, given: &[Option<u32>]) -> String {
    let literal = |((_, scalar), word): (&(&str, Scalar), &Option<u32>)| match (scalar, word.unwrap_or(0)) {
        (Scalar::U32, word) => format!("{word}u"),
        (Scalar::F32, word) => format!("{:?}f", f32::from_bits(word)),
    };
    let literals: Vec<_> = kernel.params.iter().zip(given).map(literal).collect();
    let read: Vec<_> =
        kernel.params.iter().zip(given).filter(|(_, word)| word.is_none()).map(|((name, _), _)| *name).collect();
    let uniform = if read.is_empty() { String::new() } else { UNIFORM.replace("params:", "read_params:") + " " };
    read_apart(text, &read).replace(UNIFORM, &format!("{uniform}const params = Params({});", literals.join(", ")))
}

/// A text in which these fields of `params` are fields of `read_params`.
fn read_apart(text: &str, read: &[&str]) -> String {
    let mut parts = text.split("params.");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        out.push_str(if read.contains(&&part[..end]) { "read_params." } else { "params." });
        out.push_str(part);
    }
    out
}

fn of(ty: GgmlType) -> &'static Format {
    format::format(ty).unwrap_or_else(|| panic!("{} has no piece", ty.name()))
}

/// [`instantiate`] for the second of two bindings with the same pieces. The types, each declared on
/// a line of its own, are replaced by those of the first binding.
fn second(piece: &str, prefix: &str, name: &str, other: &str) -> String {
    let lines = piece.lines().filter(|line| !line.starts_with(&format!("struct {prefix}_")));
    let functions = instantiate(&lines.map(|line| format!("{line}\n")).collect::<String>(), prefix, name);
    let own = format!("{name}_");
    let mut parts = functions.split(own.as_str());
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let is_type = part.starts_with(|c: char| c.is_ascii_uppercase());
        out.push_str(if is_type { other } else { name });
        out.push('_');
        out.push_str(part);
    }
    out
}

/// Renames the identifiers `prefix` and `prefix_*` of a piece to `name` and `name_*`.
#[must_use]
pub fn instantiate(piece: &str, prefix: &str, name: &str) -> String {
    let mut out = String::with_capacity(piece.len());
    let mut word = String::new();
    for c in piece.chars().chain(std::iter::once('\n')) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match word.strip_prefix(prefix) {
            Some(rest) if rest.is_empty() || rest.starts_with('_') => {
                out.push_str(name);
                out.push_str(rest);
            }
            _ => out.push_str(&word),
        }
        word.clear();
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{instantiate, read_apart, second};

    #[test]
    fn second_bindings_share_the_types_of_the_first() {
        let piece = "struct W_Raw { a: u32 }\nfn W_raw(r: u32) -> W_Raw { return W_Raw(W[r]); }\n";
        assert_eq!(second(piece, "W", "up", "w").trim_end(), "fn up_raw(r: u32) -> w_Raw { return w_Raw(up[r]); }");
    }

    #[test]
    fn a_field_is_read_apart_and_a_longer_one_that_begins_with_its_name_is_not() {
        let text = "params.rows + params.rows_a * params.k - params.rows";
        assert_eq!(
            read_apart(text, &["rows", "k"]),
            "read_params.rows + params.rows_a * read_params.k - read_params.rows"
        );
        assert_eq!(
            read_apart(text, &["rows", "rows_a"]),
            "read_params.rows + read_params.rows_a * params.k - read_params.rows"
        );
    }

    #[test]
    fn renames_whole_identifiers_only() {
        let piece = "fn W_row(r: u32) -> u32 { return W[r] + WG + vW_x; }";
        assert_eq!(instantiate(piece, "W", "up"), "fn up_row(r: u32) -> u32 { return up[r] + WG + vW_x; }\n");
    }
}
