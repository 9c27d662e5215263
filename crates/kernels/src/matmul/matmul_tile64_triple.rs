//! A third product in the kernel of two products of some rows, through cooperative matrices.
//! The planner makes it; it is never recorded.

use super::matmul_tile64::{Variants, fit, grid, variants_by_bands};
use super::matmul_tile64_pair::form_of;
use super::product::Product;
use super::product_pair::ProductPair;
use crate::caps::Caps;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Arg, Dispatch, Lower, Lowering};

kernel! {
    MATMUL_TILE64_TRIPLE: "matmul_tile64_triple",
    wgsl: ["matmul/matmul_tile64_triple.wgsl", "matmul/pieces/tile64_tiles.wgsl", "matmul/pieces/four_of_pairs.wgsl", tile, "shared/unit.wgsl"],
    params: Params { k: u32, rows: u32, n: u32, other_n: u32, third_n: u32, biases: u32 },
    bindings: Bind {
        x: Read, scales: Read, w: Weight(Tiles), other: Weight(Second), third: Weight(Tiles), bias: Read, other_bias: Read, third_bias: Read, y: Write, other_y: Write,
        third_y: Write
    },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 15360 },
    variants: {
        // BANDS: groups of 16 rows of x. PARTS: subgroups that each take a part of the columns.
        // GROUPS: groups of 16 rows of weights.
        ROWS_16: "matmul_tile16_triple" { tile: vary { BANDS: 1, PARTS: 4, GROUPS: 2 } },
        ROWS_16_LONG: "matmul_tile16_triple_long" needs { threads: 384, workgroup_bytes: 41984 } {
            tile: vary { BANDS: 1, PARTS: 12, GROUPS: 2 },
        },
        ROWS_16_NARROW: "matmul_tile16_triple_narrow" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 1, PARTS: 8, GROUPS: 1 },
        },
        ROWS_32: "matmul_tile32_triple" needs { threads: 192, workgroup_bytes: 22016 } { tile: vary { BANDS: 2, PARTS: 6, GROUPS: 2 } },
        ROWS_32_LONG: "matmul_tile32_triple_long" needs { threads: 384, workgroup_bytes: 41984 } {
            tile: vary { BANDS: 2, PARTS: 12, GROUPS: 2 },
        },
        ROWS_32_NARROW: "matmul_tile32_triple_narrow" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 2, PARTS: 8, GROUPS: 1 },
        },
        ROWS_48: "matmul_tile48_triple" { tile: vary { BANDS: 3, PARTS: 4, GROUPS: 2 } },
        ROWS_48_LONG: "matmul_tile48_triple_long" needs { threads: 384, workgroup_bytes: 41984 } {
            tile: vary { BANDS: 3, PARTS: 12, GROUPS: 2 },
        },
        ROWS_48_NARROW: "matmul_tile48_triple_narrow" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 3, PARTS: 8, GROUPS: 1 },
        },
        ROWS_64: "matmul_tile64_triple" { tile: vary { BANDS: 4, PARTS: 4, GROUPS: 2 } },
        ROWS_64_LONG: "matmul_tile64_triple_long" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 2 },
        },
        ROWS_64_NARROW: "matmul_tile64_triple_narrow" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 1 },
        },
        ROWS_80: "matmul_tile80_triple" { tile: vary { BANDS: 5, PARTS: 4, GROUPS: 2 } },
        ROWS_80_LONG: "matmul_tile80_triple_long" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 5, PARTS: 8, GROUPS: 2 },
        },
        ROWS_80_NARROW: "matmul_tile80_triple_narrow" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 5, PARTS: 8, GROUPS: 1 },
        },
        ROWS_96: "matmul_tile96_triple" { tile: vary { BANDS: 6, PARTS: 4, GROUPS: 2 } },
        ROWS_96_LONG: "matmul_tile96_triple_long" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 6, PARTS: 8, GROUPS: 2 },
        },
        ROWS_96_NARROW: "matmul_tile96_triple_narrow" needs { threads: 256, workgroup_bytes: 28672 } {
            tile: vary { BANDS: 6, PARTS: 8, GROUPS: 1 },
        },
    },
}

const VARIANTS: Variants = variants_by_bands!();

/// Whether a device can run the usual and the narrow variants.
pub(crate) fn fits(caps: &Caps) -> bool {
    fit(&VARIANTS, caps)
}

/// Two products of the same rows with weights of one format, and a third with a weight of another
/// format.
#[derive(Clone, Debug)]
pub struct MatmulTile64Triple {
    pub pair: ProductPair,
    pub third: Product,
}

impl MatmulTile64Triple {
    fn products(&self) -> [&Product; 3] {
        let [a, b] = &self.pair.products;
        [a, b, &self.third]
    }
}

impl Operation for MatmulTile64Triple {
    fn io(&self) -> Io {
        Io { reads: self.third.io().reads, writes: self.products().map(|product| product.y).to_vec() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products().iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }
}

impl Lowering for MatmulTile64Triple {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let [a, b, c] = self.products();
        let (variant, tiles) = form_of(&VARIANTS, &[a, b, c], cx.caps);
        let scales = a.scales().map_or(Arg::None, Arg::from);
        let biases = [a, b, c].iter().zip(0..).map(|(product, bit)| u32::from(product.bias.is_some()) << bit).sum();
        let params =
            Params { k: a.w.cols, rows: a.y.shape.rows, n: a.w.rows, other_n: b.w.rows, third_n: c.w.rows, biases };
        let bind = Bind {
            x: a.x.into(),
            scales,
            w: a.w.into(),
            other: b.w.into(),
            third: c.w.into(),
            bias: a.bias.into(),
            other_bias: b.bias.into(),
            third_bias: c.bias.into(),
            y: a.y.into(),
            other_y: b.y.into(),
            third_y: c.y.into(),
        };
        vec![bind.dispatch(variant, params, grid(a.y.shape, tiles))]
    }
}
