//! The kernel calls of a case with the contents of their buffers, for hosts without a device.

use super::{Case, Loaded};
use crate::caps::Caps;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::angles::Angles;
use crate::exec::cpu::input_words;
use crate::exec::states::States;
use crate::graph::tensor::{Counts, Place, Tensor, Weight};
use crate::kernel::compose::Shader;
use crate::kernel::dispatch::{Arg, Dispatch};
use crate::kernel::format::{Format, format};
use crate::kernel::split::parts;
use crate::native::blocking::block_on;
use crate::plan::{Placed, Planned};
use std::collections::HashMap;
use std::ops::Range;

/// The bytes of a buffer that a binding names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The index of the buffer.
    pub buffer: usize,
    pub bytes: Range<usize>,
}

/// One dispatch.
#[derive(Clone, Debug)]
pub struct Call {
    pub shader: Shader,
    pub params: Vec<u8>,
    /// The bindings after the params, in the order of the kernel's list.
    pub bindings: Vec<Bound>,
    /// Numbers of workgroups.
    pub grid: [u32; 3],
}

/// The dispatches of one step.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The contents of all buffers before the step. Intermediates are filled with NaN.
    pub buffers: Vec<Vec<u8>>,
    pub calls: Vec<Call>,
    /// The values that are read back after the step.
    pub results: Vec<(Tensor, Bound)>,
    /// The index of the first state's buffer. Those of the other states follow.
    pub states: usize,
}

impl Case {
    /// The dispatches of the plan that a device with these capabilities would run.
    ///
    /// # Errors
    /// Errors of planning.
    pub fn calls(&self, caps: &Caps, portable: bool) -> Result<Calls, Error> {
        let planned = self.planned(caps, portable)?;
        let mut room = Room { buffers: vec![], weights: HashMap::new(), states: 0, inputs: 0, planned: &planned };
        planned.placement.buffers.iter().for_each(|&bytes| room.add(vec![0xff; bytes as usize]));
        room.inputs = room.buffers.len();
        room.add(vec![0; planned.placement.input_bytes as usize]);
        let ropes: Vec<Angles> = planned.ropes.iter().map(Angles::new).collect();
        for &(id, kind, offset, _) in &planned.placement.inputs {
            let words = input_words(kind, planned.origins[id as usize].1, &self.input, &ropes);
            room.buffers[room.inputs][offset as usize..][..4 * words.len()]
                .copy_from_slice(bytemuck::cast_slice(&words));
        }
        room.states = room.buffers.len();
        let states = block_on(self.loaded(&Executor::Cpu))?.1;
        (0..self.kinds.len()).for_each(|n| room.add(states.host(states.state(n)).to_vec()));
        for (n, loaded) in (0..).zip(&self.weights) {
            self.weight_bytes(caps, loaded)
                .into_iter()
                .enumerate()
                .for_each(|(part, bytes)| room.weight(n, part as u32, bytes));
        }
        let (counts, runs) =
            (self.input.counts(), planned.dispatches.iter().filter(|placed| placed.dispatch.when.holds(&self.input)));
        let calls = runs.map(|placed| {
            let bindings = placed.dispatch.args.iter().map(|arg| room.bound(arg)).collect();
            let grid = placed.dispatch.grid.at(counts, planned.max_grid);
            Call { shader: placed.shader.clone(), params: params(&placed.dispatch, &states), bindings, grid }
        });
        let calls = calls.collect();
        let result = |t: &Tensor| {
            let start = t.offset_bytes() as usize;
            let bytes = 4 * t.shape.rows_at(counts) as usize * t.shape.width() as usize;
            (*t, Bound { buffer: planned.placement.slots[&t.id], bytes: start..start + bytes })
        };
        let results = planned.read_back.iter().map(result).collect();
        Ok(Calls { calls, results, states: room.states, buffers: room.buffers })
    }

    /// The number of invocations of all dispatches.
    ///
    /// # Errors
    /// Errors of planning.
    pub fn invocations(&self, caps: &Caps, portable: bool) -> Result<u64, Error> {
        let planned = self.planned(caps, portable)?;
        let runs = planned.dispatches.iter().filter(|placed| placed.dispatch.when.holds(&self.input));
        Ok(runs.map(|placed| invocations(placed, self.input.counts(), planned.max_grid)).sum())
    }

    /// The work of all dispatches for an interpreter, roughly: of every invocation, and of every
    /// arithmetic operation. Returns the shaders of the dispatches, too.
    ///
    /// # Errors
    /// Errors of planning.
    pub fn work(&self, caps: &Caps, portable: bool) -> Result<(u64, Vec<Shader>), Error> {
        let planned = self.planned(caps, portable)?;
        let counts = self.input.counts();
        // Invocations of attention read the keys before their rows.
        let each = EACH + self.input.positions.iter().copied().max().map_or(0, u64::from);
        let of = |placed: &Placed| each * invocations(placed, counts, planned.max_grid) + placed.work(counts).flops;
        let runs = || planned.dispatches.iter().filter(|placed| placed.dispatch.when.holds(&self.input));
        Ok((runs().map(of).sum(), runs().map(|placed| placed.shader.clone()).collect()))
    }

