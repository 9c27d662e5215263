//! The vector-Jacobian product of every operation: from the derivative of a loss by its result, the
//! derivatives by its operands. One table, by exhaustive match: an operation without a row does not
//! compile.

mod altup;
mod attention;
mod elementwise;
mod experts;
mod matmul;
mod rows;
#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::tape::Tape;
use kernels::ops::Op;
use kernels::{Node, Operation as _};

impl Tape<'_> {
    /// Walks these operations in reverse, and appends their derivatives.
    ///
    /// # Errors
    /// [`Error::NotDifferentiable`] for a discrete operation on a path that is needed.
    pub fn walk(&mut self, nodes: &[Node<Op>]) -> Result<(), Error> {
        for Node { op, stage } in nodes.iter().rev() {
            let writes = op.io().writes;
            if writes.iter().any(|t| self.reached(*t)) {
                self.rec.layer(stage.layer);
                self.layer = stage.layer;
                append(self, op)?;
            }
        }
        Ok(())
    }
}

/// Appends the derivatives by the operands of `op`, whose result has a derivative on the tape, and
/// adds them to the tape.
///
/// # Errors
/// [`Error::NotDifferentiable`] for a discrete operation, and [`Error::NoGradient`] for a trained
/// weight of an operation that has only the derivative by its rows.
fn append(tape: &mut Tape<'_>, op: &Op) -> Result<(), Error> {
    match op {
        Op::Embed(op) => rows::embed(tape, op),
        Op::Matmul(op) => matmul::matmul(tape, op),
        Op::LayerNorm(op) => rows::layer_norm(tape, op),
        Op::RmsNorm(op) => rows::rms_norm(tape, op),
        Op::Rope(op) => rows::rope(tape, op),
        Op::GatherRows(op) => rows::gather_rows(tape, op),
        Op::Softmax(op) => rows::softmax(tape, op),
        Op::LogSoftmax(op) => rows::log_softmax(tape, op),
        Op::Attention(op) => attention::attention(tape, op),
        Op::Add(op) => elementwise::add(tape, op),
        Op::Scale(op) => elementwise::scale(tape, op),
        Op::Relu(op) => elementwise::relu(tape, op),
        Op::Silu(op) => elementwise::silu(tape, op),
        Op::Gelu(op) => elementwise::gelu(tape, op),
        Op::Swiglu(op) => elementwise::swiglu(tape, op),
        Op::Geglu(op) => elementwise::geglu(tape, op),
        Op::Mul(op) => elementwise::mul(tape, op),
        Op::Softcap(op) => elementwise::softcap(tape, op),
        Op::Dropout(op) => elementwise::dropout(tape, op),
        Op::AddWeighted(op) => altup::add_weighted(tape, op),
        Op::MatchRms(op) => altup::match_rms(tape, op),
        Op::GaussianTopK(op) => altup::gaussian_top_k(tape, op),
        Op::Route(op) => experts::route(tape, op)?,
        Op::MatmulExperts(op) => experts::matmul_experts(tape, op)?,
        Op::CombineExperts(op) => experts::combine_experts(tape, op),
        Op::MulSigmoid(op) => experts::mul_sigmoid(tape, op),
        // Keys stay with the step, and the order of slots is discrete and has no other readers than
        // products.
        Op::KvAppend(_) | Op::GroupExperts(_) => {}
        Op::Argmax(_) | Op::TopK(_) | Op::Penalize(_) | Op::Sample(_) | Op::Backward(_) => {
            return Err(Error::NotDifferentiable { operation: op.name() });
        }
    }
    Ok(())
}
