//! The tensors and weights of every recorded operation, in one place: for passes over a recording
//! that replace values, or that look for the readers of a weight.

use crate::attention::attention::Keys;
use crate::elementwise::add::Term;
use crate::elementwise::mul::Factor;
use crate::experts::group_experts::Groups;
use crate::experts::route::Routes;
use crate::graph::tensor::{Tensor, Weight};
use crate::language::Op;
use crate::matmul::embed::Ids;

/// A part of an operation that holds tensors.
trait Values {
    /// Passes every tensor, read or made, to `f`.
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor));
}

impl Values for Tensor {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        f(self);
    }
}

impl<T: Values> Values for Vec<T> {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        self.iter_mut().for_each(|value| value.each(f));
    }
}

impl<T: Values> Values for Option<T> {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        self.iter_mut().for_each(|value| value.each(f));
    }
}

impl Values for Term {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        if let Self::Tensor(t) = self {
            f(t);
        }
    }
}

impl Values for Factor {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        if let Self::Tensor(t) = self {
            f(t);
        }
    }
}

impl Values for Keys {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        match self {
            Self::Cache { kv: _, sequences } => f(sequences),
            Self::Step { k, v, firsts } => [k, v, firsts].into_iter().for_each(f),
        }
    }
}

impl Values for Ids {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        match self {
            Self::State { tokens: _, positions, sequences } => [positions, sequences].into_iter().for_each(f),
            Self::Step { ids, numbers } => [ids, numbers].into_iter().for_each(f),
        }
    }
}

impl Values for Groups {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        [&mut self.slots, &mut self.tiles].into_iter().for_each(f);
    }
}

impl Values for Routes {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        [&mut self.experts, &mut self.weights].into_iter().for_each(&mut *f);
        self.groups.each(f);
    }
}

macro_rules! values {
    ($($name:ident { $($field:ident $(. $inner:ident)?),* })*) => {
        impl Op {
            /// Passes every tensor that the operation reads or makes to `f`, which may replace it.
            ///
            /// # Panics
            /// For an operation of a derivative.
            pub fn values(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
                match self {
                    $(Self::$name(op) => { $(op.$field $(.$inner)?.each(f);)* })*
                    Self::Backward(op) => panic!("{} is a derivative, which nothing records again", op.name()),
                }
            }
        }
    };
}

values! {
    Embed { ids, y }
    RmsNorm { x, y }
    Matmul { x, y }
    Rope { x, table, y }
    KvAppend { k, v, positions, sequences }
    Attention { q, keys, positions, ends, y }
    Add { a, b, y }
    AddWeighted { base, x, weights.c, y }
    MatchRms { x, like, y }
    GaussianTopK { x, y }
    Mul { a, b, y }
    Scale { x, y }
    Softcap { x, y }
    Silu { x, y }
    Gelu { x, y }
    Swiglu { gate, up, y }
    Geglu { gate, up, y }
    Softmax { x, y }
    LogSoftmax { x, y }
    GatherRows { x, out_rows, y }
    Argmax { x, y }
    TopK { x, y }
    Route { logits, experts, weights }
    GroupExperts { experts, step_rows, groups }
    MatmulExperts { x, routes, y }
    CombineExperts { x, weights, y }
    MulSigmoid { x, gate, y }
    Penalize { logits, sampling, out_rows, positions, sequences, y }
    Sample { logits, raw, sampling, out_rows, positions, sequences, strips, y }
    Dropout { x, key, y }
}

impl Op {
    /// Passes every weight that the operation reads to `f`, which may replace it; weights of
    /// derivatives are left out.
    pub fn each_weight(&mut self, f: &mut dyn FnMut(&mut Weight)) {
        match self {
            Self::Embed(op) => f(&mut op.table),
            Self::RmsNorm(op) => op.w.iter_mut().for_each(f),
            Self::Matmul(op) => f(&mut op.w),
            Self::Add(op) => {
                if let Term::Row(w) = &mut op.b {
                    f(w);
                }
            }
            Self::Mul(op) => {
                if let Factor::Row(w) = &mut op.b {
                    f(w);
                }
            }
            Self::Route(op) => op.scale.iter_mut().for_each(f),
            Self::MatmulExperts(op) => f(&mut op.w),
            _ => {}
        }
    }

    /// The weights that the operation reads, except those of derivatives.
    #[must_use]
    pub fn weights(&self) -> Vec<Weight> {
        let mut weights = vec![];
        self.clone().each_weight(&mut |w| weights.push(*w));
        weights
    }
}
