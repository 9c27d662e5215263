//! Wrong parameters: the device gets another scale, window, epsilon or rotation than the oracles.

use crate::attention::attention::{Attend, Attention};
use crate::attention::attention_backward_kv::AttentionBackwardKv;
use crate::attention::attention_backward_q::AttentionBackwardQ;
use crate::attention::attention_lse::{Attended, AttentionLse};
use crate::caps::Caps;
use crate::device::Device;
use crate::elementwise::add_weighted::{AddWeighted, RowWeights};
use crate::elementwise::add_weighted_backward::AddWeightedBackward;
use crate::elementwise::dropout::Dropout;
use crate::elementwise::geglu::Geglu;
use crate::elementwise::scale::Scale;
use crate::elementwise::softcap::Softcap;
use crate::elementwise::softcap_backward::SoftcapBackward;
use crate::error::Error;
use crate::experts::matmul_experts::MatmulExperts;
use crate::experts::matmul_experts_input::MatmulExpertsInput;
use crate::experts::route::Route;
use crate::experts::route_backward::RouteBackward;
use crate::graph::operation::Operation;
use crate::graph::record::{Origin, Recorder, RopeTable};
use crate::graph::tensor::Input;
use crate::kernel::compose::Shader;
use crate::language::{Backward, Op, Primitive};
use crate::matmul::embed::Embed;
use crate::norm::gaussian_top_k::GaussianTopK;
use crate::norm::gaussian_top_k_backward::GaussianTopKBackward;
use crate::norm::match_rms::MatchRms;
use crate::norm::match_rms_backward::MatchRmsBackward;
use crate::norm::rms_norm::RmsNorm;
use crate::norm::rms_norm_backward::RmsNormBackward;
use crate::plan::{Planned, plan};
use crate::testing::parity::Case;
use crate::testing::sweep::Outcome;
use crate::training::adamw::Adamw;
use crate::training::rms_norm_weight_backward::RmsNormWeightBackward;
use cpu_ref::AdamwSpec;
use cpu_ref::Mask;
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
            runs |= planned.steps[span.steps.clone()]
                .iter()
                .any(|step| step.dispatch.when.holds(&self.input) && step.shader == *shader);
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
            found.extend(of_op(&node.op).into_iter().map(wrong));
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
        Ok(Some(self.agreed(&rec, Some(right), device, &options, u32::MAX)?.into()))
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
        of.steps.iter().map(|step| (step.shader.clone(), step.dispatch.tensors(true).map(|t| t.id).collect())).collect()
    };
    let nodes =
        |of: &Planned| -> Vec<_> { of.nodes.iter().map(|node| (node.steps.clone(), node.parts.clone())).collect() };
    steps(a) == steps(b) && nodes(a) == nodes(b)
}

/// One percent more; from zero, a hundredth.
fn more(value: f32) -> f32 {
    if value == 0.0 { 0.01 } else { 1.01 * value }
}

