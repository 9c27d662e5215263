//! Rules of products of the same rows, and of the operations after a product.

use super::view::{Merged, Producers, Uses};
use crate::caps::Caps;
use crate::elementwise::add::Term;
use crate::graph::tensor::Tensor;
use crate::language::{Lowered, Node, Op};
use crate::matmul::matmul_tile64_triple::MatmulTile64Triple;
use crate::matmul::matmul_tile128::{self, MATMUL_TILE128_PAIR};
use crate::matmul::matmul_vec_group::{MATMUL_VEC_GROUP, MatmulGroup, joins};
use crate::matmul::matmul_vec_norm::{LANES_32, MatmulVecNorm};
use crate::matmul::norm_matmul_vec_group::{NORM_MATMUL_VEC_GROUP, NormMatmulVecGroup};
use crate::matmul::norm_pack_matmul_vec::Normed;
use crate::matmul::product::Product;
use crate::matmul::product_pair::ProductPair;
use crate::matmul::{
    matmul_tile64_pair as tile64_pair, matmul_tile64_triple as tile64_triple, norm_matmul_vec_group as norm_group,
};
use crate::norm::norm_pack_q8::NormPackQ8;
use crate::norm::pack_q8::BLOCK;

/// A product whose only consumer adds a bias.
pub(super) fn matmul_bias(nodes: &[Node], uses: &Uses, _: &Caps) -> Option<(usize, Lowered)> {
    let [Node { op: Lowered::Product(product), .. }, Node { op: Lowered::Op(Op::Add(sum)), .. }, ..] = nodes else {
        return None;
    };
    let Term::Row(bias) = sum.b else { return None };
    (sum.a.id == product.y.id && uses.once(product.y))
        .then(|| (2, Product { bias: Some(bias), y: sum.y, ..product.clone() }.into()))
}

/// A product of the same rows as an earlier product, with a weight of the same format: it moves to
/// the earlier one.
pub(super) fn matmul_tile64_pair(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Product(product) = op else { return None };
    if !tile64_pair::joins(product, producers.caps) || !tile64_pair::fits(producers.caps) {
        return None;
    }
    let Lowered::Product(other) = producers.latest(|op| match op {
        Lowered::Product(other) => {
            let alike =
                other.x.id == product.x.id && other.w.ty == product.w.ty && tile64_pair::joins(other, producers.caps);
            alike && tile64_pair::pairs(other, product, producers.caps)
        }
        _ => false,
    })?
    else {
        return None;
    };
    Some(Merged {
        op: ProductPair { products: [other.clone(), product.clone()] }.into(),
        of: vec![other.y],
        early: true,
    })
}

/// A product of many rows with the earlier product of the same rows, with a weight of the same
/// format and shape.
pub(super) fn matmul_tile128_pair(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Product(product) = op else { return None };
    if !MATMUL_TILE128_PAIR.fits(producers.caps) {
        return None;
    }
    let before =
        |op: &Lowered| matches!(op, Lowered::Product(other) if matmul_tile128::pairs(other, product, producers.caps));
    let Lowered::Product(other) = producers.latest(before)? else { return None };
    Some(Merged {
        op: ProductPair { products: [other.clone(), product.clone()] }.into(),
        of: vec![other.y],
        early: true,
    })
}

/// A product of the same rows as two earlier products. It moves to them, because alone it has few
/// workgroups.
pub(super) fn matmul_tile64_triple(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Product(product) = op else { return None };
    if !tile64_pair::joins(product, producers.caps) || !tile64_triple::fits(producers.caps) {
        return None;
    }
    let Lowered::ProductPair(pair) =
        producers.latest(|op| matches!(op, Lowered::ProductPair(pair) if pair.products[0].x.id == product.x.id))?
    else {
        return None;
    };
    let of = pair.products.iter().map(|product| product.y).collect();
    Some(Merged { op: MatmulTile64Triple { pair: pair.clone(), third: product.clone() }.into(), of, early: true })
}

/// Largest number of weights that one kernel reads.
const MOST: usize = 3;

/// A product of the same rows as earlier products: it moves to them.
pub(super) fn matmul_vec_group(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Product(product) = op else { return None };
    if !joins(product, producers.caps) || !MATMUL_VEC_GROUP.fits(producers.caps) {
        return None;
    }
    let before = |op: &Lowered| match op {
        Lowered::Product(other) => other.x.id == product.x.id && joins(other, producers.caps),
        Lowered::MatmulGroup(group) => group.products[0].x.id == product.x.id && group.products.len() < MOST,
        _ => false,
    };
    let mut products = match producers.latest(before)? {
        Lowered::Product(other) => vec![other.clone()],
        Lowered::MatmulGroup(group) => group.products.clone(),
        _ => return None,
    };
    let of = products.iter().map(|product| product.y).collect();
    products.push(product.clone());
    Some(Merged { op: MatmulGroup { products }.into(), of, early: true })
}

/// A product in f32 of the same row as earlier products: it moves to them. A rule of packed rows
/// (`prologue`) adds the norm of the row.
pub(super) fn norm_matmul_vec_group(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Product(product) = op else { return None };
    if !norm_group::joins(product, producers.caps) || !NORM_MATMUL_VEC_GROUP.fits(producers.caps) {
        return None;
    }
    let row = product.x;
    let before = |op: &Lowered| match op {
        Lowered::Product(other) => other.x == row && norm_group::joins(other, producers.caps),
        Lowered::NormMatmulVecGroup(group) => group.row.h == row && group.products.len() < norm_group::MOST,
        _ => false,
    };
    let mut products = match producers.latest(before)? {
        Lowered::Product(other) => vec![other.clone()],
        Lowered::NormMatmulVecGroup(group) => group.products.clone(),
        _ => return None,
    };
    let of = products.iter().map(|product| product.y).collect();
    products.push(product.clone());
    Some(Merged { op: NormMatmulVecGroup { row: Normed::plain(row), products }.into(), of, early: true })
}

/// A norm of a sum with a product that has no other reader.
pub(super) fn matmul_vec_norm(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::NormPackQ8(NormPackQ8 { a, sum: Some((b, h)), w, eps, packed }) = op else { return None };
    let product = |t: Tensor| match producers.alone(t)? {
        Lowered::Product(product)
            if product.x.shape.rows == 1 && joins(product, producers.caps) && product.bias.is_none() =>
        {
            Some(product.clone())
        }
        _ => None,
    };
    let (product, a) = product(*b).map(|product| (product, *a)).or_else(|| product(*a).map(|product| (product, *b)))?;
    let of = product.w;
    if !LANES_32.fits(producers.caps)
        || !of.rows.is_multiple_of(BLOCK)
        || of.cols > producers.caps.table.norm_columns.saturating_mul(of.rows)
    {
        return None;
    }
    let of = vec![product.y];
    Some(Merged { op: MatmulVecNorm { product, a, h: *h, u: *w, eps: *eps, packed: *packed }.into(), of, early: false })
}
