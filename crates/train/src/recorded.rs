//! The recording of a step of gradients: the forward pass, the head in parts, and the derivatives.

use crate::error::Error;
use crate::memory::{self, Memory};
use crate::method::{Lora, Method};
use crate::options::{Capture, Captured, Checkpointing, GradientOptions};
use crate::parameters::{Parameters, Trained, Use};
use crate::replay::replay;
use crate::tape::Tape;
use kernels::ops::Op;
use kernels::ops::backward::{CrossEntropy, cross_entropy, cross_entropy_backward, join_rows};
use kernels::{
    Counts, Executor, Input, Lead, Node, Phase, Recorder, Shape, State, StateKind, Tap, Tensor, Weight, Weights,
};
use model::arch::{Logits, Summary};
use model::{Checked, Model};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The parts of a model that a recording needs: of a loaded model, or of a checked file.
pub struct Subject<'a> {
    pub executor: &'a Executor,
    pub weights: &'a Arc<Weights>,
    pub summary: &'a Summary,
    states: Vec<StateKind>,
    documents: Box<dyn Fn(Recorder) -> (Recorder, Tensor) + 'a>,
}

impl<'a> From<&'a Model> for Subject<'a> {
    fn from(model: &'a Model) -> Self {
        let documents = Box::new(|rec| model.documents_in(rec, Logits::Rows));
        let (executor, weights, summary) = (model.executor(), model.weights(), model.summary());
        Self { executor, weights, summary, states: model.document_states(), documents }
    }
}

impl<'a> From<&'a Checked> for Subject<'a> {
    fn from(checked: &'a Checked) -> Self {
        let documents = Box::new(|rec| checked.documents_in(rec, Logits::Rows));
        let (executor, weights, summary) = (checked.executor(), checked.weights(), checked.summary());
        Self { executor, weights, summary, states: checked.document_states(), documents }
    }
}

/// A step of gradients as a recording. Its outputs are the losses, then the captures.
pub struct Recorded {
    pub rec: Recorder,
    pub parameters: Parameters,
    /// What the outputs after the losses are: a capture, and its layer.
    pub captures: Vec<(Capture, u32)>,
    /// What the outputs after the captures are: a value that is traced, and its layer.
    pub traced: Vec<(Capture, u32)>,
    pub checkpointing: Checkpointing,
    pub memory: Memory,
}

/// The rank of the factors that are tried where all weights do not fit.
const ADVISED_RANK: u32 = 16;

/// The steps that a recording is asked for.
pub struct Asked<'a> {
    pub trained: &'a Trained,
    pub options: &'a GradientOptions,
    pub parameters: Use,
    /// Bytes that can be allocated beside the weights, if they are known.
    pub free: Option<u64>,
}

impl Recorded {
    /// Records a step.
    pub fn new(subject: &Subject<'_>, asked: &Asked<'_>) -> Result<Self, Error> {
        let rows = asked.options.capacity();
        let memory = match Self::fitting(subject, asked, rows)? {
            Ok(recorded) => return Ok(recorded),
            Err(memory) => memory,
        };
        // Fewer rows, down to the fewest that steps have.
        let mut fewer = rows / 2;
        let fit = loop {
            if fewer < Tensor::PART_ROWS {
                break None;
            }
            if Self::fitting(subject, asked, fewer)?.is_ok() {
                break Some(fewer);
            }
            fewer /= 2;
        };
        let layers = asked.options.checkpointing == Checkpointing::None && Self::fits_by_layers(subject, asked)?;
        let factors = !matches!(asked.trained, Trained::Factors(_)) && Self::fits_with_factors(subject, asked)?;
        let (device, available) = (subject.executor.name(), asked.free.unwrap_or(0));
        Err(Error::TooLarge { device, memory, available, rows, layers, factors, fit })
    }

    /// Whether steps fit if layers are computed again.
    fn fits_by_layers(subject: &Subject<'_>, asked: &Asked<'_>) -> Result<bool, Error> {
        let options = &asked.options.clone().checkpointing(Checkpointing::Layer);
        Ok(Self::fitting(subject, &Asked { options, ..*asked }, options.capacity())?.is_ok())
    }

