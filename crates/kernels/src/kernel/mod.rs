//! A kernel is declared once, by [`kernel!`](crate::kernel!). Layouts, params, tests and documents
//! are derived from the declaration.
//!
//! A [`Kernel`] has one or more [`Variant`]s, which differ in constants and pieces. A
//! [`Shader`](crate::kernel::compose::Shader) is a variant with the formats, state types and
//! subgroup form of its bindings chosen.

use crate::caps::Caps;
use crate::kernel::format::How;

#[macro_use]
mod declare;
#[macro_use]
mod family;
pub mod compose;
pub mod dispatch;
pub mod format;
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases choose forms and note choices"))]
pub mod random;
pub mod split;

/// How a kernel uses a binding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A tensor or input, read.
    Read,
    /// A tensor, written.
    Write,
    /// A weight in its file's type, read through the pieces of its format.
    Weight(How),
    /// A KV state, read or written through the pieces of its type.
    Kv(KvUse),
    /// A state of plain words, written in place.
    State,
}

/// Bindings whose weights are read in another way.
pub const fn reading<const N: usize>(bindings: &[(&'static str, Access)], how: How) -> [(&'static str, Access); N] {
    let (mut all, mut i) = ([("", Access::Read); N], 0);
    while i < N {
        let (name, access) = bindings[i];
        all[i] = (name, if let Access::Weight(_) = access { Access::Weight(how) } else { access });
        i += 1;
    }
    all
}

/// How a kernel uses a KV state.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum KvUse {
    Read,
    Write,
    Both,
}

/// The formats and state types that a variant serves, of all that its bindings can be bound to.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Only {
    #[default]
    Every,
    /// Weights whose format has no blocks. Their rows may have any length; rows of other formats
    /// are a multiple of four elements long.
    Blockless,
    /// Keys and values that are tensors of the step. They have the layout of f32 states.
    Step,
}

impl Access {
    /// Whether the shader declares the binding `read_write`.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Kv(KvUse::Write | KvUse::Both) | Self::State)
    }
}

/// The type of a params field; every field is four bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    U32,
    F32,
}

/// The params field for the rows of a state. It is filled in when a plan is bound.
pub const CAPACITY: &str = "capacity";

/// Another name of the params field for the rows of a state. Kernels declare this name if they need
/// the field only to find the rows of a sequence that is not the first.
pub const ROWS_APART: &str = "rows_apart";

/// A text of WGSL: its path under `shaders/`, and its contents.
pub type Piece = (&'static str, &'static str);

/// A part of a kernel's WGSL.
#[derive(Copy, Clone, Debug)]
pub enum Part {
    Piece(Piece),
    /// The name of a slot, which every variant fills.
    Slot(&'static str),
}

/// The contents of a slot.
#[derive(Copy, Clone, Debug)]
pub enum Fill {
    /// Constants of type `u32`, by name.
    Vary(&'static [(&'static str, u32)]),
    Choose(&'static [Piece]),
}

/// The largest use of each limited resource by any shader of a variant. Storage buffers are not
/// listed: they are the bindings.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    pub threads: u32,
    pub workgroup_bytes: u32,
}

/// The largest difference of an element from the oracle, in units of the largest RMS of the
/// differences of its row that the bound of the kernel allows. A variant may declare another one.
///
/// An error that is the sum of many roundings is spread almost normally. The largest of n such
/// errors is about sqrt(2 ln n) times their RMS: 4.3 times for the 12,288 elements of the widest
/// rows, 5 times for a vocabulary of 262,144. The rest is for rows whose parts have unequal errors,
/// such as a head with scores of 200 beside heads with small scores. The NMSE alone lets one
/// element of a row of n be wrong by sqrt(n) times the RMS.
pub const PEAK: f64 = 16.0;

/// One kernel. Binding 0 is the uniform `params`; the others follow in the order declared here.
#[derive(Debug)]
pub struct Kernel {
    /// The kernel's own name, unique.
    pub name: &'static str,
    /// The name of the entry point, which is the operation's name.
    pub entry: &'static str,
    /// The parts of the WGSL; the kernel's own file comes first.
    pub wgsl: &'static [Part],
    pub params: &'static [(&'static str, Scalar)],
    /// The params that plans of many rows set as constants, too. The speed of the kernel depends on
    /// them, and most plans of a model have the same values.
    pub constants: &'static [&'static str],
    pub bindings: &'static [(&'static str, Access)],
    /// Path of the oracle in `cpu-ref`.
    pub oracle: &'static str,
    /// Bound of the normalised mean squared error of each row against the oracle. It also bounds
    /// each element, by the peak of the variant.
    pub nmse: f64,
    /// File that declares the kernel.
    pub file: &'static str,
    /// The variants. A kernel without slots has one, with the kernel's name.
    pub variants: &'static [&'static Variant],
}

