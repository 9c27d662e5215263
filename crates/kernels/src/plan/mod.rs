//! From a recording to a list of dispatches, in small passes over data. Each pass is a file of its
//! own.

mod merge;
mod narrow;
mod options;
mod place;
mod print;
mod select;
mod specialize;

use crate::attention::attention_flash::AttentionFlash;
use crate::attention::attention_merge::{AttentionMerge, Form};
use crate::attention::fused::{AttentionByLength, Rows};
use crate::caps::Caps;
use crate::caps::table::measured::DEEP_KEYS;
use crate::error::Error;
use crate::graph::operation::{Operation, Work};
use crate::graph::record::{self, Origin, Phase, Recorder, RopeTable, Stage};
use crate::graph::tensor::{Counts, Shape, Tensor};
use crate::kernel::compose::Shader;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering, When};
use crate::language::{Lowered, Node, Op, Primitive};
use crate::matmul::problem::Rounds;
use crate::norm::pack_f16::PackF16;
use crate::norm::rms_norm::RmsNorm;
#[cfg(feature = "testing")]
pub use merge::described as merge_rules;
pub use options::{PlanOptions, Precision};
pub use place::Placement;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A dispatch of the plan, with its shader, its phase and layer, and its operation.
#[derive(Clone, Debug)]
pub struct Placed {
    pub dispatch: Dispatch,
    pub shader: Shader,
    pub stage: Stage,
    /// The operation that the dispatch computes.
    pub op: Arc<Lowered>,
    /// Number of dispatches of the operation that run in the same steps.
    pub share: u64,
}

impl Placed {
    /// This dispatch's part of the work of its operation. It does not depend on the positions:
    /// a [`Profile`](crate::Profile) counts what attention reads of the states.
    #[must_use]
    pub fn work(&self, counts: Counts) -> Work {
        self.op.work(counts).divided(self.share)
    }
}

/// The dispatches and the parts of one operation of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub dispatches: Range<usize>,
    pub parts: Range<usize>,
    pub stage: Stage,
}

/// A compiled plan: dispatches, buffers, and the tensors that are read back. It is plain data until
/// an executor binds it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub capacity: Counts,
    /// Sequences that its states must hold; 0 for any number.
    pub sequences: u32,
    /// Workgroups per dimension of the device that the plan is for.
    pub max_grid: u32,
    pub dispatches: Vec<Placed>,
    /// The operations that the dispatches compute, in order, including the operations that round.
    pub(crate) parts: Vec<record::Node<Primitive>>,
    /// The operations in order, as ranges of `dispatches` and of `parts`.
    pub(crate) nodes: Vec<Span>,
    pub(crate) origins: Vec<(Origin, Shape)>,
    pub(crate) ropes: Vec<RopeTable>,
    pub placement: Placement,
    /// Tensors read back after a run: outputs first, then the requested taps.
    pub read_back: Vec<Tensor>,
}