    /// Whether steps fit if low-rank factors are trained in place of all weights.
    fn fits_with_factors(subject: &Subject<'_>, asked: &Asked<'_>) -> Result<bool, Error> {
        let trained = &Method::from(Lora::new(ADVISED_RANK)).trained(subject.weights)?;
        let options = &asked.options.clone().checkpointing(Checkpointing::Auto);
        Ok(Self::fitting(subject, &Asked { trained, options, ..*asked }, options.capacity())?.is_ok())
    }

    /// A step of `rows` rows, or the memory that it needs if this is too much.
    fn fitting(subject: &Subject<'_>, asked: &Asked<'_>, rows: u32) -> Result<Result<Self, Memory>, Error> {
        let choices = match asked.options.checkpointing {
            Checkpointing::Auto => vec![Checkpointing::None, Checkpointing::Layer],
            one => vec![one],
        };
        let mut needed = Memory::default();
        for checkpointing in choices {
            let mut recorded = Self::with(subject, asked, rows, checkpointing)?;
            let weights = subject.weights.bytes();
            let kept = [recorded.parameters.bytes(), recorded.parameters.moment_bytes()];
            needed = Memory::of(&recorded.rec, kept, subject.executor, weights, &asked.options.plan())?;
            if asked.parameters.validation {
                let rec = losses(subject, &recorded.parameters, rows, asked.free)?;
                needed.validation = memory::of_validation(&rec, subject.executor, &asked.options.plan())?;
            }
            if asked.free.is_none_or(|free| needed.total() - weights <= free) {
                recorded.memory = needed;
                return Ok(Ok(recorded));
            }
        }
        Ok(Err(needed))
    }

    fn with(subject: &Subject<'_>, asked: &Asked<'_>, rows: u32, checkpointing: Checkpointing) -> Result<Self, Error> {
        let Asked { trained, options, free, .. } = *asked;
        let parameters = Parameters::new(subject.weights, trained, &subject.states, asked.parameters)?;
        let Forward { mut rec, gradients, body, head, chosen, logits } = Forward::new(subject, &parameters, rows)?;

        let recorded = asked_for(&rec, options.captures.iter().filter(|capture| !capture.is_made_backward()))?;
        let gradient =
            |(capture, tap): &(Capture, Tap)| Some(tap.tensor).filter(|_| capture.what == Captured::Gradient);
        let mut values: Vec<Tensor> = recorded.iter().filter_map(gradient).collect();
        if options.trace {
            values.extend(rec.taps().iter().map(|tap| tap.tensor));
        }
        rec.phase(Phase::Backward);
        let mut tape = Tape::new(&mut rec, &body, &gradients, &values);
        let wanted: Vec<Tensor> = chosen.iter().copied().filter(|h| tape.wants(*h)).collect();
        let (mut losses, mut derivatives) = (vec![], vec![vec![]; wanted.len()]);
        for part in parts(tape.rec, subject, free) {
            let (loss, of_part) = through_head(tape.rec, &head, [&chosen, &wanted], &part, logits, &gradients)?;
            losses.push(loss);
            derivatives.iter_mut().zip(of_part).for_each(|(all, one)| all.push(one));
        }
        let all = join_rows(tape.rec, losses);
        tape.rec.output(all);
        for (h, parts) in wanted.into_iter().zip(derivatives) {
            let joined = join_rows(tape.rec, parts);
            tape.add(h, |_| joined);
        }
        match checkpointing {
            Checkpointing::Layer => by_layers(&mut tape, &body)?,
            Checkpointing::None | Checkpointing::Auto => tape.walk(&body)?,
        }
        let taps = asked_for(tape.rec, options.captures.iter())?;
        for (capture, tap) in &taps {
            let value = match capture.what {
                Captured::Value => tap.tensor,
                // Nothing that has a loss reads the value.
                Captured::Gradient => tape
                    .of(tap.tensor)
                    .ok_or_else(|| Error::Capture { name: capture.to_string(), known: String::new() })?,
            };
            tape.rec.output(value);
        }
        let traced = if options.trace { trace(&mut tape) } else { vec![] };
        rec.prune();
        let captures = taps.into_iter().map(|(capture, tap)| (capture, tap.layer)).collect();
        Ok(Self { rec, parameters, captures, traced, checkpointing, memory: Memory::default() })
    }
}

