//! Gradients of a loss by low-rank factors of a model's weights.

use crate::batch::{Document, pack};
use crate::error::Error;
use crate::parameters::Parameters;
use crate::replay::replay;
use crate::tape::Tape;
use kernels::ops::Op;
use kernels::ops::backward::{CrossEntropy, cross_entropy, cross_entropy_backward, join_rows};
use kernels::{Counts, Input, Lead, Node, Plan, PlanOptions, Recorder, Shape, States, Tensor, Watch};
use model::arch::Logits;
use model::{FactorPair, Model};
use std::collections::HashMap;

/// Which values of the forward pass are kept for the derivatives.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Checkpointing {
    /// All.
    #[default]
    None,
    /// The values between layers. Every layer is computed again before its derivatives, with the
    /// same bits.
    Layer,
}

/// How gradients are computed.
#[derive(Clone, Debug)]
pub struct GradientOptions {
    /// Rows of a step: whole documents are packed into it.
    pub rows: u32,
    pub checkpointing: Checkpointing,
    /// Whether the derivative by the input of the first layer is computed as well.
    pub embedding: bool,
}

impl Default for GradientOptions {
    fn default() -> Self {
        Self { rows: 1024, checkpointing: Checkpointing::None, embedding: false }
    }
}

/// The loss of a batch.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    /// The mean over the targets of the batch, weighted, in nats.
    pub loss: f64,
    /// Number of targets with a loss.
    pub targets: u64,
    /// The loss of every target, in the order of the documents.
    pub each: Vec<f32>,
    /// The derivative by the input of the first layer, [rows, D] for all documents, if it was asked
    /// for.
    pub embedding: Vec<f32>,
}

/// Computes gradients by the factors of a model's weights, on the model's executor.
pub struct Gradients {
    plan: Plan,
    states: States,
    parameters: Parameters,
    vocabulary: u32,
    rows: u32,
    embedding: bool,
}

/// Bytes of logits and of their derivatives that exist at a time, at most.
const HEAD_BYTES: u64 = 1 << 30;

/// Rows that go through the head at a time: three values of `vocabulary` elements for each row.
fn head_rows(vocabulary: u32) -> u32 {
    let fit = HEAD_BYTES / (12 * u64::from(vocabulary));
    (fit as u32 / kernels::PART_ROWS * kernels::PART_ROWS).clamp(kernels::PART_ROWS, 512)
}

impl Gradients {
    /// Plans the gradients of `model` with `factors` added to its weights.
    ///
    /// # Errors
    /// [`Error::NoTarget`] and [`Error::Factors`] for factors that do not fit,
    /// [`Error::NoGradient`] and [`Error::NotDifferentiable`] for the model, and errors of the
    /// device.
    pub async fn new_async(model: &Model, factors: &[FactorPair], options: &GradientOptions) -> Result<Self, Error> {
        let parameters = Parameters::new(model.weights(), factors, &model.document_states())?;
        let rows = options.rows.next_multiple_of(kernels::PART_ROWS);
        let mut rec = Recorder::of_documents(Counts { step: rows, out: rows }, parameters.kinds());
        let trained = parameters.adapt(&mut rec);
        let (mut rec, logits) = model.documents_in(rec, Logits::Rows);
        let embedding = rec.taps().iter().find(|tap| tap.name == "embed").map(|tap| tap.tensor);
        let values: Vec<Tensor> = embedding.filter(|_| options.embedding).into_iter().collect();
        let nodes = rec.nodes().to_vec();
        let last = nodes.iter().rposition(|node| matches!(node.op, Op::GatherRows(_))).expect("logits of chosen rows");
        let (body, head) = nodes.split_at(last + 1);
        rec.truncate(body.len());
        // One value, or one per stream of Gemma 3n.
        let chosen: Vec<Tensor> =
            body.iter().filter_map(|node| if let Op::GatherRows(op) = &node.op { Some(op.y) } else { None }).collect();
        let vocabulary = model.summary().vocabulary;

        let mut tape = Tape::new(&mut rec, body, &trained, &values);
        let wanted: Vec<Tensor> = chosen.iter().copied().filter(|h| tape.wants(*h)).collect();
        let (mut losses, mut derivatives) = (vec![], vec![vec![]; wanted.len()]);
        for first in (0..rows).step_by(head_rows(vocabulary) as usize) {
            let part = |h: Tensor| h.rows_from(first, head_rows(vocabulary));
            let (loss, of_part) = through_head(tape.rec, head, [&chosen, &wanted], part, logits, &trained)?;
            losses.push(loss);
            derivatives.iter_mut().zip(of_part).for_each(|(all, one)| all.push(one));
        }
        let all = join_rows(tape.rec, losses);
        tape.rec.output(all);
        for (h, parts) in wanted.into_iter().zip(derivatives) {
            let joined = join_rows(tape.rec, parts);
            tape.add(h, |_| joined);
        }
        match options.checkpointing {
            Checkpointing::None => tape.walk(body)?,
            Checkpointing::Layer => by_layers(&mut tape, body)?,
        }
        for t in &values {
            let derivative = tape.of(*t).expect("a derivative by what is wanted");
            tape.rec.output(derivative);
        }
        rec.prune();
        let executor = model.executor();
        let mut states = States::new_async(executor, parameters.kinds(), 1, 1).await?;
        parameters.write(&mut states, factors);
        let plan = executor.plan_async(rec, model.weights(), &PlanOptions::training()).await?;
        Ok(Self { plan, states, parameters, vocabulary, rows, embedding: options.embedding })
    }

