//! Chooses a kernel's pieces: what is left to choose once an operation has named its row.

use super::{Arg, Dispatch};
use crate::compose::{Kernel, Piece};
use crate::row::Access;
use crate::tensor::StateKind;

/// The kernel of a dispatch: the formats and state types of what it binds, and subgroups of so many `threads` (0 without) where they serve.
pub fn kernel(dispatch: &Dispatch, states: &[StateKind], threads: u32) -> Kernel {
    let piece = |(&(_, access), arg): (&(&str, Access), &Arg)| match (access, arg) {
        (Access::Weight, Arg::Weight(w, _)) => Some(Piece::Format(w.ty)),
        (Access::Units, Arg::Weight(w, _)) => Some(Piece::Units(w.ty)),
        (Access::Groups | Access::Rows | Access::Tiles | Access::Beside, Arg::Weight(w, _)) => Some(Piece::Groups(w.ty)),
        (Access::Kv | Access::KvMut | Access::KvBoth, Arg::State(s)) => match states[s.0 as usize] {
            StateKind::Kv { ty, .. } => Some(Piece::Kv(ty)),
            StateKind::Tokens => None,
        },
        _ => None,
    };
    let pieces = dispatch.row.bindings.iter().zip(&dispatch.args).map(piece).collect();
    let (subgroups, wide) = Kernel::form(dispatch.row, threads);
    Kernel { row: dispatch.row, pieces, subgroups, wide, given: vec![] }
}
