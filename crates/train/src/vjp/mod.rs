//! The vector-Jacobian product of every operation: from the derivative of a loss by its result, the
//! derivatives by its operands. One table, by exhaustive match: an operation without a row does not
//! compile.

mod attention;
mod elementwise;
mod matmul;
mod rows;

use crate::error::Error;
use crate::tape::Tape;
use kernels::ops::Op;

/// Appends the derivatives by the operands of `op`, whose result has a derivative on the tape, and
/// adds them to the tape.
///
/// # Errors
/// [`Error::NotDifferentiable`] for a discrete operation.
pub fn append(tape: &mut Tape<'_>, op: &Op) -> Result<(), Error> {
    match op {
        Op::Matmul(op) => matmul::matmul(tape, op),
        Op::RmsNorm(op) => rows::rms_norm(tape, op),
        Op::Rope(op) => rows::rope(tape, op),
        Op::GatherRows(op) => rows::gather_rows(tape, op),
        Op::Attention(op) => attention::attention(tape, op),
        Op::Add(op) => elementwise::add(tape, op),
        Op::Scale(op) => elementwise::scale(tape, op),
        Op::Swiglu(op) => elementwise::swiglu(tape, op),
        Op::Geglu(op) => elementwise::geglu(tape, op),
        Op::Mul(op) => elementwise::mul(tape, op),
        Op::Softcap(op) => elementwise::softcap(tape, op),
        // Ids lead to no value, and keys stay with the step.
        Op::Embed(_) | Op::KvAppend(_) => {}
        Op::AddWeighted(_)
        | Op::MatchRms(_)
        | Op::GaussianTopK(_)
        | Op::Silu(_)
        | Op::Gelu(_)
        | Op::Softmax(_)
        | Op::LogSoftmax(_)
        | Op::Route(_)
        | Op::MatmulExperts(_)
        | Op::CombineExperts(_)
        | Op::MulSigmoid(_) => return Err(Error::NoDerivative { operation: op.name() }),
        Op::Argmax(_) | Op::TopK(_) | Op::GroupExperts(_) | Op::Penalize(_) | Op::Sample(_) | Op::Backward(_) => {
            return Err(Error::NotDifferentiable { operation: op.name() });
        }
    }
    Ok(())
}
