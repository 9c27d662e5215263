//! What the interpreter computes of a case, held to the oracles.

use super::finding::Finding;
use super::machine::{Machine, Space};
use super::program::Program;
use crate::shaders;
use anyhow::{Context as _, anyhow};
use gguf::GgmlType;
use kernels::Caps;
use kernels::testing::computed::Expected;
use kernels::testing::kernel::compose::{Piece, Shader};
use kernels::testing::kernel::format::format;
use kernels::testing::parity::Case;
use kernels::testing::parity::calls::{Call, Calls};
use kernels::testing::sweep::{Outcome, Target};
use std::collections::BTreeMap;

pub mod held;
#[cfg(test)]
mod tests;

/// A text with a fault may take so many times the steps of the right text. With more it is taken to
/// be endless.
const PATIENCE: u64 = 4;

/// A case that reaches a shader, run up to the first dispatch of the shader.
pub struct Trial {
    shader: Shader,
    subgroup: usize,
    expected: Expected,
    /// The dispatches, with the contents of the buffers before the shader's first.
    calls: Calls,
    first: usize,
    /// The steps of the right texts from there on.
    steps: u64,
    /// The outcome of the right texts.
    pub right: Outcome,
}

impl Trial {
    /// Runs the plan of a device with subgroups of so many threads. Other shaders than the target's
    /// that take larger subgroups run in their portable form. At most so many steps are made; more
    /// are [`Finding::Endless`].
    pub fn of(target: &Target, case: &Case, caps: &Caps, subgroup: usize, steps: u64) -> anyhow::Result<Self> {
        let portable = !target.shader.subgroups;
        let expected = case.expected(caps, portable)?;
        let mut calls = case.calls(caps, portable)?;
        let first = calls
            .calls
            .iter()
            .position(|call| call.shader == target.shader)
            .context("the case does not reach the shader")?;
        let larger =
            |call: &&mut Call| call.shader != target.shader && call.shader.fewest_threads() as usize > subgroup;
        for call in calls.calls.iter_mut().filter(larger) {
            (call.shader.subgroups, call.shader.wide) = (false, false);
        }
        let mut space = Space { buffers: std::mem::take(&mut calls.buffers), ..Space::default() };
        let mut left = steps;
        for call in &calls.calls[..first] {
            left = computed(&call.shader.source(), call, &mut space, subgroup, left)?;
        }
        calls.buffers.clone_from(&space.buffers);
        let before = left;
        for call in &calls.calls[first..] {
            left = computed(&call.shader.source(), call, &mut space, subgroup, left)?;
        }
        let right = expected.compare(&calls, &space.buffers);
        Ok(Self { shader: target.shader.clone(), subgroup, expected, calls, first, steps: before - left, right })
    }

    /// Whether a valid text in place of the shader's own shows: its results are not those of the
    /// oracles, or it does what no shader may do.
    pub fn shows(&self, source: &str) -> anyhow::Result<bool> {
        let mut space = Space { buffers: self.calls.buffers.clone(), ..Space::default() };
        let mut left = PATIENCE * self.steps;
        for call in &self.calls.calls[self.first..] {
            let own = call.shader == self.shader;
            let of_call = if own { source.to_string() } else { call.shader.source() };
            left = match computed(&of_call, call, &mut space, self.subgroup, left) {
                Ok(left) => left,
                Err(error) => return error.downcast::<Finding>().map(|_| true),
            };
        }
        Ok(!self.expected.compare(&self.calls, &space.buffers).holds())
    }
}

/// Runs all workgroups of a dispatch with this text, and notes no accesses. Returns the steps that
/// are left.
fn computed(source: &str, call: &Call, space: &mut Space, subgroup: usize, steps: u64) -> anyhow::Result<u64> {
    let (module, info) = shaders::validate(source, &call.shader).map_err(|e| anyhow!("{e}"))?;
    let program = Program::new(&module, &info, subgroup)?;
    let mut machine = Machine::computing(&program, call, space, steps);
    machine.run(u32::MAX)?;
    Ok(machine.fuel)
}

/// How a shader reads a weight on the way to cooperative matrices.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Staging {
    /// In units of 32 quants.
    Units,
    F16,
    Bf16,
    /// Element by element, of any other format.
    Elements,
}

impl Staging {
    fn of(ty: GgmlType) -> Self {
        match ty {
            GgmlType::F16 => Self::F16,
            GgmlType::BF16 => Self::Bf16,
            _ if format(ty).is_some_and(|format| format.units.is_some()) => Self::Units,
            _ => Self::Elements,
        }
    }
}

/// The shaders with cooperative matrices: of every variant one for each way to stage a weight, and
/// for each type of states.
pub fn cooperative(caps: &Caps) -> Vec<Target> {
    let targets = Target::all(caps).into_iter().filter(|target| target.shader.variant.kernel.cooperative());
    one_of_each(targets, 0, |target| target.format().map(Staging::of))
}

/// Of the shaders of a variant, with equal types of states and of equal `kind`, one. The formats
/// take turns, so that all shaders together have many. `start`: the number of the first turn.
pub fn one_of_each<K: Ord>(
    targets: impl Iterator<Item = Target>,
    start: usize,
    kind: impl Fn(&Target) -> K,
) -> Vec<Target> {
    let mut forms: BTreeMap<(&str, Option<String>, K), Vec<Target>> = BTreeMap::new();
    for target in targets {
        let kv = |piece: &Piece| if let Piece::Kv(ty) = piece { Some(format!("{ty:?}")) } else { None };
        let kv = target.shader.pieces.iter().flatten().find_map(kv);
        forms.entry((target.shader.variant.name, kv, kind(&target))).or_default().push(target);
    }
    (start..).zip(forms.into_values()).map(|(turn, mut of)| of.swap_remove(turn % of.len())).collect()
}
