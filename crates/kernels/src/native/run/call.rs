//! A recording of one operation, with its executor, weights and inputs.

use super::operands::Matrix;
pub use super::operands::argument;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::Watch;
use crate::exec::states::States;
use crate::exec::weights::{TensorBytes, Weights};
use crate::graph::input::StepInput;
use crate::graph::record::Recorder;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{Counts, Lead, Shape, StateKind, Tensor, Weight};
use crate::language::Primitive;
use crate::plan::PlanOptions;
use std::sync::Arc;

pub struct Call {
    operation: &'static str,
    executor: Executor,
    rows: usize,
    kinds: Vec<StateKind>,
    weights: Weights,
    pub rec: Recorder<Primitive>,
    pub input: StepInput,
}

/// Writes the words of a state.
pub fn write_state(states: &mut States, n: usize, words: &[f32]) {
    states.write_words(states.state(n), 0, bytemuck::cast_slice(words));
}

/// Reads the words of a state.
pub fn read_state(states: &States, n: usize) -> Result<Vec<f32>, Error> {
    let (state, mut bytes) = (states.state(n), vec![]);
    let each = |piece: &[u8]| -> Result<(), Error> {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    states.read(state, 0, 0..states.rows(state), each)?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}

impl Call {
    /// A call of `rows` rows, at positions 0, 1, 2, .. of one sequence.
    pub fn new(
        operation: &'static str,
        on: impl Into<Executor>,
        rows: usize,
        kinds: &[StateKind],
    ) -> Result<Self, Error> {
        let count = u32::try_from(rows).map_err(|_| argument(operation, "there are more than 2^32 rows"))?;
        let executor = on.into();
        let (weights, rec) = (Weights::new(&executor), Recorder::new(Counts { step: count, out: 0 }, kinds));
        let input = StepInput { positions: (0..count).collect(), sequences: vec![0; rows], ..StepInput::default() };
        Ok(Self { operation, executor, rows, kinds: kinds.to_vec(), weights, rec, input })
    }

    /// A call whose rows are the rows of `dim` elements in `x`.
    pub fn rows(operation: &'static str, on: impl Into<Executor>, x: &[f32], dim: usize) -> Result<Self, Error> {
        Self::rows_in(operation, on, x, dim, &[])
    }

    /// As [`Call::rows`], with states.
    pub fn rows_in(
        operation: &'static str,
        on: impl Into<Executor>,
        x: &[f32],
        dim: usize,
        kinds: &[StateKind],
    ) -> Result<Self, Error> {
        Self::new(operation, on, x.len().checked_div(dim).unwrap_or(0), kinds)
    }

    /// Runs an elementwise operation with one operand.
    pub fn each(
        operation: &'static str,
        on: impl Into<Executor>,
        x: &[f32],
        op: impl FnOnce(&mut Recorder<Primitive>, Tensor) -> Tensor,
    ) -> Result<Vec<f32>, Error> {
        let mut call = Self::new(operation, on, 1, &[])?;
        let x = call.tensor("x", x, x.len())?;
        let y = op(&mut call.rec, x);
        call.run(y)
    }

    /// Runs an elementwise operation with two operands.
    pub fn pair(
        operation: &'static str,
        on: impl Into<Executor>,
        of: [(&'static str, &[f32]); 2],
        op: impl FnOnce(&mut Recorder<Primitive>, Tensor, Tensor) -> Tensor,
    ) -> Result<Vec<f32>, Error> {
        let mut call = Self::new(operation, on, 1, &[])?;
        let width = of[0].1.len();
        let (a, b) = (call.tensor(of[0].0, of[0].1, width)?, call.tensor(of[1].0, of[1].1, width)?);
        let y = op(&mut call.rec, a, b);
        call.run(y)
    }

    fn fits(&self, name: &'static str, found: usize, expected: usize) -> Result<(), Error> {
        let operation = self.operation;
        if found == expected { Ok(()) } else { Err(Error::Shape { operation, name, expected, found }) }
    }

    /// A dimension as u32, the type of kernel parameters.
    fn dim(&self, n: usize) -> Result<u32, Error> {
        u32::try_from(n).map_err(|_| argument(self.operation, "a row has more than 2^32 elements"))
    }

    /// An input tensor [rows, dim] of these values.
    pub fn tensor(&mut self, name: &'static str, values: &[f32], dim: usize) -> Result<Tensor, Error> {
        self.fits(name, values.len(), self.rows * dim)?;
        let shape = Shape::new(Lead::Step, self.rec.capacity().step, self.dim(dim)?);
        if let Executor::Gpu(device) = &self.executor {
            let (bytes, limit) = (4 * shape.elements(), device.caps().max_binding_bytes);
            if bytes > limit {
                return Err(Error::BindingTooLarge { what: name.to_string(), bytes, limit });
            }
        }
        Ok(self.host(shape, values))
    }

    /// A vector weight, the same for all rows.
    pub fn vector(&mut self, name: &'static str, values: &[f32], dim: usize) -> Result<Weight, Error> {
        self.fits(name, values.len(), dim)?;
        self.dim(dim)?;
        Ok(self.weights.vector(name, values.to_vec()))
    }

    pub fn matrix(&mut self, name: &'static str, matrix: Matrix<'_>) -> Result<Weight, Error> {
        let Matrix { ty, rows, cols, bytes } = matrix;
        if rows == 0 || cols == 0 {
            return Err(argument(self.operation, "the matrix is empty"));
        }
        let row_bytes = ty
            .row_bytes(cols)
            .ok_or_else(|| argument(self.operation, "a row of the matrix ends in a partial block"))?;
        let expected =
            row_bytes.checked_mul(rows).ok_or_else(|| argument(self.operation, "the matrix is larger than memory"))?;
        if bytes.len() != expected {
            return Err(Error::Bytes { operation: self.operation, name, expected, found: bytes.len() });
        }
        self.weights.matrix(name, ty, self.dim(rows)?, self.dim(cols)?, &TensorBytes::Owned(bytes.into()))
    }

    pub fn states(&self, capacity: usize) -> Result<States, Error> {
        States::new(&self.executor, &self.kinds, 1, self.dim(capacity.max(1))?)
    }

    pub fn run(self, y: Tensor) -> Result<Vec<f32>, Error> {
        self.words(y).map(bytemuck::cast_vec)
    }

    pub fn words(self, y: Tensor) -> Result<Vec<u32>, Error> {
        let mut states = self.states(1)?;
        self.run_in(&mut states, Some(y))
    }

    /// Runs the call and returns the words of several values.
    pub fn all(mut self, values: Vec<Tensor>) -> Result<Vec<Vec<u32>>, Error> {
        if self.rows == 0 {
            return Ok(vec![vec![]; values.len()]);
        }
        values.iter().for_each(|&value| {
            self.rec.output(value);
        });
        let mut states = self.states(1)?;
        let mut plan = self.executor.plan(self.rec, &Arc::new(self.weights.load()?), &PlanOptions::plain())?;
        Ok(plan.run(&mut states, &self.input, Watch::default())?.wait()?.0)
    }

    /// Runs the call and returns the words of `N` values.
    pub fn words_of<const N: usize>(self, values: [Tensor; N]) -> Result<[Vec<u32>; N], Error> {
        let mut all = self.all(values.to_vec())?.into_iter();
        Ok(std::array::from_fn(|_| all.next().unwrap_or_default()))
    }

    /// Runs the call and returns `N` values as f32.
    pub fn floats_of<const N: usize>(self, values: [Tensor; N]) -> Result<[Vec<f32>; N], Error> {
        Ok(self.words_of(values)?.map(bytemuck::cast_vec))
    }

    /// A call over the rows of `dim` elements of `x`, with one state of `words` plain words, which
    /// begin as zeros.
    pub fn sums(
        operation: &'static str,
        on: impl Into<Executor>,
        x: &[f32],
        dim: usize,
        words: usize,
    ) -> Result<Self, Error> {
        let words = u32::try_from(words).map_err(|_| argument(operation, "the result has more than 2^32 elements"))?;
        if words == 0 {
            return Err(argument(operation, "the result is empty"));
        }
        Self::rows_in(operation, on, x, dim, &[StateKind::Words(words)])
    }

    /// Runs a call of [`Call::sums`] and returns the words of its state.
    pub fn sum(self) -> Result<Vec<f32>, Error> {
        let mut states = self.states(1)?;
        self.run_in(&mut states, None)?;
        read_state(&states, 0)
    }

    /// This call, in which the rows at these indices are chosen.
    pub fn choosing(mut self, rows: &[u32]) -> Result<Self, Error> {
        let counts = Counts { out: self.dim(rows.len())?, ..self.rec.capacity() };
        self.rec = Recorder::new(counts, &self.kinds);
        self.input.out_rows = rows.to_vec();
        Ok(self)
    }

    /// An input tensor [chosen rows, dim] of these values.
    pub fn chosen(&mut self, name: &'static str, values: &[f32], dim: usize) -> Result<Tensor, Error> {
        let rows = self.rec.capacity().out;
        self.fits(name, values.len(), rows as usize * dim)?;
        Ok(self.host(Shape::new(Lead::Out, rows, self.dim(dim)?), values))
    }

    /// An input tensor [rows, 1] of these words.
    pub fn ids(&mut self, name: &'static str, ids: &[u32]) -> Result<Tensor, Error> {
        let bits: Vec<f32> = ids.iter().copied().map(f32::from_bits).collect();
        self.tensor(name, &bits, 1)
    }

    /// An input tensor [1, n] of these values, whatever the number of rows.
    pub fn given(&mut self, values: &[f32]) -> Tensor {
        self.host(Shape::new(Lead::Fixed, 1, values.len() as u32), values)
    }

    fn host(&mut self, shape: Shape, values: &[f32]) -> Tensor {
        self.input.host.push(values.to_vec());
        self.rec.host_input(self.input.host.len() as u32 - 1, shape)
    }

    /// Input tensors [rows, dim] of these values.
    pub fn tensors<const N: usize>(
        &mut self,
        all: [(&'static str, &[f32]); N],
        dim: usize,
    ) -> Result<[Tensor; N], Error> {
        for (name, values) in all {
            self.fits(name, values.len(), self.rows * dim)?;
        }
        let mut made = vec![];
        for (name, values) in all {
            made.push(self.tensor(name, values, dim)?);
        }
        Ok(std::array::from_fn(|n| made[n]))
    }

    /// Runs the call and returns the words of `y`. Nothing runs if the result is empty.
    pub fn run_in(mut self, states: &mut States, y: Option<Tensor>) -> Result<Vec<u32>, Error> {
        if self.rows == 0 || y.is_some_and(|y| y.shape.width() == 0) {
            return Ok(vec![]);
        }
        if let Some(y) = y {
            self.rec.output(y);
        }
        let mut plan = self.executor.plan(self.rec, &Arc::new(self.weights.load()?), &PlanOptions::plain())?;
        let outputs = plan.run(states, &self.input, Watch::default())?.wait()?;
        Ok(outputs.0.into_iter().next().unwrap_or_default())
    }
}

/// A call over heads that rotate by their positions, with the heads and the rows of the table.
pub(super) fn rotation(
    operation: &'static str,
    on: impl Into<Executor>,
    (name, x): (&'static str, &[f32]),
    positions: &[u32],
    heads: usize,
    table: &RopeTable,
) -> Result<(Call, Tensor, Tensor), Error> {
    let width = x.len() / positions.len().max(1);
    if heads == 0
        || !width.is_multiple_of(heads)
        || table.dim as usize > width / heads
        || !table.dim.is_multiple_of(2)
        || table.dim == 0
    {
        return Err(argument(operation, "the number of rotated elements is zero, odd or larger than a head"));
    }
    if table.factors.as_ref().is_some_and(|f| f.len() != table.dim as usize / 2) {
        return Err(argument(operation, "the table does not have one factor per pair"));
    }
    let mut call = Call::new(operation, on, positions.len(), &[])?;
    call.input.positions = positions.to_vec();
    let (x, rows) = (call.tensor(name, x, width)?.heads(heads as u32), call.rec.rope_rows(table));
    Ok((call, x, rows))
}