impl Planned {
    /// The names of all kernels, each once, in the order of their first dispatch.
    #[must_use]
    pub fn kernels(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for name in self.dispatches.iter().map(|placed| placed.shader.label()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The positions from which on other kernels run, rising.
    #[must_use]
    pub fn borders(&self) -> Vec<u32> {
        let ends = self.dispatches.iter().flat_map(|placed| match placed.dispatch.when {
            When::Always => [0, 0],
            When::Near(end) => [end, 0],
            When::Deep(from) => [from, 0],
            When::Far { near, deep } => [near, deep],
        });
        let mut ends: Vec<u32> = ends.filter(|end| *end != 0 && *end != u32::MAX).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}

/// The taps of a recording that were requested.
#[must_use]
pub fn requested<'a, O>(rec: &'a Recorder<O>, options: &'a PlanOptions) -> Vec<&'a record::Tap> {
    rec.taps.iter().filter(|t| options.taps.iter().any(|name| name == t.name)).collect()
}

/// Runs all passes.
///
/// # Errors
/// [`Error::BindingTooLarge`] for an intermediate tensor that no binding of this device can hold.
pub fn plan<O: Clone + Into<Primitive>>(
    rec: &Recorder<O>,
    caps: &Caps,
    options: &PlanOptions,
) -> Result<Planned, Error> {
    let mut read_back = rec.outputs.clone();
    read_back.extend(requested(rec, options).iter().map(|t| t.tensor));
    let recorded = rec.nodes.iter().map(|node| Node::of(node.op.clone(), node.stage)).collect();
    let nodes = if options.unfused { recorded } else { merge::runs(recorded, &read_back, caps) };
    let mut origins = rec.origins.clone();
    let cx = Lower { caps, capacity: rec.capacity, fast: options.rounds() == Rounds::Freely };
    let nodes = if options.fast() { narrow::narrow(nodes, &mut origins, options, caps) } else { nodes };
    let nodes = match options.unfused {
        true => nodes,
        false => {
            let nodes = merge::values(nodes, &mut origins, &read_back, &cx);
            let nodes = merge::producers(nodes, &read_back, &rec.states, caps);
            merge::packing(merge::consumers(nodes, caps), &read_back, caps)
        }
    };
    let of = |node: &Node| {
        let stage = node.stage;
        rounded(node, &cx).into_iter().map(move |op| record::Node { op, stage })
    };
    let parts = nodes.iter().flat_map(of).collect();
    let threads = if options.portable { 0 } else { caps.subgroup_threads() };
    let (mut dispatches, mut spans, mut part) = (vec![], vec![], 0);
    for node in &nodes {
        let lowered = node.op.lower(&cx);
        let op = Arc::new(node.op.clone());
        let together = |when: When| lowered.iter().filter(|d| d.when == when).count() as u64;
        let shares: Vec<u64> = lowered.iter().map(|d| together(d.when)).collect();
        spans.push(Span {
            dispatches: dispatches.len()..dispatches.len() + lowered.len(),
            parts: part..part + node.parts.len(),
            stage: node.stage,
        });
        part += node.parts.len();
        for (dispatch, share) in lowered.into_iter().zip(shares) {
            let shader = select::shader(&dispatch, &rec.states, threads);
            dispatches.push(Placed { dispatch, shader, stage: node.stage, op: Arc::clone(&op), share });
        }
    }
    if options.specialize {
        specialize::specialize(&mut dispatches, rec.capacity.step, options.sequences);
    }
    let placement = place::place(&dispatches, &origins, &read_back);
    for (n, &bytes) in placement.buffers.iter().enumerate() {
        if bytes > caps.max_binding_bytes {
            return Err(Error::BindingTooLarge {
                what: format!("intermediate buffer {n}"),
                bytes,
                limit: caps.max_binding_bytes,
            });
        }
    }
    Ok(Planned {
        capacity: rec.capacity,
        sequences: options.sequences,
        max_grid: caps.max_grid,
        dispatches,
        parts,
        nodes: spans,
        origins,
        ropes: rec.ropes.clone(),
        placement,
        read_back,
    })
}

/// The parts of one operation, which round where its kernels round.
fn rounded(node: &Node, cx: &Lower<'_>) -> Vec<Primitive> {
    if let Lowered::Op(Op::Attention(op)) = &node.op
        && let Some(flash) = AttentionFlash::found(op, cx)
    {
        return vec![flash.into()];
    }
    // Attention packs without scales what the recording packs with them.
    let unscaled = |part, pack: Option<&PackF16>| match (part, pack) {
        (Primitive::PackF16(_), Some(pack)) => pack.clone().into(),
        (part, _) => part,
    };
    let (attention, pack) = match &node.op {
        Lowered::AttentionByLength(by) => (Some(by.clone()), by.pack.as_ref()),
        Lowered::AttentionDecodeRowsF16(op) => (Some(op.attention()), Some(&op.pack)),
        Lowered::AttentionMerge(AttentionMerge { form: Form::F16(pack), .. }) => (None, Some(&**pack)),
        _ => return factors_left(node.parts.clone()),
    };
    let part = |part| match &attention {
        Some(by) => by_length(unscaled(part, pack), by, cx),
        None => unscaled(part, pack),
    };
    node.parts.iter().cloned().map(part).collect()
}

/// A part of an attention that has two forms.
fn by_length(part: Primitive, by: &AttentionByLength, cx: &Lower<'_>) -> Primitive {
    let Primitive::Op(Op::Attention(of)) = part else { return part };
    let Some(keys) = by.tiles.as_ref().and_then(|tiles| tiles.keys(cx)) else { return of.into() };
    // Rows of whole tiles round, too.
    let from = matches!(*by.rows, Rows::Split(..)).then_some(DEEP_KEYS);
    AttentionFlash { of, keys, from }.into()
}

/// The parts of one operation, where the packing of a norm of whole rows leaves the norm's factor
/// to the readers, as every kernel that does both leaves it.
fn factors_left(mut parts: Vec<Primitive>) -> Vec<Primitive> {
    let norms: HashMap<u32, RmsNorm> = parts
        .iter()
        .filter_map(|part| match part {
            Primitive::Op(Op::RmsNorm(norm)) if norm.x.shape.heads == 1 => Some((norm.y.id, norm.clone())),
            _ => None,
        })
        .collect();
    for part in &mut parts {
        if let Primitive::PackQ8(pack) = part {
            pack.norm = norms.get(&pack.x.id).cloned();
        }
    }
    parts
}

impl Planned {
    /// Bytes of intermediate buffers.
    #[must_use]
    pub fn intermediate_bytes(&self) -> u64 {
        self.placement.buffers.iter().sum()
    }

    /// Bytes of the inputs of a step, and of its results on their way to the host.
    #[must_use]
    pub fn exchange_bytes(&self) -> u64 {
        self.placement.input_bytes + self.read_back.iter().map(|t| 4 * t.shape.elements()).sum::<u64>()
    }

    /// The part of [`Planned::intermediate_bytes`] that holds values of the forward pass for the
    /// backward pass, and results.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let mut made = HashMap::new();
        let mut kept: HashSet<usize> =
            self.read_back.iter().filter_map(|t| self.placement.slots.get(&t.id).copied()).collect();
        for placed in &self.dispatches {
            for t in placed.dispatch.tensors(true) {
                made.entry(t.id).or_insert(placed.stage.phase);
            }
            let crosses = |t: &Tensor| made.get(&t.id).is_some_and(|phase| *phase != placed.stage.phase);
            kept.extend(
                placed.dispatch.tensors(false).filter(crosses).filter_map(|t| self.placement.slots.get(&t.id).copied()),
            );
        }
        kept.into_iter().map(|slot| self.placement.buffers[slot]).sum()
    }
}

/// The largest number of bytes of the values that exist at a time when the CPU runs a recording at
/// capacity, and the part of them that the forward pass keeps for the backward pass, results
/// included.
#[must_use]
pub fn host_bytes<O: Operation>(rec: &Recorder<O>) -> [u64; 2] {
    let bytes = |id: u32| 4 * rec.origins[id as usize].1.elements();
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (at, node) in rec.nodes.iter().enumerate() {
        let io = node.op.io();
        last.extend(io.reads.iter().chain(&io.writes).map(|t| (t.id, at)));
    }
    last.extend(rec.outputs.iter().map(|t| (t.id, usize::MAX)));
    let mut live: HashSet<u32> =
        (0..rec.origins.len() as u32).filter(|id| rec.origins[*id as usize].0 != Origin::Made).collect();
    let mut now: u64 = live.iter().map(|id| bytes(*id)).sum();
    let (mut most, mut kept) = (now, None);
    for (at, node) in rec.nodes.iter().enumerate() {
        if node.stage.phase == Phase::Backward && kept.is_none() {
            kept = Some(now);
        }
        let io = node.op.io();
        for t in io.writes.iter().filter(|t| live.insert(t.id)).collect::<Vec<_>>() {
            now += bytes(t.id);
        }
        most = most.max(now);
        let ends = io.reads.iter().chain(&io.writes).filter(|t| rec.origins[t.id as usize].0 == Origin::Made);
        for t in ends.filter(|t| last[&t.id] == at) {
            if live.remove(&t.id) {
                now -= bytes(t.id);
            }
        }
    }
    [most, kept.unwrap_or(now)]
}
