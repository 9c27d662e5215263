//! The tensors and weights of an operation. Passes over a recording replace values, or look for the
//! readers of a weight.

use crate::graph::tensor::{Tensor, Weight};

/// A part of an operation that holds tensors.
pub trait Values {
    /// Passes every tensor, read or made, to `f`, which may replace it.
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor));

    /// Passes every weight that is read to `f`, which may replace it.
    fn each_weight(&mut self, _: &mut dyn FnMut(&mut Weight)) {}
}

impl Values for Weight {
    fn each(&mut self, _: &mut dyn FnMut(&mut Tensor)) {}

    fn each_weight(&mut self, f: &mut dyn FnMut(&mut Weight)) {
        f(self);
    }
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

    fn each_weight(&mut self, f: &mut dyn FnMut(&mut Weight)) {
        self.iter_mut().for_each(|value| value.each_weight(f));
    }
}

/// Names the fields of an operation that hold tensors or weights.
macro_rules! values {
    ($Op:ident: $($field:ident $(. $inner:ident)?),+) => {
        impl $crate::graph::values::Values for $Op {
            fn each(&mut self, f: &mut dyn FnMut(&mut $crate::graph::tensor::Tensor)) {
                $($crate::graph::values::Values::each(&mut self.$field $(.$inner)?, f);)+
            }

            fn each_weight(&mut self, f: &mut dyn FnMut(&mut $crate::graph::tensor::Weight)) {
                $($crate::graph::values::Values::each_weight(&mut self.$field $(.$inner)?, f);)+
            }
        }
    };
}
