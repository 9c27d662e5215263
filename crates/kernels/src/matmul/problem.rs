//! What the ladder of products decides about, and the parts of a product that its kernels compute.

use super::product::Product;
use crate::caps::Caps;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::Arg;

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
    /// f16 in slabs, as [`pack_f16`](crate::norm::pack_f16) packs them, for tiles of 16 to 96 rows.
    Slabs,
}

/// Smallest number of rows: a cooperative matrix has 16.
pub(crate) const TILE128_ROWS: u32 = 16;
