//! Rules by which products of one row compute the row that they read.

use crate::attention::fused::Problem;
use crate::attention::ladder;
use crate::attention::merge_matmul_vec::{MERGE_MATMUL_VEC, MergeMatmulVec};
use crate::caps::Caps;
use crate::language::Lowered;
use crate::matmul::glu_matmul_vec::{GLU_MATMUL_VEC, GluMatmulVec, MOST_COLS};
use crate::matmul::matmul_vec_group::joins;
use crate::matmul::norm_add_matmul_vec::{NORM_ADD_MATMUL_VEC, NormAddMatmulVec, in_every_workgroup, makes};
use crate::matmul::norm_add_matmul_vec_glu::{NORM_ADD_MATMUL_VEC_GLU, NormAddMatmulVecGlu};
use crate::matmul::norm_matmul_vec_glu::NormMatmulVecGlu;
use crate::matmul::norm_matmul_vec_group::{self, NORM_MATMUL_VEC_GROUP, NormMatmulVecGroup};
use crate::matmul::norm_pack_matmul_vec::{NORM_PACK_MATMUL_VEC, NormPackMatmulVec, Normed};
use crate::matmul::norm_pack_matmul_vec_glu::{NORM_PACK_MATMUL_VEC_GLU, NormPackMatmulVecGlu};

/// A product that reads a packed gated activation.
pub(super) fn glu_matmul_vec(producer: &Lowered, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let (Lowered::GluPackQ8(glu), Lowered::Product(product)) = (producer, consumer) else { return None };
    let short = product.x.shape.rows == 1 && product.w.cols <= MOST_COLS && product.bias.is_none();
    let fits = glu.gelu && short && joins(product, caps) && GLU_MATMUL_VEC.fits(caps);
    fits.then(|| GluMatmulVec { glu: glu.clone(), product: product.clone() }.into())
}

/// Columns that fit in a workgroup's memory.
const MERGE_MOST_COLS: u32 = 2560;

/// A product that reads the packed attention of a window.
pub(super) fn merge_matmul_vec(producer: &Lowered, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let (Lowered::AttentionDecode(attention), Lowered::Product(product)) = (producer, consumer) else { return None };
    let short = product.w.cols <= MERGE_MOST_COLS && product.bias.is_none() && joins(product, caps);
    let fits = short && ladder::found(Problem::Window(attention), caps).is_some() && MERGE_MATMUL_VEC.fits(caps);
    fits.then(|| MergeMatmulVec { attention: attention.clone(), product: product.clone() }.into())
}

/// Products that read a packed sum.
pub(super) fn norm_add_matmul_vec(producer: &Lowered, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let Lowered::NormAdd(sum) = producer else { return None };
    let products = match consumer {
        Lowered::Product(product) => vec![product.clone()],
        Lowered::MatmulGroup(group) => group.products.clone(),
        _ => return None,
    };
    let rows = products.iter().map(|product| product.w.rows).sum();
    let whole = products.iter().all(|product| product.bias.is_none() && joins(product, caps));
    let fits = whole && makes(sum, rows, caps) && NORM_ADD_MATMUL_VEC.fits(caps);
    fits.then(|| NormAddMatmulVec { sum: sum.clone(), products }.into())
}

/// A gated activation that reads a packed sum.
pub(super) fn norm_add_matmul_vec_glu(producer: &Lowered, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let (Lowered::NormAdd(sum), Lowered::MatmulGlu(glu)) = (producer, consumer) else { return None };
    let fits = glu.gelu && makes(sum, 2 * glu.gate.w.rows, caps) && NORM_ADD_MATMUL_VEC_GLU.fits(caps);
    fits.then(|| NormAddMatmulVecGlu { sum: sum.clone(), glu: glu.clone() }.into())
}

/// Products of a packed row that may pack it themselves; a single product only if the row has no
/// norm.
pub(super) fn norm_pack_matmul_vec(row: &Normed, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let products = match consumer {
        Lowered::MatmulGroup(group) => group.products.clone(),
        Lowered::Product(product)
            if row.eps.is_none() && joins(product, caps) && in_every_workgroup(product.w.rows, caps) =>
        {
            vec![product.clone()]
        }
        _ => return None,
    };
    let fits =
        row.h.shape.rows == 1 && row.h.shape.width() <= caps.table.prologue_columns && NORM_PACK_MATMUL_VEC.fits(caps);
    fits.then(|| NormPackMatmulVec { row: row.clone(), products }.into())
}

/// A gated activation of a packed row that may pack the row itself.
pub(super) fn norm_pack_matmul_vec_glu(row: &Normed, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let Lowered::MatmulGlu(glu) = consumer else { return None };
    let fits = row.h.shape.rows == 1
        && row.h.shape.width() <= caps.table.glu_prologue_columns
        && NORM_PACK_MATMUL_VEC_GLU.fits(caps);
    fits.then(|| NormPackMatmulVecGlu { row: row.clone(), glu: glu.clone() }.into())
}

/// Products in f32 of a normed row that norm it themselves.
pub(super) fn norm_matmul_vec_group(row: &Normed, consumer: &Lowered, caps: &Caps) -> Option<Lowered> {
    let products = match consumer {
        Lowered::NormMatmulVecGroup(group) if group.row.eps.is_none() => group.products.clone(),
        Lowered::Product(product) if norm_matmul_vec_group::joins(product, caps) => vec![product.clone()],
        _ => return None,
    };
    NORM_MATMUL_VEC_GROUP.fits(caps).then(|| NormMatmulVecGroup { row: row.clone(), products }.into())
}

/// A gated activation in f32 of a normed row that norms the row itself.
pub(super) fn norm_matmul_vec_glu(row: &Normed, consumer: &Lowered, _: &Caps) -> Option<Lowered> {
    let Lowered::NormMatmulVecGlu(glu) = consumer else { return None };
    glu.row.eps.is_none().then(|| NormMatmulVecGlu { row: row.clone(), ..glu.clone() }.into())
}
