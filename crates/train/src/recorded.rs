//! The recording of a step of gradients: the forward pass, the head in parts, and the derivatives.

use crate::error::Error;
use crate::memory::Memory;
use crate::options::{Capture, Captured, Checkpointing, GradientOptions};
use crate::parameters::{Parameters, Trained};
use crate::replay::replay;
use crate::tape::Tape;
use kernels::ops::Op;
use kernels::ops::backward::{CrossEntropy, cross_entropy, cross_entropy_backward, join_rows};
use kernels::{Counts, Executor, Input, Lead, Node, Phase, Recorder, Shape, State, StateKind, Tap, Tensor, Weight, Weights};
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
    pub checkpointing: Checkpointing,
    pub memory: Memory,
}

impl Recorded {
    /// Records a step. `free` is the number of bytes that can be allocated beside the weights, if
    /// it is known.
    pub fn new(subject: &Subject<'_>, trained: &Trained, options: &GradientOptions, free: Option<u64>) -> Result<Self, Error> {
        let choices = match options.checkpointing {
            Checkpointing::Auto => vec![Checkpointing::None, Checkpointing::Layer],
            one => vec![one],
        };
        let mut last = None;
        for checkpointing in choices {
            let mut recorded = Self::with(subject, trained, options, checkpointing, free)?;
            let (weights, parameters) = (subject.weights.bytes(), recorded.parameters.bytes());
            recorded.memory = Memory::of(&recorded.rec, subject.executor, weights, parameters, &options.plan())?;
            let fits = free.is_none_or(|free| recorded.memory.total() - weights <= free);
            if fits {
                return Ok(recorded);
            }
            last = Some(recorded);
        }
        let Recorded { memory, checkpointing, .. } = last.expect("at least one choice");
        Err(Error::TooLarge {
            device: subject.executor.name(),
            memory,
            available: free.unwrap_or(0),
            rows: options.rows,
            layers: checkpointing == Checkpointing::Layer,
        })
    }

    fn with(
        subject: &Subject<'_>,
        trained: &Trained,
        options: &GradientOptions,
        checkpointing: Checkpointing,
        free: Option<u64>,
    ) -> Result<Self, Error> {
        let parameters = Parameters::new(subject.weights, trained, &subject.states)?;
        let rows = options.rows.next_multiple_of(kernels::PART_ROWS);
        let mut rec = Recorder::of_documents(Counts { step: rows, out: rows }, parameters.kinds());
        let mut gradients = parameters.adapt(&mut rec);
        let (mut rec, logits) = (subject.documents)(rec);
        gradients.extend(parameters.replace(&mut rec)?);
        let nodes = rec.nodes().to_vec();
        let last = nodes.iter().rposition(|node| matches!(node.op, Op::GatherRows(_))).expect("logits of chosen rows");
        let (body, head) = nodes.split_at(last + 1);
        rec.truncate(body.len());
        // One value, or one per stream of Gemma 3n.
        let gathered = |node: &Node<Op>| if let Op::GatherRows(op) = &node.op { Some(op.y) } else { None };
        let chosen: Vec<Tensor> = body.iter().filter_map(gathered).collect();

        let recorded = asked_for(&rec, options.captures.iter().filter(|capture| !capture.is_made_backward()))?;
        let gradient = |(capture, tap): &(Capture, Tap)| Some(tap.tensor).filter(|_| capture.what == Captured::Gradient);
        let values: Vec<Tensor> = recorded.iter().filter_map(gradient).collect();
        rec.phase(Phase::Backward);
        let mut tape = Tape::new(&mut rec, body, &gradients, &values);
        let wanted: Vec<Tensor> = chosen.iter().copied().filter(|h| tape.wants(*h)).collect();
        let (mut losses, mut derivatives) = (vec![], vec![vec![]; wanted.len()]);
        let part_rows = head_rows(subject.summary.vocabulary, free);
        for first in (0..rows).step_by(part_rows as usize) {
            let part = |h: Tensor| h.rows_from(first, part_rows);
            let (loss, of_part) = through_head(tape.rec, head, [&chosen, &wanted], part, logits, &gradients)?;
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
            Checkpointing::Layer => by_layers(&mut tape, body)?,
            Checkpointing::None | Checkpointing::Auto => tape.walk(body)?,
        }
        let taps = asked_for(tape.rec, options.captures.iter())?;
        for (capture, tap) in &taps {
            let value = match capture.what {
                Captured::Value => tap.tensor,
                // Nothing that has a loss reads the value.
                Captured::Gradient => {
                    tape.of(tap.tensor).ok_or_else(|| Error::Capture { name: capture.to_string(), known: String::new() })?
                }
            };
            tape.rec.output(value);
        }
        rec.prune();
        let captures = taps.into_iter().map(|(capture, tap)| (capture, tap.layer)).collect();
        Ok(Self { rec, parameters, captures, checkpointing, memory: Memory::default() })
    }
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

/// Bytes of logits and of their derivatives that exist at a time, at most: this many, and a quarter
/// of the free memory.
const HEAD_BYTES: u64 = 1 << 30;

/// Rows that go through the head at a time: three values of `vocabulary` elements for each row.
fn head_rows(vocabulary: u32, free: Option<u64>) -> u32 {
    let most = free.map_or(HEAD_BYTES, |free| HEAD_BYTES.min(free / 4));
    let fit = most / (12 * u64::from(vocabulary));
    (fit as u32 / kernels::PART_ROWS * kernels::PART_ROWS).clamp(kernels::PART_ROWS, 512)
}

/// Records the head, the loss and their derivatives for the `part` of the `chosen` rows. Returns
/// the losses, and the derivatives by the parts of the `wanted` values.
fn through_head(
    rec: &mut Recorder,
    head: &[Node<Op>],
    [chosen, wanted]: [&[Tensor]; 2],
    part: impl Fn(Tensor) -> Tensor,
    logits: Tensor,
    gradients: &HashMap<Weight, State>,
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
    let mut tape = Tape::new(rec, &nodes, gradients, &parts);
    tape.add(logits, |_| derivative);
    tape.walk(&nodes)?;
    let derivatives = parts.iter().map(|&part| tape.of(part).expect("a derivative by what the head reads")).collect();
    Ok((losses, derivatives))
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
