//! The ladder of products: which kernel multiplies how many rows with which weight, from the
//! fastest to the portable one.

use super::matmul::{self, Matmul};
use super::product::{Operand, Product};
use super::product_pair::ProductPair;
use super::{
    matmul_narrow, matmul_rows8, matmul_tile64, matmul_tile64_pair, matmul_tile128, matmul_vec, matmul_vec_q8,
};
use crate::caps::Caps;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Lower, Lowering};
use crate::kernel::split::parts;
use crate::kernel::{Kernel, Variant};
use crate::matmul::matmul_vec_q8::MatmulVecAdd;
use std::ops::Range;

/// A product as the ladder sees it. A rung destructures it completely, so that a new field does not
/// compile until every rung handles it.
#[derive(Copy, Clone, Debug)]
pub struct Problem {
    pub w: Weight,
    /// Rows of activations.
    pub rows: u32,
    /// How far the operand may be rounded.
    pub rounds: Rounds,
    /// Whether the bits of a row may depend on the number of rows, as they do in plans that round.
    pub free: bool,
    pub bias: bool,
}

/// The part of a product that one dispatch computes: the rows of its weight that one binding holds.
#[derive(Copy, Clone, Debug)]
pub struct Part<'a> {
    pub product: &'a Product,
    /// The number of the binding among those of the weight.
    pub number: u32,
    /// The first row of the weight, and the number of rows.
    pub first: u32,
    pub rows: u32,
    /// A row or a tensor that is added to the product, or [`Arg::None`].
    pub added: Arg,
    pub to: Tensor,
    pub caps: &'a Caps,
}

impl Part<'_> {
    /// The binding of the weight.
    #[must_use]
    pub fn w(&self) -> Arg {
        Arg::Weight(self.product.w, self.number)
    }

    /// 1 if something is added.
    #[must_use]
    pub fn has_bias(&self) -> u32 {
        u32::from(self.added != Arg::None)
    }
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
    /// f16 in slabs, for tiles of 16 to 96 rows.
    Slabs,
}