    /// The loss of a batch. Its gradients replace those of the batch before.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Id`] and [`Error::Lengths`] for documents, and errors of the
    /// device.
    pub async fn compute_async(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Loss, Error> {
        let packed = pack(documents, self.vocabulary, self.rows)?;
        self.parameters.clear(&mut self.states);
        let mut sum = Loss { targets: packed.targets, ..Loss::default() };
        for step in &packed.steps {
            let outputs = self.plan.run_async(&mut self.states, step, watch).await?.wait_async().await?;
            let each = outputs.f32(0).chunks_exact(2).map(|row| row[0]);
            sum.loss += each.clone().zip(&step.loss_weights).map(|(loss, &w)| f64::from(loss) * f64::from(w)).sum::<f64>();
            sum.each.extend(each);
            if self.embedding {
                sum.embedding.extend(outputs.f32(1));
            }
        }
        Ok(sum)
    }

    /// The gradients of the last batch, in the form of the factors.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn gradients_async(&self) -> Result<Vec<FactorPair>, Error> {
        self.parameters.gradients(&self.states).await
    }

    /// Bytes of the values between operations.
    #[must_use]
    pub fn intermediate_bytes(&self) -> u64 {
        self.plan.planned().map_or(0, kernels::Planned::intermediate_bytes)
    }

    /// Fills every intermediate with this word, for tests.
    #[doc(hidden)]
    pub fn poison(&mut self, word: u32) {
        self.plan.poison(word);
    }
}

/// Records the head, the loss and their derivatives for the `part` of the `chosen` rows. Returns the
/// losses, and the derivatives by the parts of the `wanted` values.
fn through_head(
    rec: &mut Recorder,
    head: &[Node<Op>],
    [chosen, wanted]: [&[Tensor]; 2],
    part: impl Fn(Tensor) -> Tensor,
    logits: Tensor,
    trained: &HashMap<kernels::Weight, kernels::State>,
) -> Result<(Tensor, Vec<Tensor>), Error> {
    let mut map: HashMap<u32, Tensor> = chosen.iter().map(|&h| (h.id(), part(h))).collect();
    let Shape { lead, rows, .. } = part(chosen[0]).shape;
    let of_part = |shape: Shape| match shape.lead {
        Lead::Out => Shape { lead, rows, ..shape },
        _ => shape,
    };
    let nodes = replay(rec, head, &mut map, of_part);
    rec.layer(None);
    let logits = map[&logits.id()];
    let [targets, weights] = [Input::Targets, Input::LossWeights].map(|input| part(rec.input(input)));
    let losses = cross_entropy(rec, logits, targets);
    let derivative = cross_entropy_backward(rec, &CrossEntropy { logits, targets, y: losses }, weights);
    let parts: Vec<Tensor> = wanted.iter().map(|&h| part(h)).collect();
    let mut tape = Tape::new(rec, &nodes, trained, &parts);
    tape.add(logits, |_| derivative);
    tape.walk(&nodes)?;
    let derivatives = parts.iter().map(|&part| tape.of(part).expect("a derivative by what the head reads")).collect();
    Ok((losses, derivatives))
}

/// Walks the body of a model in reverse, and records every layer again before its derivatives.
fn by_layers(tape: &mut Tape<'_>, body: &[Node<Op>]) -> Result<(), Error> {
    for segment in body.chunk_by(|a, b| a.layer == b.layer).rev() {
        if segment[0].layer.is_none() {
            tape.walk(segment)?;
            continue;
        }
        let mut map = HashMap::new();
        let again = replay(tape.rec, segment, &mut map, |shape| shape);
        tape.rename(&map);
        tape.walk(&again)?;
    }
    Ok(())
}
