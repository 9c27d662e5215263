//! A plan as text for people: one line per dispatch.

use super::Planned;
use crate::graph::tensor::{Place, Weight};
use crate::kernel::dispatch::{Arg, When};
use std::fmt;

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<6} {:<44} {:<28} {:<16} grid at {} rows",
            "layer", "kernel", "reads", "writes", self.capacity.step
        )?;
        for placed in &self.dispatches {
            let [x, y, z] = placed.dispatch.grid.at(self.capacity, self.max_grid);
            let layer = placed.stage.layer.map_or_else(String::new, |l| l.to_string());
            let grid = if (y, z) == (1, 1) { x.to_string() } else { format!("{x} x {y} x {z}") };
            let (reads, writes) = (self.names(placed, false), self.names(placed, true));
            let when = match placed.dispatch.when {
                When::Always => String::new(),
                When::Near(end) => format!(" below position {end}"),
                When::Deep(from) => format!(" of sequences from position {from}"),
                When::Far { near, deep: u32::MAX } => format!(" from position {near}"),
                When::Far { near: 0, deep } => format!(" of sequences below position {deep}"),
                When::Far { near, deep } => format!(" from position {near}, of sequences below {deep}"),
            };
            writeln!(f, "{layer:<6} {:<44} {reads:<28} {writes:<16} {grid}{when}", placed.shader.label())?;
        }
        let (buffers, bytes) = (self.placement.buffers.len(), self.intermediate_bytes());
        write!(f, "{} dispatches, {buffers} intermediate buffers, {bytes} bytes", self.dispatches.len())
    }
}

impl Planned {
    fn names(&self, placed: &super::Placed, writes: bool) -> String {
        let bound = placed.dispatch.variant.kernel.bindings.iter().zip(&placed.dispatch.args);
        let names =
            bound.filter(|((_, access), _)| access.writes() == writes).filter_map(|((name, _), arg)| match arg {
                Arg::None | Arg::Spare => None,
                Arg::Value(t) => {
                    Some(self.placement.slots.get(&t.id).map_or_else(|| (*name).to_string(), |slot| format!("b{slot}")))
                }
                Arg::Weight(Weight { place: Place::State(s), .. }, _) => Some(format!("s{}", s.0)),
                Arg::Weight(Weight { place: Place::Loaded(n), .. }, 0) => Some(format!("w{n}")),
                Arg::Weight(Weight { place: Place::Loaded(n), .. }, part) => Some(format!("w{n}.{part}")),
                Arg::State(s) => Some(format!("s{}", s.0)),
            });
        names.collect::<Vec<_>>().join(" ")
    }
}