/// One rung.
pub struct Rung {
    /// The kernel. Its file may declare a second kernel for formats that this one does not read.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub kernel: &'static Kernel,
    /// The domain, in words.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub domain: &'static str,
    pub rounding: Rounding,
    /// Largest number of rows that the kernel multiplies.
    most_rows: u32,
    /// Whether the rung takes a product on this device.
    serves: fn(Problem, &Caps) -> bool,
    /// The variants in words: which one takes which part of a product.
    pub forms: &'static str,
    form: fn(&Part<'_>) -> &'static Variant,
    lower: fn(&Part<'_>, &'static Variant) -> Dispatch,
    /// Why the rung stands above the rungs after it, with the measurement.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub beats: &'static str,
}

/// Smallest number of rows: a cooperative matrix has 16.
pub(crate) const TILE128_ROWS: u32 = 16;

/// The rungs. The first rung that serves a product takes it. The last rung serves every
/// product.
pub static LADDER: [Rung; 7] = [
    Rung {
        kernel: &matmul_vec_q8::MATMUL_VEC_Q8,
        domain: "one row, up to the table's `q8_rows`; a weight with units, in plans that round",
        rounding: Rounding::Q8,
        most_rows: 1,
        serves: |problem, caps| {
            let Problem { w, rows, rounds, free: _, bias: _ } = problem;
            rounds == Rounds::Freely && rows == 1 && rows <= caps.table.q8_rows && matmul_vec_q8::serves(w)
        },
        forms: "`_long`: columns above the table's `vec_columns`; `_middle`: more than 32 steps, where workgroups would be few",
        form: matmul_vec_q8::form,
        lower: matmul_vec_q8::lower,
        beats: "packed activations take 48 bytes for 32 elements instead of 128, and a dot product of four is one instruction",
    },
    Rung {
        kernel: &matmul_rows8::MATMUL_ROWS8,
        domain: "rows up to the table's `q8_rows`, in groups of eight; a weight with units, in plans that round",
        rounding: Rounding::Q8,
        most_rows: u32::MAX,
        serves: |problem, caps| {
            let Problem { w, rows, rounds, free: _, bias: _ } = problem;
            rounds == Rounds::Freely && rows <= caps.table.q8_rows && matmul_vec_q8::serves(w)
        },
        forms: "by rows of activations in a workgroup (2, 4, 8), and by columns: `_short` up to 1024, `_medium` up to 2048",
        form: matmul_rows8::form,
        lower: matmul_rows8::lower,
        beats: "up to the table's `q8_rows`; 8 rows of 4096 x 12288 take 36 us, in tiles of 16 rows 35, 32 rows 123",
    },
    Rung {
        kernel: &matmul_tile64::MATMUL_TILE64,
        domain: "rows up to the table's `tile64_rows`, and up to 1024 where larger tiles would be few or sparse; a weight with units or of 16 \
                 bits, in plans that round, through cooperative matrices",
        rounding: Rounding::Slabs,
        most_rows: u32::MAX,
        serves: |problem, caps| {
            let Problem { w, rows, rounds, free: _, bias: _ } = problem;
            rounds == Rounds::Freely && caps.cooperative && matmul_tile64::serves(w, rows, caps)
        },
        forms: "by rows of activations in a tile (16 to 96); `_long`: as many workgroups as run at once; `_narrow`: half as many",
        form: matmul_tile64::form_of,
        lower: matmul_tile64::lower,
        beats: "up to the table's `tile64_rows`; 32 rows of 4096 x 12288 take 44 us, in tiles of 128 rows 127",
    },
    Rung {
        kernel: &matmul_tile128::MATMUL_TILE128_GROUPS,
        domain: "at least 16 rows; columns a multiple of 32, in plans that round, through cooperative matrices",
        rounding: Rounding::F16,
        most_rows: u32::MAX,
        serves: |problem, caps| {
            let Problem { w, rows, rounds, free: _, bias: _ } = problem;
            rounds != Rounds::Never && caps.cooperative && rows >= TILE128_ROWS && matmul_tile128::serves(w)
        },
        forms: "`groups`: weights in units; `halves`: of 16 bits; `_narrow`: 64 rows of the weight, where its rounds take less time; `_tail`: results that are not whole quads",
        form: matmul_tile128::form,
        lower: matmul_tile128::lower,
        beats: "tiles of 128 rows through tensor cores: 2048 rows of 4096 x 4096 multiply at 229 TFLOP/s",
    },
    Rung {
        kernel: &matmul_vec::MATMUL_VEC,
        domain: "one row of any weight; in plans that round, up to 8 rows of an f32 weight where tiles would be few",
        rounding: Rounding::F32,
        most_rows: matmul_vec::MOST_ROWS,
        serves: |problem, caps| {
            let Problem { w, rows, rounds: _, free, bias: _ } = problem;
            rows == 1 || free && matmul_vec::few(w, rows, caps)
        },
        forms: "`_long`: columns above the table's `vec_columns`, and few rows of a weight; `_tail`: columns that are no multiple of 8",
        form: matmul_vec::form,
        lower: matmul_vec::lower,
        beats: "a workgroup takes four rows of the weight; a tile would hold one row of activations and 63 empty ones",
    },
    Rung {
        kernel: &matmul_narrow::MATMUL_NARROW,
        domain: "several rows of an f32 weight, without bias, where tiles would not keep the device busy; in plans that round",
        rounding: Rounding::F32,
        most_rows: u32::MAX,
        serves: |problem, caps| {
            let Problem { w, rows, rounds: _, free, bias } = problem;
            free && !bias && matmul_narrow::serves(w, rows, caps)
        },
        forms: "one",
        form: |_| matmul_narrow::MATMUL_NARROW.only(),
        lower: matmul_narrow::lower,
        beats: "tiles of 8 x 8 keep a device busy: tiles of 64 x 64 results are two for a router of 128 rows",
    },
    Rung {
        kernel: &matmul::MATMUL,
        domain: "any rows; any weight",
        rounding: Rounding::F32,
        most_rows: u32::MAX,
        serves: |problem, _| {
            let Problem { w: _, rows: _, rounds: _, free: _, bias: _ } = problem;
            true
        },
        forms: "`_many`: four tiles and more for each of the table's `workgroups`; `_tail`: columns that are no multiple of 4",
        form: matmul::form,
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

/// The dispatches of a product that a rung takes, one for each part of its weight. `added` is added
/// to the product, and `to` is the result.
fn dispatches(rung: &Rung, product: &Product, added: Arg, to: Tensor, caps: &Caps) -> Vec<Dispatch> {
    let Weight { ty, rows, cols, .. } = product.w;
    let one = |(number, range): (usize, Range<u32>)| {
        let number = number as u32;
        let part = Part { product, number, first: range.start, rows: range.len() as u32, added, to, caps };
        (rung.lower)(&part, (rung.form)(&part))
    };
    parts(caps, ty, rows, cols).into_iter().enumerate().map(one).collect()
}

/// The rung of a product in a plan. A packed operand was packed for its rung.
fn rung_of(product: &Product, cx: &Lower<'_>) -> &'static Rung {
    let (w, rows, bias) = (product.w, product.x.shape.rows, product.bias.is_some());
    let rounding = match product.operand {
        Operand::F32 => return rung(Problem { w, rows, rounds: Rounds::Never, free: cx.fast, bias }, cx.caps),
        Operand::Q8 => Rounding::Q8,
        Operand::F16 { .. } => Rounding::F16,
        Operand::Slabs { .. } => Rounding::Slabs,
    };
    let rung = LADDER.iter().find(|rung| rung.rounding == rounding && product.y.shape.rows <= rung.most_rows);
    rung.expect("every rounding has a rung for any number of rows")
}

impl Lowering for Matmul {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        Product::from(self).lower(cx)
    }
}

impl Lowering for Product {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        dispatches(rung_of(self, cx), self, self.bias.into(), self.y, cx.caps)
    }
}

impl Lowering for MatmulVecAdd {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        dispatches(rung_of(&self.product, cx), &self.product, self.a.into(), self.h, cx.caps)
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
