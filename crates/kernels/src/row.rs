//! A row: one WGSL kernel declared once, from which layouts, params, tests and documents follow.

use crate::device::Caps;

/// How a kernel uses a binding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A tensor or input, read.
    Read,
    /// A tensor, written.
    Write,
    /// A weight in its file's type, read through a format piece.
    Weight,
    /// A weight whose format has units, read through the pieces for 8-bit activations.
    Units,
    /// The same, read through the pieces for tiles.
    Groups,
    /// The same, read through the pieces for tiles and those for a few rows of 8-bit activations.
    Rows,
    /// The same, multiplied with a few rows in tiles.
    Tiles,
    /// A second weight of the same type, whose pieces share the types of the binding before.
    Beside,
    /// A KV state, read through a piece of its type.
    Kv,
    /// A KV state, written through a piece of its type.
    KvMut,
    /// A KV state, read and written through the pieces of its type.
    KvBoth,
    /// A state of plain words, written in place.
    StateMut,
}

impl Access {
    /// Whether the shader declares the binding `read_write`.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::KvMut | Self::KvBoth | Self::StateMut)
    }
}

/// The type of one params field; all fields are four bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    U32,
    F32,
}

/// The params field for the rows of a state that the binding of a plan fills in.
pub const CAPACITY: &str = "capacity";
/// The same where it is needed only to find the rows of a sequence that is not the first.
pub const ROWS_APART: &str = "rows_apart";

/// One kernel. Binding 0 is the uniform `params`; the others follow in the order declared here.
#[derive(Debug)]
pub struct Row {
    /// The row's own name, unique; variants of an operation add a suffix.
    pub name: &'static str,
    /// The entry point, which carries the operation's name.
    pub entry: &'static str,
    /// (path under `shaders/`, text), the kernel file first.
    pub wgsl: &'static [(&'static str, &'static str)],
    pub params: &'static [(&'static str, Scalar)],
    pub bindings: &'static [(&'static str, Access)],
    /// Path of the oracle in `cpu-ref`.
    pub oracle: &'static str,
    /// Bound of the normalised mean squared error against the oracle.
    pub nmse: f64,
    /// File that declares the row.
    pub file: &'static str,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Row {}
impl std::hash::Hash for Row {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Row {
    /// Whether the row needs cooperative matrices, and the f16 that they multiply.
    #[must_use]
    pub fn cooperative(&self) -> bool {
        self.wgsl[0].1.contains("enable wgpu_cooperative_matrix;")
    }

    /// Whether a device of these capabilities can run the row.
    #[must_use]
    pub fn fits(&self, caps: &Caps) -> bool {
        let cooperates = caps.cooperative || !self.cooperative();
        let within = self.threads() <= caps.max_workgroup && self.workgroup_bytes() <= caps.max_workgroup_bytes;
        cooperates && within && self.bindings.len() <= caps.max_storage_buffers as usize
    }

    /// Threads that the row's workgroups may have, likewise.
    #[must_use]
    pub fn threads(&self) -> u32 {
        match self.name {
            "matmul_vec_norm_long" | "glu_pack_f16_silu" | "glu_pack_f16_gelu" => 1024,
            "matmul_few_16_long" | "matmul_few_32_long" => 384,
            "matmul_vec_norm"
            | "attention_short_512"
            | "attention_short_whole"
            | "attention_short_parts"
            | "attention_deep_long"
            | "merge_matmul_vec"
            | "norm_add_matmul_vec_glu"
            | "norm_pack_f16"
            | "norm_pack_matmul_vec"
            | "norm_pack_matmul_vec_glu_silu"
            | "norm_pack_matmul_vec_glu_gelu" => 512,
            _ => 256,
        }
    }

    /// Bytes of workgroup memory that the row may take: WebGPU's default limit, what every device with cooperative matrices has, or, for
    /// rows that need more and have others beside them, what many of these have.
    #[must_use]
    pub fn workgroup_bytes(&self) -> u32 {
        match self.name {
            "attention_coop_256" | "attention_coop_512" => 48 << 10,
            "matmul_few_16_long" | "matmul_few_32_long" => 40 << 10,
            "glu_pack_f16_silu" | "glu_pack_f16_gelu" => 32 << 10,
            "matmul_vec_norm_long" | "norm_pack_matmul_vec" | "norm_pack_matmul_vec_glu_silu" | "norm_pack_matmul_vec_glu_gelu" => 32 << 10,
            "attention_short_512"
            | "attention_short_whole"
            | "attention_short_whole_long"
            | "attention_short_parts"
            | "attention_deep_long"
            | "merge_matmul_vec"
            | "norm_add_matmul_vec_glu" => 32 << 10,
            _ if self.cooperative() => 32 << 10,
            _ => 16 << 10,
        }
    }

