//! Product of rows with a weight matrix.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::{Dropped, LowRank, Recorder};
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::ops::add::{Add, add};
use crate::ops::dropout::{Dropout, dropout};
use crate::ops::scale::{Scale, scale};

/// y = x w^T.
#[derive(Clone, Debug)]
pub struct Matmul {
    pub w: Weight,
    pub x: Tensor,
    /// Whether the product must stay in f32, even if other products are rounded.
    pub exact: bool,
    pub y: Tensor,
}

/// y[t, n] = sum_k w[n, k] x[t, k]; `w` [N, K] in any weight format, `x` [T, K]; returns [T, N],
/// f32. If [`Recorder::adapt`] added low-rank factors to `w`, y also gets their part: y + s (x A^T)
/// B^T.
///
/// With dropout ([`Recorder::adapt_dropped`]) the factors read x with some elements set to zero.
pub fn matmul(
    rec: &mut Recorder<impl From<Matmul> + From<Scale> + From<Add> + From<Dropout>>,
    w: Weight,
    x: Tensor,
) -> Tensor {
    let y = product(rec, w, x, false);
    rec.added_to(w).into_iter().fold(y, |y, (LowRank { a, b, scale: s }, dropped)| {
        let x = dropped.map_or(x, |Dropped { rate, key, tensor }| dropout(rec, x, key, tensor, rate));
        let low = product(rec, a, x, false); // [T, r]
        let low = scale(rec, low, s);
        let part = product(rec, b, low, false);
        add(rec, y, part)
    })
}

/// y = x w^T without an adapter, and in f32 even in plans that round. For results that decide a
/// discrete choice, such as a router's logits.
pub fn matmul_exact(rec: &mut Recorder<impl From<Matmul>>, w: Weight, x: Tensor) -> Tensor {
    product(rec, w, x, true)
}

pub(crate) fn product(rec: &mut Recorder<impl From<Matmul>>, w: Weight, x: Tensor, exact: bool) -> Tensor {
    assert_eq!(x.shape.width(), w.cols, "matmul: rows of {} with a weight of {} columns", x.shape.width(), w.cols);
    let y = rec.make(Shape { heads: 1, dim: w.rows, ..x.shape });
    rec.push(Matmul { w, x, exact, y });
    y
}

impl Operation for Matmul {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.w, self.y, counts)
    }
}

/// The cost of a product with `w` that makes `y`.
pub(crate) fn work(w: Weight, y: Tensor, counts: Counts) -> Work {
    let (t, n, k) = (u64::from(y.shape.rows_at(counts)), u64::from(w.rows), u64::from(w.cols));
    let weight_bytes = n * w.ty.row_bytes(w.cols as usize).unwrap_or(0) as u64;
    Work { flops: 2 * t * n * k, bytes: weight_bytes + 4 * t * (n + k), weight_bytes }
}

impl Reference for Matmul {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        host.matmul(self.w, host.f32(self.x), &mut y);
        host.put(self.y, y);
    }
}