/// A kernel with its slots filled.
pub struct Variant {
    pub kernel: &'static Kernel,
    /// Unique name: the words of the kernel's name, possibly with other numbers, and more words
    /// after them.
    pub name: &'static str,
    /// The contents of each slot.
    pub fill: &'static [(&'static str, Fill)],
    pub needs: Needs,
    /// The largest difference of an element, in units of the root of the kernel's bound: [`PEAK`],
    /// or a number of its own beside its reason.
    pub peak: f64,
    pub only: Only,
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Variant {}

impl std::hash::Hash for Variant {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

// Prints the name only: a kernel refers to its variants and they refer to it, so a full print would
// never end.
impl std::fmt::Debug for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variant")
            .field("name", &self.name)
            .field("fill", &self.fill)
            .field("needs", &self.needs)
            .finish()
    }
}

impl Kernel {
    /// The kernel's own file.
    ///
    /// # Panics
    /// When the list begins with a slot.
    #[must_use]
    pub fn main(&self) -> Piece {
        match self.wgsl.first() {
            Some(Part::Piece(piece)) => *piece,
            _ => panic!("{} does not begin with its own file", self.name),
        }
    }

    /// The variant of a kernel without slots.
    ///
    /// # Panics
    /// When there are several variants.
    #[must_use]
    pub fn only(&self) -> &'static Variant {
        assert_eq!(self.variants.len(), 1, "{} has several variants", self.name);
        self.variants[0]
    }

    /// Whether the kernel needs cooperative matrices, and with them f16.
    #[must_use]
    pub fn cooperative(&self) -> bool {
        self.main().1.contains("enable wgpu_cooperative_matrix;")
    }

    /// Whether the kernel has the bindings of another kernel. It may read weights in another way.
    #[must_use]
    pub fn binds_as(&self, other: &Self) -> bool {
        let alike = |a: &(&str, Access), b: &(&str, Access)| {
            a.0 == b.0 && std::mem::discriminant(&a.1) == std::mem::discriminant(&b.1)
        };
        self.bindings.len() == other.bindings.len()
            && self.bindings.iter().zip(other.bindings).all(|(a, b)| alike(a, b))
    }

    /// Whether a device with these capabilities can run every variant.
    #[must_use]
    pub fn fits(&self, caps: &Caps) -> bool {
        self.variants.iter().all(|variant| variant.fits(caps))
    }

    /// The params field that is filled in when a plan is bound, with its byte offset.
    #[must_use]
    pub fn bound_late(&self) -> Option<(&'static str, usize)> {
        [CAPACITY, ROWS_APART].into_iter().find_map(|field| Some((field, self.param_offset(field)?)))
    }

    /// Byte offset of a params field.
    #[must_use]
    pub fn param_offset(&self, field: &str) -> Option<usize> {
        self.params.iter().position(|(name, _)| *name == field).map(|i| 4 * i)
    }
}

impl Variant {
    /// Whether a device with these capabilities can run the variant.
    #[must_use]
    pub fn fits(&self, caps: &Caps) -> bool {
        let Needs { threads, workgroup_bytes } = self.needs;
        let within = threads <= caps.max_workgroup && workgroup_bytes <= caps.max_workgroup_bytes;
        let cooperates = caps.cooperative || !self.kernel.cooperative();
        cooperates && within && self.kernel.bindings.len() <= caps.max_storage_buffers as usize
    }

    /// The contents of the WGSL, in order.
    ///
    /// # Panics
    /// When a slot is not filled.
    pub fn filled(&self) -> impl Iterator<Item = Fill> + '_ {
        self.kernel.wgsl.iter().map(|part| match part {
            Part::Piece(piece) => Fill::Choose(std::slice::from_ref(piece)),
            Part::Slot(slot) => {
                let fill = self.fill.iter().find(|(name, _)| name == slot);
                fill.unwrap_or_else(|| panic!("{} leaves the slot {slot} open", self.name)).1
            }
        })
    }

    /// The pieces, in order, without the constants.
    pub fn pieces(&self) -> impl Iterator<Item = &'static Piece> + '_ {
        self.filled().flat_map(|fill| if let Fill::Choose(pieces) = fill { pieces } else { &[] })
    }

    /// The constants of every slot.
    pub fn constants(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.filled().flat_map(|fill| if let Fill::Vary(constants) = fill { constants } else { &[] }).copied()
    }

    /// Whether the piece at `path` is part of the WGSL.
    #[must_use]
    pub fn includes(&self, path: &str) -> bool {
        self.pieces().any(|(of, _)| *of == path)
    }
}
