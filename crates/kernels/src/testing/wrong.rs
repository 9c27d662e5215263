//! Wrong parameters: the device gets another scale, window, epsilon or rotation than the oracles.

use crate::caps::Caps;
use crate::device::Device;
use crate::error::Error;
use crate::graph::operation::{Operation, Parameters};
use crate::graph::record::{Origin, Recorder, RopeTable};
use crate::graph::tensor::Input;
use crate::kernel::compose::Shader;
use crate::language::{Backward, Op, Primitive};
use crate::native::blocking::block_on;
use crate::plan::{Planned, plan};
use crate::testing::Switches;
use crate::testing::parity::Case;
use crate::testing::sweep::Outcome;
use std::collections::{BTreeMap, HashSet};

/// A parameter of a recorded operation, or a constant of a rope table, with a wrong value.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The operation and the parameter, such as `attention.window`.
    pub name: String,
    place: Place,
}

/// Where a recording changes, with the operations or the table that it then has.
#[derive(Clone, Debug)]
enum Place {
    Nodes(Vec<(usize, Primitive)>),
    Rope(usize, RopeTable),
}

impl Case {
    /// The parameters, with a wrong value each, of the operations that this shader takes part in.
    ///
    /// # Errors
    /// Errors of planning.
    pub fn wrongs(&self, caps: &Caps, shader: &Shader) -> Result<Vec<Wrong>, Error> {
        let planned = self.planned(caps, !shader.subgroups)?;
        // The values that these operations make, and the names of those that only write states.
        let (mut made, mut silent, mut tables, mut runs) = (HashSet::new(), HashSet::new(), HashSet::new(), false);
        for span in &planned.nodes {
            runs |= planned.dispatches[span.dispatches.clone()]
                .iter()
                .any(|placed| placed.dispatch.when.holds(&self.input) && placed.shader == *shader);
            let parts = &planned.parts[span.parts.clone()];
            // The last node of an operation has its parts.
            if parts.is_empty() {
                continue;
            }
            if std::mem::take(&mut runs) {
                made.extend(parts.iter().flat_map(|part| part.op.io().writes).map(|t| t.id));
                silent.extend(parts.iter().filter(|part| part.op.io().writes.is_empty()).map(|part| part.op.name()));
                let rotations = parts.iter().filter(|part| {
                    matches!(part.op, Primitive::Op(Op::Rope(_) | Op::Backward(Backward::RopeBackward(_))))
                });
                tables.extend(rotations.flat_map(|part| part.op.io().reads).filter_map(|t| self.table(t.id)));
            }
        }
        let mut found = vec![];
        let taken = |op: &Primitive| {
            let writes = op.io().writes;
            writes.iter().any(|t| made.contains(&t.id)) || writes.is_empty() && silent.contains(op.name())
        };
        for (at, node) in self.rec.nodes().iter().enumerate().filter(|(_, node)| taken(&node.op)) {
            let wrong =
                |(name, op)| Wrong { name: format!("{}.{name}", node.op.name()), place: Place::Nodes(vec![(at, op)]) };
            // Operations that only plans make have no parameters.
            if let Primitive::Op(op) = &node.op {
                found.extend(op.wrong().into_iter().map(|(name, op)| wrong((name, op.into()))));
            }
        }
        found.extend(together(&found));
        for (at, table) in self.rec.ropes.iter().enumerate().filter(|(at, _)| tables.contains(at)) {
            let wrong = |(name, table)| Wrong { name: format!("rope.{name}"), place: Place::Rope(at, table) };
            found.extend(of_table(table).into_iter().map(wrong));
        }
        Ok(found)
    }

    /// The rope table that a value has the rows of.
    fn table(&self, id: u32) -> Option<usize> {
        match self.rec.origins[id as usize].0 {
            Origin::Input(Input::Rope(n)) => Some(n as usize),
            _ => None,
        }
    }

    /// Runs the case with a wrong parameter, and compares with the oracles, which have the right
    /// one. `None` if the device would run other kernels then.
    ///
    /// # Errors
    /// Errors of either executor.
    pub fn compare_wrong(&self, wrong: &Wrong, device: &Device, portable: bool) -> Result<Option<Outcome>, Error> {
        let options = self.options_on(device.caps()).portable(portable).guarded(true);
        let caps = self.caps_on(device.caps());
        let rec = wrong.planted(&self.rec);
        let (right, other) = (plan(&self.rec, &caps, &options)?, plan(&rec, &caps, &options)?);
        if !alike(&right, &other) {
            return Ok(None);
        }
        Ok(Some(block_on(self.agreed(&rec, Some(right), device, &options, u32::MAX))?.into()))
    }
}

/// Joins the faults of the same parameter, so that all operations have the same wrong value. One
/// kernel computes several norms only if their epsilons are equal.
fn together(found: &[Wrong]) -> Vec<Wrong> {
    let mut all: BTreeMap<&str, Vec<(usize, Primitive)>> = BTreeMap::new();
    for Wrong { name, place } in found {
        if let Place::Nodes(nodes) = place {
            all.entry(name).or_default().extend(nodes.iter().cloned());
        }
    }
    all.retain(|_, nodes| nodes.len() > 1);
    all.into_iter().map(|(name, nodes)| Wrong { name: name.to_string(), place: Place::Nodes(nodes) }).collect()
}

impl Wrong {
    /// The recording with the wrong value.
    fn planted(&self, rec: &Recorder<Primitive>) -> Recorder<Primitive> {
        let mut rec = rec.clone();
        match &self.place {
            Place::Nodes(nodes) => nodes.iter().for_each(|(at, op)| rec.nodes[*at].op = op.clone()),
            Place::Rope(at, table) => rec.ropes[*at] = table.clone(),
        }
        rec
    }
}

/// Whether two plans run the same shaders on the same values.
fn alike(a: &Planned, b: &Planned) -> bool {
    let steps = |of: &Planned| -> Vec<(Shader, Vec<u32>)> {
        of.dispatches
            .iter()
            .map(|placed| (placed.shader.clone(), placed.dispatch.tensors(true).map(|t| t.id).collect()))
            .collect()
    };
    let nodes = |of: &Planned| -> Vec<_> {
        of.nodes.iter().map(|node| (node.dispatches.clone(), node.parts.clone())).collect()
    };
    steps(a) == steps(b) && nodes(a) == nodes(b)
}

fn of_table(of: &RopeTable) -> Vec<(&'static str, RopeTable)> {
    let mut all = vec![
        ("theta", RopeTable { base: 1.01 * of.base, ..of.clone() }),
        ("scale", RopeTable { scale: 1.01 * of.scale, ..of.clone() }),
        ("magnitude", RopeTable { magnitude: 1.01 * of.magnitude, ..of.clone() }),
    ];
    if of.factors.is_some() {
        all.push(("factors lost", RopeTable { factors: None, ..of.clone() }));
    }
    all
}