    /// The bytes of a weight on a device, one buffer for each of its parts.
    fn weight_bytes(&self, caps: &Caps, loaded: &Loaded) -> Vec<Vec<u8>> {
        match loaded {
            Loaded::Vector(values) => vec![bytemuck::cast_slice(values).to_vec()],
            Loaded::Matrix { w: Weight { ty, rows, cols, .. }, g, bytes } => {
                let file = bytes.get_or_init(|| g.clone().weight(*ty, *rows, *cols));
                let of = format(*ty).unwrap_or_else(|| panic!("{} has no piece", ty.name()));
                parts(caps, *ty, *rows, *cols).into_iter().map(|rows| relaid(of, rows, *cols, file)).collect()
            }
        }
    }
}

/// Arithmetic operations that take as long as an invocation does without them.
const EACH: u64 = 1000;

/// The number of invocations of a dispatch.
fn invocations(placed: &Placed, counts: Counts, max_grid: u32) -> u64 {
    let groups = placed.dispatch.grid.at(counts, max_grid);
    groups.into_iter().chain([placed.shader.variant.needs.threads]).map(u64::from).product()
}

/// Rows of a matrix in the layout of a device, behind the table of their format.
fn relaid(of: &Format, rows: Range<u32>, cols: u32, file: &[u8]) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice::<u32, u8>(of.table()).to_vec();
    let (from, to) = (of.ty.row_bytes(cols as usize).unwrap_or(0), 4 * of.row_words(cols) as usize);
    for row in rows {
        let start = bytes.len();
        bytes.resize(start + to, 0);
        of.relay_row(cols, &file[row as usize * from..][..from], &mut bytes[start..]);
    }
    bytes
}

/// The params of a dispatch, with the field that is filled in when a plan is bound.
fn params(dispatch: &Dispatch, states: &States) -> Vec<u8> {
    let mut params = dispatch.params.clone();
    let state = dispatch.args.iter().find_map(|arg| if let Arg::State(s) = arg { Some(*s) } else { None });
    if let (Some((_, at)), Some(state)) = (dispatch.variant.kernel.bound_late(), state) {
        params[at..at + 4].copy_from_slice(&states.rows(state).to_le_bytes());
    }
    params
}

/// The buffers of a plan: intermediates, the step's inputs, states, then weights and unused ones.
struct Room<'a> {
    buffers: Vec<Vec<u8>>,
    inputs: usize,
    /// The index of the first state.
    states: usize,
    /// The index of each part of each weight.
    weights: HashMap<(u32, u32), usize>,
    planned: &'a Planned,
}

impl Room<'_> {
    /// Adds a buffer of a size that devices have.
    fn add(&mut self, mut bytes: Vec<u8>) {
        bytes.resize(bytes.len().max(16).next_multiple_of(16), 0);
        self.buffers.push(bytes);
    }

    fn weight(&mut self, n: u32, part: u32, bytes: Vec<u8>) {
        self.weights.insert((n, part), self.buffers.len());
        self.add(bytes);
    }

    fn bound(&mut self, arg: &Arg) -> Bound {
        let buffer = match arg {
            Arg::None | Arg::Spare => {
                self.add(vec![0xff; 16]);
                self.buffers.len() - 1
            }
            Arg::State(state) => self.states + state.0 as usize,
            Arg::Weight(w, part) => match w.place {
                Place::Loaded(n) => self.weights[&(n, *part)],
                Place::State(state) => self.states + state.0 as usize,
            },
            Arg::Value(t) => return self.value(*t),
        };
        Bound { buffer, bytes: 0..self.buffers[buffer].len() }
    }

    fn value(&self, t: Tensor) -> Bound {
        let (start, own) = (t.offset_bytes() as usize, 4 * t.shape.elements() as usize);
        if let Some(&buffer) = self.planned.placement.slots.get(&t.id) {
            let end = if t.first == 0 { self.buffers[buffer].len() } else { start + own };
            return Bound { buffer, bytes: start..end };
        }
        let &(_, _, offset, all) =
            self.planned.placement.inputs.iter().find(|input| input.0 == t.id).expect("a value that is made");
        let size = if t.first == 0 { all as usize } else { own };
        let start = offset as usize + start;
        Bound { buffer: self.inputs, bytes: start..start + size.max(16).next_multiple_of(16) }
    }
}