/// The operation with each of its parameters changed. Shapes and forms of results are not
/// parameters. An operation without parameters is named, so that nobody forgets a new one.
fn of_op(op: &Primitive) -> Vec<(&'static str, Primitive)> {
    let op = match op {
        Primitive::Op(op) => op,
        Primitive::Product(_)
        | Primitive::PackQ8(_)
        | Primitive::PackF16(_)
        | Primitive::LevelF16(_)
        | Primitive::GatherSlots(_)
        | Primitive::MatmulInputTile128(_)
        | Primitive::MatmulWeightTile128(_)
        | Primitive::MatmulTile64Experts(_)
        | Primitive::MatmulVecQ8Experts(_)
        | Primitive::AttentionFlash(_)
        | Primitive::Tile32(_) => return vec![],
    };
    match op {
        Op::RmsNorm(of) => vec![("eps", RmsNorm { eps: more(of.eps), ..of.clone() }.into())],
        Op::Attention(of) => {
            let changed = |(name, attend)| (name, Attention { attend, ..of.clone() }.into());
            of_attend(of.attend).into_iter().map(changed).collect()
        }
        Op::AddWeighted(of) => {
            let changed = |weights| AddWeighted { weights, ..of.clone() }.into();
            let RowWeights { first, shift, .. } = of.weights;
            let mut all = vec![("shift", changed(RowWeights { shift: more(shift), ..of.weights }))];
            all.extend(first.checked_sub(1).map(|first| ("first", changed(RowWeights { first, ..of.weights }))));
            all
        }
        Op::MatchRms(of) => vec![("least", MatchRms { least: more(of.least), ..of.clone() }.into())],
        Op::GaussianTopK(of) => {
            vec![("multiplier", GaussianTopK { multiplier: more(of.multiplier), ..of.clone() }.into())]
        }
        Op::Scale(of) => vec![("factor", Scale { s: more(of.s), ..of.clone() }.into())],
        Op::Softcap(of) => vec![("cap", Softcap { cap: more(of.cap), ..of.clone() }.into())],
        Op::Embed(of) => vec![("scale", Embed { scale: more(of.scale), ..of.clone() }.into())],
        Op::Route(of) => vec![("normalize", Route { normalize: !of.normalize, ..of.clone() }.into())],
        Op::Geglu(of) => {
            of.start.checked_sub(1).map(|start| ("start", Geglu { start, ..of.clone() }.into())).into_iter().collect()
        }
        Op::MatmulExperts(of) => of
            .first
            .checked_sub(1)
            .map(|first| ("first", MatmulExperts { first, ..of.clone() }.into()))
            .into_iter()
            .collect(),
        Op::Matmul(_)
        | Op::Rope(_)
        | Op::KvAppend(_)
        | Op::Add(_)
        | Op::Mul(_)
        | Op::Silu(_)
        | Op::Gelu(_)
        | Op::Swiglu(_) => vec![],
        Op::Softmax(_) | Op::LogSoftmax(_) | Op::GatherRows(_) | Op::Argmax(_) | Op::TopK(_) | Op::GroupExperts(_) => {
            vec![]
        }
        Op::CombineExperts(_) | Op::MulSigmoid(_) | Op::Penalize(_) | Op::Sample(_) => vec![],
        Op::Dropout(of) => vec![
            ("rate", Dropout { rate: more(of.rate), ..of.clone() }.into()),
            ("tensor", Dropout { tensor: of.tensor + 1, ..of.clone() }.into()),
        ],
        Op::Backward(op) => of_derivative(op).into_iter().map(|(name, op)| (name, Primitive::Op(op))).collect(),
    }
}

