//! Two products of a few rows through cooperative matrices in one kernel. Made by the planner, never recorded.

use super::matmul::{Matmul, Operand, matmul};
use super::matmul_few::{TILE, activations, bands};
use super::{Io, Op, Operation, Work, add_bias};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers, PlanOptions, fixed, parts};
use crate::row::Row;
use crate::tensor::Counts;
use gguf::GgmlType;

kernel! {
    MATMUL_FEW_PAIR_16: "matmul_few_pair_16",
    entry: "matmul_few_pair",
    wgsl: [
        "matmul_few_pair.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_1.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows: u32, n: u32, other_n: u32, biases: u32 },
    bindings: Bind { x: Read, scales: Read, w: Tiles, other: Beside, bias: Read, other_bias: Read, y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
}

kernel! {
    MATMUL_FEW_PAIR_32: "matmul_few_pair_32" = MATMUL_FEW_PAIR_16 with
    wgsl: [
        "matmul_few_pair.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_2.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_PAIR_64: "matmul_few_pair_64" = MATMUL_FEW_PAIR_16 with
    wgsl: [
        "matmul_few_pair.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_4.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

/// By sixteens of rows: 1, 2 and 4.
const ROWS: [&Row; 3] = [&MATMUL_FEW_PAIR_16, &MATMUL_FEW_PAIR_32, &MATMUL_FEW_PAIR_64];
/// Workgroups that two products make together at least.
const LEAST_WORKGROUPS: u32 = 144;

/// Two products of the same rows.
#[derive(Clone, Debug)]
pub struct MatmulFewPair {
    pub products: [Matmul; 2],
}

/// Whether a kernel can take this product beside another: rows in slabs, and a weight that one binding holds.
pub(super) fn joins(product: &Matmul, caps: &Caps) -> bool {
    let w = product.w;
    matches!(product.operand, Operand::Slabs { .. }) && parts(caps, w.ty, w.rows, w.cols).len() == 1
}

pub(super) fn tiles(product: &Matmul) -> u32 {
    product.w.rows.div_ceil(TILE)
}

/// A product of what a product before it read, too, by a weight of the same format: it moves to that one.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::Matmul(product) = op else { return None };
    if !joins(product, makers.caps) || !MATMUL_FEW_PAIR_16.fits(makers.caps) {
        return None;
    }
    let Op::Matmul(other) = makers.latest(|op| match op {
        Op::Matmul(other) => {
            let alike = other.x.id == product.x.id && other.w.ty == product.w.ty && joins(other, makers.caps);
            alike && tiles(other) + tiles(product) >= LEAST_WORKGROUPS
        }
        _ => false,
    })?
    else {
        return None;
    };
    Some(Absorbed { op: MatmulFewPair { products: [other.clone(), product.clone()] }.into(), of: vec![other.y], early: true })
}

impl Operation for MatmulFewPair {
    fn io(&self) -> Io {
        Io { reads: self.products[0].io().reads, writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let [a, b] = &self.products;
        let Operand::Slabs { scales } = a.operand else { unreachable!("both are in slabs") };
        let biases = u32::from(a.bias.is_some()) | u32::from(b.bias.is_some()) << 1;
        let params = Params { k: a.w.cols, rows: a.y.shape.rows, n: a.w.rows, other_n: b.w.rows, biases };
        let bind = Bind {
            x: a.x.into(),
            scales: scales.into(),
            w: a.w.into(),
            other: b.w.into(),
            bias: a.bias.into(),
            other_bias: b.bias.into(),
            y: a.y.into(),
            other_y: b.y.into(),
        };
        let grid = Grid::PerRow { lead: fixed(1, 1), per_row: tiles(a) + tiles(b) };
        vec![Dispatch { row: ROWS[bands(a.y.shape.rows).ilog2() as usize], ..bind.dispatch(params, grid) }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Two products of the same rows, of every format with units, whose last tiles are partly filled, with and without biases, of activations as
/// [`super::matmul_few`] meets them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let (n, other_n) = g.pick(&[(TILE * LEAST_WORKGROUPS - 97, 97), (31, TILE * LEAST_WORKGROUPS), (TILE * 72 + 1, TILE * 72)]);
    // Subgroups have units once and twice.
    let cols = g.cols(ty) + g.pick(&[0, 512]);
    recorded(g, cols, &[(n, ty), (other_n, ty)])
}

/// Products of the same rows, of so many rows of weights of a format each, whose last tiles are partly filled, with and without biases.
pub(super) fn recorded(g: &mut Gen, cols: u32, weights: &[(u32, GgmlType)]) -> Case {
    let mut case = Case::new(g.pick(&[9, 16, 17, 32, 33, 64]));
    case.options = PlanOptions { fast: true, ..case.options };
    case.halves = true;
    let fewest = weights.iter().map(|(n, _)| *n).min().unwrap_or(0);
    let x = activations(&mut case, g, cols, fewest);
    for &(n, ty) in weights {
        let w = case.weight(g, ty, n, cols);
        let bias = g.coin().then(|| case.vector(g, n));
        let y = matmul(&mut case.rec, w, x);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
