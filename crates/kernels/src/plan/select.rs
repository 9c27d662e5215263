//! Chooses the pieces of a shader, after an operation has named the variant.

use crate::graph::tensor::StateKind;
use crate::kernel::compose::{Piece, Shader};
use crate::kernel::dispatch::{Arg, Dispatch};
use crate::kernel::{Access, KvUse};
use cpu_ref::KvType;

/// The shader of a dispatch: the formats and state types of its bindings, and its subgroup form for
/// `threads` per subgroup (0 without).
pub fn shader(dispatch: &Dispatch, states: &[StateKind], threads: u32) -> Shader {
    let piece = |(&(_, access), arg): (&(&str, Access), &Arg)| match (access, arg) {
        (Access::Weight(_), Arg::Weight(w, _)) => Some(Piece::Weight(w.ty)),
        (Access::Kv(_), Arg::State(s)) => Some(Piece::Kv(states[s.0 as usize].row().0)),
        // Tensors of the step have the layout of rows of an f32 state.
        (Access::Kv(KvUse::Read), Arg::Value(_)) => Some(Piece::Kv(KvType::F32)),
        _ => None,
    };
    let pieces = dispatch.variant.kernel.bindings.iter().zip(&dispatch.args).map(piece).collect();
    let (subgroups, wide) = Shader::form(dispatch.variant, threads);
    Shader { variant: dispatch.variant, pieces, subgroups, wide, given: vec![] }
}