/// The same for the operations of derivatives.
fn of_derivative(op: &Backward) -> Vec<(&'static str, Op)> {
    let attended = |of: &Attended| {
        of_attend(of.attend).into_iter().map(|(name, attend)| (name, Attended { attend, ..*of })).collect::<Vec<_>>()
    };
    match op {
        Backward::RmsNormBackward(of) => vec![("eps", RmsNormBackward { eps: more(of.eps), ..of.clone() }.into())],
        Backward::SoftcapBackward(of) => vec![("cap", SoftcapBackward { cap: more(of.cap), ..of.clone() }.into())],
        Backward::AttentionLse(lse) => {
            attended(&lse.of).into_iter().map(|(name, of)| (name, AttentionLse { of, ..lse.clone() }.into())).collect()
        }
        Backward::AttentionBackwardQ(back) => attended(&back.of)
            .into_iter()
            .map(|(name, of)| (name, AttentionBackwardQ { of, ..back.clone() }.into()))
            .collect(),
        Backward::AttentionBackwardKv(back) => attended(&back.of)
            .into_iter()
            .map(|(name, of)| (name, AttentionBackwardKv { of, ..back.clone() }.into()))
            .collect(),
        Backward::RmsNormWeightBackward(of) => {
            vec![("eps", RmsNormWeightBackward { eps: more(of.eps), ..of.clone() }.into())]
        }
        Backward::AddWeightedBackward(of) => {
            let RowWeights { first, shift, .. } = of.weights;
            let changed = |weights| AddWeightedBackward { weights, ..of.clone() }.into();
            let mut all = vec![("shift", changed(RowWeights { shift: more(shift), ..of.weights }))];
            all.extend(first.checked_sub(1).map(|first| ("first", changed(RowWeights { first, ..of.weights }))));
            all
        }
        Backward::MatchRmsBackward(of) => {
            vec![("least", MatchRmsBackward { least: more(of.least), ..of.clone() }.into())]
        }
        Backward::GaussianTopKBackward(of) => {
            vec![("multiplier", GaussianTopKBackward { multiplier: more(of.multiplier), ..of.clone() }.into())]
        }
        Backward::RouteBackward(of) => {
            vec![("normalize", RouteBackward { normalize: !of.normalize, ..of.clone() }.into())]
        }
        Backward::MatmulExpertsInput(of) => of
            .first
            .checked_sub(1)
            .map(|first| ("first", MatmulExpertsInput { first, ..of.clone() }.into()))
            .into_iter()
            .collect(),
        Backward::Adamw(of) => of_adamw(of),
        Backward::AttentionDelta(_) | Backward::CrossEntropy(_) | Backward::CrossEntropyBackward(_) => vec![],
        Backward::GatherRowsBackward(_) | Backward::GegluBackward(_) | Backward::SwigluBackward(_) => vec![],
        Backward::JoinColumns(_) | Backward::JoinRows(_) | Backward::MatmulInput(_) | Backward::MatmulWeight(_) => {
            vec![]
        }
        Backward::SiluBackward(_) | Backward::GeluBackward(_) | Backward::MulSigmoidBackward(_) => vec![],
        Backward::SoftmaxBackward(_) | Backward::LogSoftmaxBackward(_) | Backward::AddWeightedBackwardC(_) => vec![],
        Backward::CombineExpertsBackward(_)
        | Backward::SumSlots(_)
        | Backward::ColumnSum(_)
        | Backward::EmbedBackward(_) => vec![],
        Backward::SumSquares(_) | Backward::CountStep(_) => vec![],
        // The constants of its table are changed.
        Backward::RopeBackward(_) => vec![],
    }
}

fn of_adamw(of: &Adamw) -> Vec<(&'static str, Op)> {
    let AdamwSpec { beta1, beta2, eps, decay } = of.spec;
    let changed = |name, spec| (name, Adamw { spec, ..of.clone() }.into());
    vec![
        changed("beta1", AdamwSpec { beta1: 0.99 * beta1, ..of.spec }),
        changed("beta2", AdamwSpec { beta2: 0.99 * beta2, ..of.spec }),
        changed("eps", AdamwSpec { eps: 1.01 * eps, ..of.spec }),
        changed("decay", AdamwSpec { decay: 1.01 * decay, ..of.spec }),
    ]
}

fn of_attend(of: Attend) -> Vec<(&'static str, Attend)> {
    let mut all = vec![("scale", Attend { scale: more(of.scale), ..of })];
    if let Some(cap) = of.softcap {
        all.push(("softcap", Attend { softcap: Some(more(cap)), ..of }));
        all.push(("softcap lost", Attend { softcap: None, ..of }));
    }
    // Other changes of the mask are not valid recordings: a ring has only the rows of its window,
    // and only bidirectional recordings have the ends of rows.
    match of.mask {
        Mask::Window(n) => all.push(("window", Attend { mask: Mask::Window(n + 1), ..of })),
        Mask::Bidirectional => all.push(("mask", Attend { mask: Mask::Causal, ..of })),
        Mask::Causal => {}
    }
    all
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
