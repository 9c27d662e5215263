//! Two products of the same rows, which the planner makes.

use super::product::Product;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;

/// Two products of the same rows in one kernel.
#[derive(Clone, Debug)]
pub struct ProductPair {
    pub products: [Product; 2],
}

impl Operation for ProductPair {
    fn io(&self) -> Io {
        Io { reads: self.products[0].io().reads, writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }
}