/// A step that computes losses and no gradients, without dropout. Its output is the losses.
pub fn losses(subject: &Subject<'_>, parameters: &Parameters, rows: u32, free: Option<u64>) -> Result<Recorder, Error> {
    let Forward { mut rec, head, chosen, logits, .. } = Forward::new(subject, &parameters.without_dropout(), rows)?;
    let mut all = vec![];
    for part in parts(&rec, subject, free) {
        all.push(loss_of_part(&mut rec, &head, &chosen, &part, logits).1.y);
    }
    let all = join_rows(&mut rec, all);
    rec.output(all);
    rec.prune();
    Ok(rec)
}

/// The forward pass of a step, recorded up to the chosen rows of the last layer.
struct Forward {
    rec: Recorder,
    /// The states of the gradients of trained weights.
    gradients: HashMap<Weight, State>,
    /// The operations up to the chosen rows, which are recorded.
    body: Vec<Node<Op>>,
    /// The operations from the chosen rows to the logits, which are not.
    head: Vec<Node<Op>>,
    /// The chosen rows: one value, or one per stream of Gemma 3n.
    chosen: Vec<Tensor>,
    logits: Tensor,
}

impl Forward {
    fn new(subject: &Subject<'_>, parameters: &Parameters, rows: u32) -> Result<Self, Error> {
        let rows = rows.next_multiple_of(Tensor::PART_ROWS);
        let mut rec = Recorder::of_documents(Counts { step: rows, out: rows }, parameters.kinds());
        let mut gradients = parameters.adapt(&mut rec);
        let (mut rec, logits) = (subject.documents)(rec);
        gradients.extend(parameters.replace(&mut rec)?);
        let mut body = rec.nodes().to_vec();
        let last = body.iter().rposition(|node| matches!(node.op, Op::GatherRows(_))).expect("logits of chosen rows");
        let head = body.split_off(last + 1);
        rec.truncate(body.len());
        let gathered = |node: &Node<Op>| if let Op::GatherRows(op) = &node.op { Some(op.y) } else { None };
        let chosen = body.iter().filter_map(gathered).collect();
        Ok(Self { rec, gradients, body, head, chosen, logits })
    }
}

/// Some of the chosen rows: the first one, and their number.
struct Part {
    first: u32,
    rows: u32,
}

impl Part {
    fn of(&self, h: Tensor) -> Tensor {
        h.rows_from(self.first, self.rows)
    }
}

/// The parts in which the chosen rows of a recording go through the head.
fn parts(rec: &Recorder, subject: &Subject<'_>, free: Option<u64>) -> impl Iterator<Item = Part> + use<> {
    let rows = head_rows(subject.summary.vocabulary, free);
    (0..rec.capacity().out).step_by(rows as usize).map(move |first| Part { first, rows })
}

/// The named values that captures ask for, of each name by rising layers.
fn asked_for<'a>(rec: &Recorder, captures: impl Iterator<Item = &'a Capture>) -> Result<Vec<(Capture, Tap)>, Error> {
    let mut all = vec![];
    for capture in captures {
        let mut taps: Vec<Tap> = rec.taps().iter().filter(|tap| tap.name == capture.name).cloned().collect();
        taps.sort_by_key(|tap| tap.layer);
        let found = !taps.is_empty();
        all.extend(taps.into_iter().map(|tap| (capture.clone(), tap)));
        if !found {
            let known: BTreeSet<&str> = rec.taps().iter().map(|tap| tap.name).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::Capture { name: capture.name.clone(), known });
        }
    }
    Ok(all)
}