    /// Storage buffers that the row may bind: as many as every WebGPU device gives, or, for what the planner fuses only where the device's
    /// [`max_storage_buffers`](Caps::max_storage_buffers) suffice, as many as common adapters give.
    #[must_use]
    pub fn storage_buffers(&self) -> usize {
        match self.name {
            "norm_add_matmul_vec" | "attention_batch" | "attention_batch_2" | "attention_batch_4" => 12,
            "matmul_vec_group"
            | "norm_pack_matmul_vec"
            | "norm_rope_heads"
            | "attention_short"
            | "attention_short_512"
            | "attention_short_128"
            | "attention_short_batch"
            | "attention_short_batch_2"
            | "attention_short_whole"
            | "attention_short_whole_long"
            | "attention_short_parts"
            | "attention_deep_raw"
            | "attention_deep_raw_2" => 11,
            name if name.starts_with("matmul_few_q8_group_") || name.starts_with("matmul_few_triple_") => 11,
            "norm_add_matmul_vec_glu" => 9,
            _ => 8,
        }
    }

    /// The params field that the binding of a plan fills in, with its byte offset.
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

/// Declares a row: a static [`Row`], its typed params and its bindings by name.
///
/// `Bind { x, y }.dispatch(Params { .. }, grid)` makes a [`crate::plan::Dispatch`] of it.
#[macro_export]
macro_rules! kernel {
    (
        $row:ident: $name:literal,
        entry: $entry:literal,
        wgsl: [$($file:literal),+ $(,)?],
        params: $params:ident { $($field:ident: $ty:ident),* $(,)? },
        bindings: $bind:ident { $($binding:ident: $access:ident),+ $(,)? },
        cpu: $cpu:path,
        nmse: $nmse:expr $(,)?
    ) => {
        #[allow(unused_imports)]
        use $cpu as _;

        #[doc = concat!("The row `", $name, "`.")]
        pub static $row: $crate::row::Row = $crate::row::Row {
            name: $name,
            entry: $entry,
            wgsl: &[$(($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shaders/", $file)))),+],
            params: &[$((stringify!($field), $crate::kernel!(@scalar $ty))),*],
            bindings: &[$((stringify!($binding), $crate::row::Access::$access)),+],
            oracle: stringify!($cpu),
            nmse: $nmse,
            file: file!(),
        };

        #[repr(C)]
        #[derive(Copy, Clone, Debug, bytemuck::Pod, bytemuck::Zeroable)]
        struct $params { $($field: $ty),* }

        struct $bind { $($binding: $crate::plan::Arg),+ }

        impl $bind {
            fn dispatch(self, params: $params, grid: $crate::plan::Grid) -> $crate::plan::Dispatch {
                $crate::plan::Dispatch {
                    row: &$row,
                    params: bytemuck::bytes_of(&params).to_vec(),
                    args: vec![$(self.$binding),+],
                    grid,
                    when: $crate::plan::When::Always,
                }
            }
        }
    };
    // A row with the params and bindings of another, composed of other pieces under a condition of its own.
    ($row:ident: $name:literal = $base:ident with wgsl: [$($file:literal),+ $(,)?] $(,)?) => {
        $crate::kernel! { @like $row: $name = $base, $base.entry, $base.file, [$($file),+] }
    };
    // The same with an entry, and so a file, of its own.
    ($row:ident: $name:literal = $base:ident with entry: $entry:literal, wgsl: [$($file:literal),+ $(,)?] $(,)?) => {
        $crate::kernel! { @like $row: $name = $base, $entry, file!(), [$($file),+] }
    };
    (@like $row:ident: $name:literal = $base:ident, $entry:expr, $own:expr, [$($file:literal),+]) => {
        #[doc = concat!("The row `", $name, "`.")]
        pub static $row: $crate::row::Row = $crate::row::Row {
            name: $name,
            wgsl: &[$(($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shaders/", $file)))),+],
            entry: $entry,
            params: $base.params,
            bindings: $base.bindings,
            oracle: $base.oracle,
            nmse: $base.nmse,
            file: $own,
        };
    };
    (@scalar u32) => { $crate::row::Scalar::U32 };
    (@scalar f32) => { $crate::row::Scalar::F32 };
}
