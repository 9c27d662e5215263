//! A third product beside two of a few rows through cooperative matrices. Made by the planner, never recorded.

use super::matmul::{Matmul, Operand};
use super::matmul_few::{TILE, bands};
use super::matmul_few_pair::{MatmulFewPair, joins, recorded, tiles};
use super::{Io, Op, Operation, Work};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers, fixed};
use crate::row::Row;
use crate::tensor::Counts;

kernel! {
    MATMUL_FEW_TRIPLE_16: "matmul_few_triple_16",
    entry: "matmul_few_triple",
    wgsl: [
        "matmul_few_triple.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_1.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows: u32, n: u32, other_n: u32, third_n: u32, biases: u32 },
    bindings: Bind {
        x: Read, scales: Read, w: Tiles, other: Beside, third: Tiles, bias: Read, other_bias: Read, third_bias: Read, y: Write, other_y: Write,
        third_y: Write
    },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
}

kernel! {
    MATMUL_FEW_TRIPLE_32: "matmul_few_triple_32" = MATMUL_FEW_TRIPLE_16 with
    wgsl: [
        "matmul_few_triple.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_2.wgsl", "shared/few_parts_6.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_TRIPLE_64: "matmul_few_triple_64" = MATMUL_FEW_TRIPLE_16 with
    wgsl: [
        "matmul_few_triple.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_4.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

/// By sixteens of rows: 1, 2 and 4.
const ROWS: [&Row; 3] = [&MATMUL_FEW_TRIPLE_16, &MATMUL_FEW_TRIPLE_32, &MATMUL_FEW_TRIPLE_64];

/// Two products of the same rows by weights of one format, and one by a weight of its own.
#[derive(Clone, Debug)]
pub struct MatmulFewTriple {
    pub pair: MatmulFewPair,
    pub third: Matmul,
}

/// A product of what two products before it read, too: it moves to them, since it alone would be of few workgroups.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::Matmul(product) = op else { return None };
    if !joins(product, makers.caps) || !MATMUL_FEW_TRIPLE_16.fits(makers.caps) {
        return None;
    }
    let Op::MatmulFewPair(pair) = makers.latest(|op| matches!(op, Op::MatmulFewPair(pair) if pair.products[0].x.id == product.x.id))? else {
        return None;
    };
    let of = pair.products.iter().map(|product| product.y).collect();
    Some(Absorbed { op: MatmulFewTriple { pair: pair.clone(), third: product.clone() }.into(), of, early: true })
}

impl MatmulFewTriple {
    fn products(&self) -> [&Matmul; 3] {
        let [a, b] = &self.pair.products;
        [a, b, &self.third]
    }
}

impl Operation for MatmulFewTriple {
    fn io(&self) -> Io {
        Io { reads: self.third.io().reads, writes: self.products().map(|product| product.y).to_vec() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products().iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let [a, b, c] = self.products();
        let Operand::Slabs { scales } = a.operand else { unreachable!("all are in slabs") };
        let biases = [a, b, c].iter().zip(0..).map(|(product, bit)| u32::from(product.bias.is_some()) << bit).sum();
        let params = Params { k: a.w.cols, rows: a.y.shape.rows, n: a.w.rows, other_n: b.w.rows, third_n: c.w.rows, biases };
        let bind = Bind {
            x: a.x.into(),
            scales: scales.into(),
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
        let grid = Grid::PerRow { lead: fixed(1, 1), per_row: tiles(a) + tiles(b) + tiles(c) };
        vec![Dispatch { row: ROWS[bands(a.y.shape.rows).ilog2() as usize], ..bind.dispatch(params, grid) }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Three products of the same rows, the third of the same format or another, whose last tiles are partly filled, a single row of weights among them, with and
/// without biases, of activations as [`super::matmul_few`] meets them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let third = if g.coin() { ty } else { g.format_with(|f| f.units.is_some()) };
    let [n, other_n, third_n] = g.pick(&[[TILE * 144 - 97, 97, 33], [31, TILE * 144, 1], [TILE * 72 + 1, TILE * 72, 97]]);
    let cols = 256 * g.pick(&[1, 2, 5]);
    recorded(g, cols, &[(n, ty), (other_n, ty), (third_n, third)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Caps, Class};
    use crate::ops::matmul;
    use crate::plan::{PlanOptions, plan};
    use crate::record::Recorder;
    use crate::table::Table;
    use crate::tensor::{Lead, Shape, Weight};
    use gguf::GgmlType::{Q4_K, Q6_K};

    #[test]
    fn a_third_of_any_format_joins_two_of_one_where_bindings_suffice() {
        let caps = Caps {
            cooperative: true,
            max_workgroup: 1024,
            max_workgroup_bytes: 48 << 10,
            max_storage_buffers: 11,
            table: Table::usual(Class::Discrete, true),
            ..Caps::WEBGPU
        };
        let rows = |caps: &Caps, third| {
            let mut rec = Recorder::new(Counts { step: 32, out: 0 }, &[]);
            let x = rec.host_input(0, Shape::new(Lead::Step, 32, 4096));
            for (id, (ty, rows)) in (0..).zip([(Q4_K, 4096), (Q4_K, 1024), (third, 1024)]) {
                let y = matmul(&mut rec, Weight { id, ty, rows, cols: 4096 }, x);
                rec.output(y);
            }
            let options = PlanOptions { fast: true, ..PlanOptions::default() };
            plan(&rec, caps, &options).unwrap().steps.iter().map(|step| step.dispatch.row.name).collect::<Vec<_>>()
        };
        for third in [Q4_K, Q6_K] {
            assert_eq!(rows(&caps, third), ["pack_f16", "matmul_few_triple_32"]);
            assert_eq!(rows(&Caps { max_storage_buffers: 8, ..caps.clone() }, third), ["pack_f16", "matmul_few_pair_32", "matmul_few_32_narrow"]);
        }
    }
}