/// Makes outputs of every named value, and of the derivatives by them that are known. Returns what
/// they are, layer by layer.
fn trace(tape: &mut Tape<'_>) -> Vec<(Capture, u32)> {
    let mut taps = tape.rec.taps().to_vec();
    taps.sort_by_key(|tap| tap.layer);
    let mut traced = vec![];
    for tap in taps {
        tape.rec.output(tap.tensor);
        traced.push((Capture::value(tap.name), tap.layer));
        if let Some(derivative) = tape.of(tap.tensor) {
            tape.rec.output(derivative);
            traced.push((Capture::gradient(tap.name), tap.layer));
        }
    }
    traced
}

/// Bytes of logits and of their derivatives that exist at a time, at most: this many, and a quarter
/// of the free memory.
const HEAD_BYTES: u64 = 1 << 30;

/// Rows that go through the head at a time: three values of `vocabulary` elements for each row.
fn head_rows(vocabulary: u32, free: Option<u64>) -> u32 {
    let most = free.map_or(HEAD_BYTES, |free| HEAD_BYTES.min(free / 4));
    let fit = most / (12 * u64::from(vocabulary));
    (fit as u32 / Tensor::PART_ROWS * Tensor::PART_ROWS).clamp(Tensor::PART_ROWS, 512)
}

/// Records the head and the loss for a part of the `chosen` rows. Returns the operations of the
/// head, and the loss.
fn loss_of_part(
    rec: &mut Recorder,
    head: &[Node<Op>],
    chosen: &[Tensor],
    part: &Part,
    logits: Tensor,
) -> (Vec<Node<Op>>, CrossEntropy) {
    let mut map: HashMap<u32, Tensor> = chosen.iter().map(|&h| (h.id(), part.of(h))).collect();
    let Shape { lead, rows, .. } = part.of(chosen[0]).shape;
    let of_part = |shape: Shape| match shape.lead {
        Lead::Out => Shape { lead, rows, ..shape },
        _ => shape,
    };
    let nodes = replay(rec, head, &mut map, of_part);
    rec.layer(None);
    let logits = map[&logits.id()];
    let targets = part.of(rec.input(Input::Targets));
    let y = cross_entropy(rec, logits, targets);
    (nodes, CrossEntropy { logits, targets, y })
}

/// Records the head, the loss and their derivatives for a part of the `chosen` rows. Returns the
/// losses, and the derivatives by the parts of the `wanted` values.
fn through_head(
    rec: &mut Recorder,
    head: &[Node<Op>],
    [chosen, wanted]: [&[Tensor]; 2],
    part: &Part,
    logits: Tensor,
    gradients: &HashMap<Weight, State>,
) -> Result<(Tensor, Vec<Tensor>), Error> {
    let (nodes, loss) = loss_of_part(rec, head, chosen, part, logits);
    let weights = part.of(rec.input(Input::LossWeights));
    let derivative = cross_entropy_backward(rec, &loss, weights);
    let parts: Vec<Tensor> = wanted.iter().map(|&h| part.of(h)).collect();
    let mut tape = Tape::new(rec, &nodes, gradients, &parts);
    tape.add(loss.logits, |_| derivative);
    tape.walk(&nodes)?;
    let derivatives = parts.iter().map(|&part| tape.of(part).expect("a derivative by what the head reads")).collect();
    Ok((loss.y, derivatives))
}

/// Walks the body of a model in reverse, and records every layer again before its derivatives.
fn by_layers(tape: &mut Tape<'_>, body: &[Node<Op>]) -> Result<(), Error> {
    for segment in body.chunk_by(|a, b| a.stage == b.stage).rev() {
        if segment[0].stage.layer.is_none() {
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

#[cfg(test)]
mod tests {
    use super::head_rows;

    #[test]
    fn logits_take_a_gigabyte_at_most_and_a_quarter_of_what_is_free() {
        assert_eq!(head_rows(1024, None), 512);
        assert_eq!(head_rows(262_144, None), 320);
        assert!(12 * 262_144 * head_rows(262_144, None) <= 1 << 30);
        assert_eq!(head_rows(262_144, Some(2 << 30)), 128);
        assert_eq!(head_rows(262_144, Some(0)), 64);
    }
}
