//! Factors as they lie in a file, and their pairs.

use super::{AdapterError, EMBEDDING};
use crate::error::Error;
use crate::left_out::LeftOut;
use gguf::GgmlType;
use kernels::{TensorBytes, Weight, Weights};
use std::collections::BTreeMap;

/// The factors B A of one weight [N, K], which becomes W + scale B A. Factors of
/// `token_embd.weight` change what ids become, those of `output.weight` change logits, also where
/// the two are one tensor of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorPair {
    /// The name of the weight in the model's file.
    pub target: String,
    pub rank: u32,
    /// Alpha divided by the rank or by its square root.
    pub scale: f32,
    /// [rank, K], row by row.
    pub a: Vec<f32>,
    /// [N, rank], row by row.
    pub b: Vec<f32>,
}

/// The two factors of the product B A.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    A,
    B,
}

/// One factor, as stored in its file.
pub(super) struct Factor {
    pub name: String,
    /// The model's tensor to which the product is added.
    pub target: String,
    pub side: Side,
    pub ty: GgmlType,
    pub rows: u32,
    pub cols: u32,
    pub bytes: TensorBytes,
    /// Alpha divided by the rank or by its square root.
    pub scale: f32,
}

impl Factor {
    pub fn new(
        name: String,
        target: String,
        side: Side,
        ty: GgmlType,
        shape: [u64; 2],
        bytes: TensorBytes,
    ) -> Result<Self, AdapterError> {
        let [rows, cols] = shape.map(|n| u32::try_from(n).unwrap_or(0));
        if rows == 0 || cols == 0 {
            return Err(AdapterError::Dimensions { name, found: shape.to_vec() });
        }
        Ok(Self { name, target, side, ty, rows, cols, bytes, scale: 1.0 })
    }

    /// Whether the factor lies transposed, as the factor A of a table that is looked up does: its
    /// rows are the columns of the table.
    pub fn is_transposed(&self) -> bool {
        self.side == Side::A && self.target == EMBEDDING
    }

    pub fn rank(&self) -> u32 {
        if self.side == Side::A && !self.is_transposed() { self.rows } else { self.cols }
    }

    /// The values, in f32.
    pub fn values(&self) -> Result<Vec<f32>, kernels::Error> {
        let (rows, cols) = (self.rows as usize, self.cols as usize);
        let mut bytes = vec![0; rows * self.ty.row_bytes(cols).unwrap_or(0)];
        self.bytes.read(0, &mut bytes)?;
        let mut all = vec![0.0; rows * cols];
        let matrix = cpu_ref::Rows::new(self.ty, cols, &bytes);
        all.chunks_exact_mut(cols).enumerate().for_each(|(n, row)| matrix.dequantize_row(n, row));
        Ok(all)
    }

    /// The same factor with its rows as columns, in f32.
    pub fn transposed(self) -> Result<Self, AdapterError> {
        let values =
            self.values().map_err(|error| AdapterError::Values { name: self.name.clone(), error: Box::new(error) })?;
        let values = transpose(&values, self.cols as usize);
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        let (rows, cols) = (self.cols, self.rows);
        Ok(Self { ty: GgmlType::F32, rows, cols, bytes: TensorBytes::Owned(bytes.into()), ..self })
    }

    pub fn expect(&self, expected: [u32; 2], wanted: &'static str) -> Result<(), AdapterError> {
        let found = [self.rows, self.cols];
        if found == expected {
            return Ok(());
        }
        Err(AdapterError::Shape { name: self.name.clone(), expected, found, wanted })
    }

    pub fn load(&self, into: &mut Weights) -> Result<Weight, kernels::Error> {
        into.matrix(&self.name, self.ty, self.rows, self.cols, &self.bytes)
    }
}

/// A matrix of rows of `cols` elements with its rows as columns.
#[must_use]
pub fn transpose(values: &[f32], cols: usize) -> Vec<f32> {
    let column = |n: usize| values.iter().skip(n).step_by(cols.max(1)).copied();
    (0..cols).flat_map(column).collect()
}

/// The two factors for one tensor, with equal ranks.
pub(super) struct Pair {
    pub a: Factor,
    pub b: Factor,
}

impl Pair {
    /// The values, in f32.
    pub fn values(&self) -> Result<FactorPair, Error> {
        let Self { a, b } = self;
        let of_a = if a.is_transposed() { transpose(&a.values()?, a.cols as usize) } else { a.values()? };
        Ok(FactorPair { target: a.target.clone(), rank: a.rank(), scale: a.scale, a: of_a, b: b.values()? })
    }
}

/// What the file of an adapter holds.
pub(super) struct Contents {
    pub pairs: Vec<Pair>,
    /// Modules that have factors which no model of this version uses.
    pub left_out: LeftOut,
    pub copies: Vec<BaseCopy>,
}

/// A weight of the base that lies beside the factors, unchanged.
pub(super) struct BaseCopy {
    pub name: String,
    /// The model's tensor.
    pub target: &'static str,
    /// [rows, columns].
    pub shape: [u32; 2],
}

impl Contents {
    /// Pairs the factors.
    ///
    /// # Errors
    /// A factor without a partner, and a file without a factor of the text model.
    pub fn new(factors: Vec<Factor>, mut left_out: LeftOut) -> Result<Self, AdapterError> {
        // Both factors of a module name it.
        for modules in [&mut left_out.towers, &mut left_out.other_layers] {
            modules.sort();
            modules.dedup();
        }
        match (factors.is_empty(), left_out.is_empty()) {
            (true, true) => Err(AdapterError::Empty),
            (true, false) => Err(AdapterError::NothingApplies { left_out }),
            (false, _) => Ok(Self { pairs: pair_up(factors)?, left_out, copies: vec![] }),
        }
    }
}

/// Pairs the factors by target. A factor without a partner is an error.
fn pair_up(factors: Vec<Factor>) -> Result<Vec<Pair>, AdapterError> {
    let mut sides: BTreeMap<String, [Option<Factor>; 2]> = BTreeMap::new();
    for factor in factors {
        let place = &mut sides.entry(factor.target.clone()).or_default()[factor.side as usize];
        if place.is_some() {
            return Err(AdapterError::Duplicate { name: factor.name, target: factor.target });
        }
        *place = Some(factor);
    }
    let pair = |sides: [Option<Factor>; 2]| match sides {
        [Some(a), Some(b)] => {
            let pair = Pair { a, b };
            pair.b.expect([pair.b.rows, pair.a.rank()], "but its partner requires").map(|()| pair)
        }
        [Some(alone), None] | [None, Some(alone)] => {
            // Files swap the letters of a table's factors.
            let missing = if (alone.side == Side::A) == (alone.target == EMBEDDING) { "A" } else { "B" };
            Err(AdapterError::Partner { name: alone.name, missing, target: alone.target })
        }
        [None, None] => unreachable!("an entry is made for a factor"),
    };
    sides.into_values().map(pair).collect()
}
