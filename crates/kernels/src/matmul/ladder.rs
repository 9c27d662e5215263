//! The ladder of products: which kernel multiplies how many rows with which weight, from the
//! fastest to the portable one.

use super::matmul::{self, Matmul};
use super::product::{Operand, Product};
use super::product_pair::ProductPair;
use super::{
    matmul_narrow, matmul_rows8, matmul_tile64, matmul_tile64_pair, matmul_tile128, matmul_vec, matmul_vec_q8,
};
use crate::caps::Caps;
use crate::graph::tensor::Weight;
use crate::kernel::Kernel;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};

/// A product as the ladder sees it. A rung destructures it completely, so that a new field does not
/// compile until every rung handles it.
#[derive(Copy, Clone, Debug)]
pub struct Problem {
    pub w: Weight,
    /// Rows of activations.
    pub rows: u32,
    /// How far the operand may be rounded.
    pub rounds: Rounds,
}

/// How far operands may be rounded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rounds {
    Never,
    /// To f16 with a power of two for each row. The kernels are the same for 16 rows and for any
    /// more, so that a row has the same bits in steps of any length.
    Halves,
    /// As the fastest rung reads them.
    Freely,
}

/// The form in which a rung reads its operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rounding {
    F32,
    /// 8 bits, as [`pack_q8`](crate::norm::pack_q8) packs rows.
    Q8,
    /// f16 in slabs, as [`pack_f16`](crate::norm::pack_f16) packs them, for large tiles.
    F16,
    /// The same for tiles of 16 to 96 rows.
    Slabs,
}

/// One rung.
pub struct Rung {
    /// The kernel. Its file may declare a second kernel for formats that this one does not read.
    pub kernel: &'static Kernel,
    /// The domain, in words.
    pub domain: &'static str,
    pub rounding: Rounding,
    /// Whether the rung multiplies only a single row.
    one: bool,
    /// Whether the rung takes a product on this device.
    serves: fn(Problem, &Caps) -> bool,
    lower: fn(&Product, &Lower<'_>) -> Vec<Dispatch>,
    /// Why the rung stands above the rungs after it, with the measurement.
    pub beats: &'static str,
}

/// Smallest number of rows: a cooperative matrix has 16.
pub(crate) const TILE128_ROWS: u32 = 16;

/// The rungs. The first rung that serves a product takes it. The last rung serves every
/// product.
pub static LADDER: [Rung; 6] = [
    Rung {
        kernel: &matmul_vec_q8::MATMUL_VEC_Q8,
        domain: "one row, up to the table's `q8_rows`; a weight with units, in plans that round",
        rounding: Rounding::Q8,
        one: true,
        serves: |problem, caps| {
            let Problem { w, rows, rounds } = problem;
            rounds == Rounds::Freely && rows == 1 && rows <= caps.table.q8_rows && matmul_vec_q8::serves(w)
        },
        lower: matmul_vec_q8::lower,
        beats: "packed activations take 48 bytes for 32 elements instead of 128, and a dot product of four is one instruction",
    },
    Rung {
        kernel: &matmul_rows8::MATMUL_ROWS8,
        domain: "rows up to the table's `q8_rows`, in groups of eight; a weight with units, in plans that round",
        rounding: Rounding::Q8,
        one: false,
        serves: |problem, caps| {
            let Problem { w, rows, rounds } = problem;
            rounds == Rounds::Freely && rows <= caps.table.q8_rows && matmul_vec_q8::serves(w)
        },
        lower: matmul_rows8::lower,
        beats: "up to the table's `q8_rows`; 8 rows of 4096 x 12288 take 36 us, in tiles of 16 rows 35, 32 rows 123",
    },
    Rung {
        kernel: &matmul_tile64::MATMUL_TILE64,
        domain: "rows up to the table's `tile64_rows`, and up to 1024 where larger tiles would be few or sparse; a weight with units or of 16 \
                 bits, in plans that round, through cooperative matrices",
        rounding: Rounding::Slabs,
        one: false,
        serves: |problem, caps| {
            let Problem { w, rows, rounds } = problem;
            rounds == Rounds::Freely && caps.cooperative && matmul_tile64::serves(w, rows, caps)
        },
        lower: matmul_tile64::lower,
        beats: "up to the table's `tile64_rows`; 32 rows of 4096 x 12288 take 44 us, in tiles of 128 rows 127",
    },
    Rung {
        kernel: &matmul_tile128::MATMUL_TILE128_GROUPS,
        domain: "at least 16 rows; columns a multiple of 32, in plans that round, through cooperative matrices",
        rounding: Rounding::F16,
        one: false,
        serves: |problem, caps| {
            let Problem { w, rows, rounds } = problem;
            rounds != Rounds::Never && caps.cooperative && rows >= TILE128_ROWS && matmul_tile128::serves(w)
        },
        lower: matmul_tile128::lower,
        beats: "tiles of 128 rows through tensor cores: 2048 rows of 4096 x 4096 multiply at 229 TFLOP/s",
    },
    Rung {
        kernel: &matmul_vec::MATMUL_VEC,
        domain: "one row of any weight; in plans that round, up to 8 rows of an f32 weight where tiles would be few",
        rounding: Rounding::F32,
        one: true,
        serves: |problem, _| {
            let Problem { w: _, rows, rounds: _ } = problem;
            rows == 1
        },
        lower: matmul_vec::lower,
        beats: "a workgroup takes four rows of the weight; a tile would hold one row of activations and 63 empty ones",
    },
    Rung {
        kernel: &matmul::MATMUL,
        domain: "any rows; any weight; in plans that round, an f32 weight of few rows goes to `matmul_narrow`",
        rounding: Rounding::F32,
        one: false,
        serves: |problem, _| {
            let Problem { w: _, rows: _, rounds: _ } = problem;
            true
        },
        lower: matmul::lower,
        beats: "portable",
    },
];

/// The rung that takes a product on this device.
///
/// # Panics
/// Never: the last rung serves every product.
#[must_use]
pub fn rung(problem: Problem, caps: &Caps) -> &'static Rung {
    LADDER.iter().find(|rung| (rung.serves)(problem, caps)).expect("the last rung serves every product")
}

impl Lowering for Matmul {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        Product::from(self).lower(cx)
    }
}

impl Lowering for Product {
    /// The dispatches of the rung that reads this operand.
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let rows = self.x.shape.rows;
        let rounding = match self.operand {
            // The bits of a row then depend on the rows of the plan, as they do where rows are
            // rounded.
            Operand::F32 if cx.fast && matmul_vec::few(self.w, rows, cx.caps) => return matmul_vec::lower(self, cx),
            Operand::F32
                if cx.fast && rows > 1 && self.bias.is_none() && matmul_narrow::serves(self.w, rows, cx.caps) =>
            {
                return vec![matmul_narrow::lower(self, cx.caps)];
            }
            Operand::F32 => Rounding::F32,
            Operand::Q8 => Rounding::Q8,
            Operand::F16 { .. } => Rounding::F16,
            Operand::Slabs { .. } => Rounding::Slabs,
        };
        let one = self.y.shape.rows == 1;
        let rung = LADDER.iter().find(|rung| rung.rounding == rounding && (one || !rung.one));
        (rung.expect("every rounding has a rung for several rows").lower)(self, cx)
    }
}

impl Lowering for ProductPair {
    /// The dispatch of the kernel that reads this operand.
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let slabs = matches!(self.products[0].operand, Operand::Slabs { .. });
        vec![if slabs {
            matmul_tile64_pair::lower(&self.products, cx.caps)
        } else {
            matmul_tile128::lower_pair(&self.products, cx.caps)
        }]
    }
}
