//! Product of one row of 8-bit activations with a quantized weight matrix.

use super::problem::Part;
use super::product::{Operand, Product};
use crate::caps::table::measured::{VEC_Q8_MANY_ROWS, VEC_Q8_MIDDLE_STEPS};
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid};
use crate::kernel::format::{self, Format};
use crate::norm::pack_q8::BLOCK;

kernel! {
    MATMUL_VEC_Q8: "matmul_vec_q8",
    wgsl: [
        "matmul/matmul_vec_q8.wgsl", lanes, "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params { k: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Weight(Units), bias: Read, y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 32, workgroup_bytes: 528 },
    variants: {
        // Threads that compute two rows of weights. For rows of ordinary length.
        LANES_32: "matmul_vec_q8" { lanes: vary { WG: 32 } },
        // For long rows, where fewer threads would load several times in turn. Six subgroups,
        // because rows of 8960 to 12288 columns are 140 to 192 steps.
        LANES_192: "matmul_vec_q8_long" needs { threads: 192, workgroup_bytes: 3168 } { lanes: vary { WG: 192 } },
        // For rows of more than 32 steps, where fewer threads would load two or three times in
        // turn.
        LANES_96: "matmul_vec_q8_middle" needs { threads: 96, workgroup_bytes: 1584 } { lanes: vary { WG: 96 } },
    },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 2;

/// Whether the weight is read in units, which products with 8-bit activations need.
#[must_use]
pub fn serves(w: Weight) -> bool {
    w.cols.is_multiple_of(BLOCK) && format::format(w.ty).is_some_and(Format::in_8_bits)
}

/// y = w x with `packed` activations of K elements, else as in [`crate::ops::matmul()`].
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases record it"))]
pub fn matmul_q8(rec: &mut Recorder<impl From<Product>>, w: Weight, packed: Tensor) -> Tensor {
    assert_eq!(
        packed.shape.dim,
        w.cols / 8 * 3,
        "matmul_q8: {} packed words with a weight of {} columns",
        packed.shape.dim,
        w.cols
    );
    let y = rec.make(Shape { heads: 1, dim: w.rows, ..packed.shape });
    rec.push(Product { w, x: packed, operand: Operand::Q8, exact: false, bias: None, y });
    y
}

/// The variant for a part of a product.
pub fn form(part: &Part<'_>) -> &'static Variant {
    let Weight { ty, rows, cols, .. } = part.product.w;
    let steps = cols / if ty.block_size() == 32 { 32 } else { 64 };
    // Above the table's `vec_columns`, six times as many threads share a row, so that rows of up to
    // 12288 columns need one pass.
    match cols > part.caps.table.vec_columns {
        true => &LANES_192,
        false if steps > VEC_Q8_MIDDLE_STEPS && rows < VEC_Q8_MANY_ROWS * part.caps.table.workgroups => &LANES_96,
        false => &LANES_32,
    }
}

/// The dispatch of a part of a product.
pub fn lower(part: &Part<'_>, variant: &'static Variant) -> Dispatch {
    let x = part.product.x;
    let params = Params {
        k: part.product.w.cols,
        row_base: part.first,
        row_count: part.rows,
        has_bias: part.has_bias(),
        exchange: part.caps.subgroup_size,
    };
    let grid = Grid::PerRow { lead: x.shape, per_row: part.rows.div_ceil(WEIGHT_ROWS) };
    Bind { x: x.into(), w: part.w(), bias: part.added, y: part.to.into() }.dispatch(variant, params, grid)
}

/// h = a + product, of one row. It uses the kernel of the product, with `a` as the bias. The
/// planner makes it; it is never recorded.
#[derive(Clone, Debug)]
pub struct MatmulVecAdd {
    pub product: Product,
    pub a: Tensor,
    pub h: Tensor,
}

impl Operation for MatmulVecAdd {
    fn io(&self) -> Io {
        Io { reads: vec![self.product.x, self.a], writes: vec![self.h] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }
}
