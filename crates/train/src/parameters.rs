//! Trained parameters and their gradients, as states of a recording.

use crate::error::Error;
use crate::random;
use kernels::ops::backward::Moments;
use kernels::{Dropped, Lead, LowRank, Recorder, Shape, State, StateKind, States, Weight, Weights};
use model::{EMBEDDING, FactorPair, Model, OUTPUT, transpose};
use std::collections::{HashMap, HashSet};

/// What is trained.
#[derive(Clone, Debug)]
pub enum Trained {
    /// Low-rank factors beside the weights of the model, which stay as they are.
    Factors(Vec<FactorPair>),
    /// Weights of the model, by the names of its file. They become f32.
    Weights(Vec<String>),
    /// Weights of the model, by the names of its file, that start anew. Matrices start from normal
    /// random numbers with a deviation of 0.02, norms from one, biases from zero.
    Fresh { weights: Vec<String>, seed: u64 },
}

impl Trained {
    /// Every weight of the model that can be trained: matrices, norms, biases, tied embeddings.
    #[must_use]
    pub fn all_weights(model: &Model) -> Self {
        Self::Weights(Self::names_of(model.weights()))
    }

    /// The names of the weights of a model.
    pub(crate) fn names_of(weights: &Weights) -> Vec<String> {
        let mut names: Vec<String> = weights.iter().map(|(name, _)| name.to_string()).collect();
        names.dedup();
        names
    }
}

/// A trained tensor or its gradient, [rows, cols] row by row, f32. A vector has one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameter {
    /// The name of a weight of the file, or this name with `.lora_a` or `.lora_b`.
    pub name: String,
    pub rows: u32,
    pub cols: u32,
    pub values: Vec<f32>,
}

impl Parameter {
    /// The name in files of PEFT, or of transformers for a weight of a model of this architecture;
    /// `None` for a tensor that has no such name.
    #[must_use]
    pub fn peft_name(&self, architecture: &str) -> Option<String> {
        model::peft_name(architecture, &self.name)
    }
}

/// A trained tensor in its states. Rows of states end on 16 bytes, so a rank is rounded up to a
/// multiple of 4: `held` is the shape in the states. The additional elements are zero, and so are
/// their gradients.
#[derive(Clone)]
struct Held {
    name: String,
    shape: [u32; 2],
    held: [u32; 2],
    /// The states of the tensor and of its gradient.
    states: [usize; 2],
    /// The states of the moments of its gradient, if an optimizer keeps them.
    moments: Option<[usize; 2]>,
}

/// How the model reads trained tensors.
#[derive(Clone)]
enum Read {
    /// As factors of a weight: the numbers of A and of B.
    Factors { weight: Weight, scale: f32, a: usize, b: usize, of: Added },
    /// In place of a weight.
    Weight { weight: Weight, n: usize },
}

/// The use of a weight that its factors change.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Added {
    /// Products of a layer, with dropout.
    Layer,
    /// The product that gives logits. It is recorded in parts, so dropout would repeat.
    Head,
    /// Rows that are looked up. PEFT has no dropout there.
    Rows,
}

/// All trained parameters.
#[derive(Clone)]
pub(crate) struct Parameters {
    held: Vec<Held>,
    reads: Vec<Read>,
    kinds: Vec<StateKind>,
    /// The probability that an element of the rows that factors read becomes zero.
    dropout: f32,
}

/// What parameters are held for.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Use {
    /// Whether an optimizer keeps moments of the gradients.
    pub moments: bool,
    /// The probability that an element of the rows that factors read becomes zero.
    pub dropout: f32,
    /// Whether losses are computed without gradients, too.
    pub validation: bool,
}

/// The standard deviation of matrices that start from random numbers, as transformers' default.
const FRESH_DEVIATION: f64 = 0.02;

/// The number of the free input that decides which elements dropout sets to zero.
const DROPOUT_KEY: u32 = 0;

impl Parameters {
    /// The parameters, in states behind those of the model.
    pub fn new(weights: &Weights, trained: &Trained, model: &[StateKind], of: Use) -> Result<Self, Error> {
        let mut all = Self { held: vec![], reads: vec![], kinds: model.to_vec(), dropout: of.dropout };
        let mut known: HashMap<&str, Vec<Weight>> = HashMap::new();
        weights.iter().for_each(|(name, weight)| known.entry(name).or_default().push(weight));
        let find = |target: &str| known.get(target).ok_or_else(|| Error::NoTarget { target: target.to_string() });
        match trained {
            Trained::Factors(factors) => {
                for pair in factors {
                    let of = match pair.target.as_str() {
                        EMBEDDING => Added::Rows,
                        OUTPUT => Added::Head,
                        _ => Added::Layer,
                    };
                    let weight = find(&pair.target)
                        .or_else(|none| if of == Added::Head { find(EMBEDDING) } else { Err(none) })?[0];
                    check_factors(pair, weight)?;
                    let (target, rank, held) = (&pair.target, pair.rank, pair.rank.next_multiple_of(4));
                    let [shape, wide] = match of {
                        Added::Rows => [[weight.cols, rank], [weight.cols, held]],
                        _ => [[rank, weight.cols], [held, weight.cols]],
                    };
                    let a = all.hold(format!("{target}.lora_a"), shape, wide)?;
                    let b = all.hold(format!("{target}.lora_b"), [weight.rows, rank], [weight.rows, held])?;
                    all.reads.push(Read::Factors { weight, scale: pair.scale, a, b, of });
                }
            }
            Trained::Weights(names) | Trained::Fresh { weights: names, .. } => {
                for target in names {
                    let &[weight] = &find(target)?[..] else {
                        return Err(Error::NotTrained {
                            target: target.clone(),
                            reason: "the model reads parts of it as separate weights",
                        });
                    };
                    if weight.rows > 1 && !weight.cols.is_multiple_of(4) {
                        let reason = "the number of its columns is not a multiple of 4";
                        return Err(Error::NotTrained { target: target.clone(), reason });
                    }
                    let shape = [weight.rows, weight.cols];
                    let n = all.hold(target.clone(), shape, shape)?;
                    all.reads.push(Read::Weight { weight, n });
                }
            }
        }
        if of.moments {
            for held in &mut all.held {
                held.moments = Some([all.kinds.len(), all.kinds.len() + 1]);
                all.kinds.extend([StateKind::Words(held.words()); 2]);
            }
        }
        Ok(all)
    }

    fn hold(&mut self, name: String, shape: [u32; 2], held: [u32; 2]) -> Result<usize, Error> {
        let words = held[0].checked_mul(held[1]).filter(|words| *words < 1 << 30);
        let words = words
            .ok_or_else(|| Error::NotTrained { target: name.clone(), reason: "in f32 it is larger than a buffer" })?;
        let states = [self.kinds.len(), self.kinds.len() + 1];
        self.kinds.extend([StateKind::Words(words); 2]);
        self.held.push(Held { name, shape, held, states, moments: None });
        Ok(self.held.len() - 1)
    }

    /// The kinds of all states, those of the model first.
    pub fn kinds(&self) -> &[StateKind] {
        &self.kinds
    }

    /// Bytes of the tensors, and the same number for their gradients.
    pub fn bytes(&self) -> u64 {
        let kinds: Vec<StateKind> = self.held.iter().map(|held| StateKind::Words(held.words())).collect();
        States::bytes_for(&kinds, 1, 1)
    }

    /// These parameters without dropout.
    pub fn without_dropout(&self) -> Self {
        Self { dropout: 0.0, ..self.clone() }
    }

    /// Number of trained elements.
    pub fn elements(&self) -> u64 {
        self.held.iter().map(|held| u64::from(held.shape[0]) * u64::from(held.shape[1])).sum()
    }

    /// Bytes of the moments of all gradients.
    pub fn moment_bytes(&self) -> u64 {
        if self.held.iter().any(|held| held.moments.is_some()) { 2 * self.bytes() } else { 0 }
    }

    /// The free inputs of a step, where `key` decides which elements dropout sets to zero.
    pub fn host_inputs(&self, key: [u32; 2]) -> Vec<Vec<f32>> {
        if self.dropout > 0.0 { vec![key.map(f32::from_bits).to_vec()] } else { vec![] }
    }

    /// Every parameter with its gradient and its moments in a recording, and whether it is a vector
    /// of the model.
    pub fn moments<'a>(&'a self, rec: &'a Recorder) -> impl Iterator<Item = (Moments, bool)> + 'a {
        self.held.iter().map(|held| {
            let ([p, gradient], [m, v]) = (held.states, held.moments.expect("parameters with moments"));
            let [p, gradient, m, v] = [p, gradient, m, v].map(|n| rec.state(n));
            (Moments { p, gradient, m, v }, held.is_vector())
        })
    }

    fn weight(&self, rec: &Recorder, n: usize) -> (Weight, State) {
        let Held { held: [rows, cols], states: [value, gradient], .. } = self.held[n];
        (rec.weight(rec.state(value), rows, cols), rec.state(gradient))
    }

    /// Adds the factors to the products that follow in a recording. Returns the states of their
    /// gradients.
    pub fn adapt(&self, rec: &mut Recorder) -> HashMap<Weight, State> {
        let mut gradients = HashMap::new();
        let key = (self.dropout > 0.0).then(|| rec.host_input(DROPOUT_KEY, Shape::new(Lead::Fixed, 1, 2)));
        for (tensor, read) in (0..).zip(&self.reads) {
            if let Read::Factors { weight, scale, a, b, of } = *read {
                let [a, b] = [a, b].map(|n| self.weight(rec, n));
                let with = LowRank { a: a.0, b: b.0, scale };
                let dropped = key.map(|key| Dropped { rate: self.dropout, key, tensor });
                match of {
                    Added::Layer => rec.adapt_dropped(weight, with, dropped),
                    Added::Head => rec.adapt(weight, with),
                    Added::Rows => rec.adapt_rows(weight, with),
                }
                gradients.extend([a, b]);
            }
        }
        gradients
    }

    /// Puts the trained weights in the place of the model's in the operations of a recording.
    /// Returns the states of their gradients.
    ///
    /// # Errors
    /// [`Error::NotTrained`] for experts, and for a weight that a recording reads in a form of its
    /// own.
    pub fn replace(&self, rec: &mut Recorder) -> Result<HashMap<Weight, State>, Error> {
        let (mut gradients, mut replaced) = (HashMap::new(), HashMap::new());
        for read in &self.reads {
            if let Read::Weight { weight, n } = *read {
                let (by, gradient) = self.weight(rec, n);
                gradients.insert(by, gradient);
                replaced.insert(weight, (by, n));
            }
        }
        for node in rec.nodes() {
            let reason = match node.op {
                kernels::ops::Op::MatmulExperts(_) => "experts are not trained",
                kernels::ops::Op::Route(_) => "factors of experts are not trained",
                _ => continue,
            };
            if let Some((_, n)) = node.op.weights().iter().find_map(|w| replaced.get(w)) {
                return Err(Error::NotTrained { target: self.held[*n].name.clone(), reason });
            }
        }
        let read: HashSet<Weight> = rec.nodes().iter().flat_map(|node| node.op.weights()).collect();
        for of in &self.reads {
            let (Read::Factors { a: n, .. } | Read::Weight { n, .. }) = *of;
            let found = match of {
                Read::Factors { .. } => read.contains(&self.weight(rec, n).0),
                Read::Weight { weight, .. } => read.contains(weight),
            };
            if !found {
                let reason = "no product of the model takes factors there, or no operation reads it";
                return Err(Error::NotTrained { target: self.held[n].name.clone(), reason });
            }
        }
        rec.each_operation(|op| {
            op.each_weight(&mut |w| {
                if let Some((by, _)) = replaced.get(w) {
                    *w = *by;
                }
            });
        });
        Ok(gradients)
    }

    /// Writes the first values into the states.
    pub fn write(&self, states: &mut States, trained: &Trained, model: &Model) -> Result<(), Error> {
        match trained {
            Trained::Factors(factors) => {
                for (pair, held) in factors.iter().zip(self.held.chunks_exact(2)) {
                    held[0].write(
                        states,
                        &if pair.target == EMBEDDING {
                            transpose(&pair.a, held[0].shape[0] as usize)
                        } else {
                            pair.a.clone()
                        },
                    );
                    held[1].write(states, &pair.b);
                }
            }
            Trained::Weights(_) => {
                for held in &self.held {
                    let file = model.file();
                    let tensor = file.tensor(&held.name).map_err(model::Error::from)?;
                    held.write(states, &file.dequantized(tensor).map_err(model::Error::from)?);
                }
            }
            Trained::Fresh { seed, .. } => self.held.iter().for_each(|held| held.write(states, &held.fresh(*seed))),
        }
        Ok(())
    }

    /// Sets all gradients to zero.
    pub fn clear(&self, states: &mut States) {
        self.held.iter().for_each(|held| states.clear(states.state(held.states[1])));
    }

    /// Reads the gradients.
    pub async fn gradients(&self, states: &States) -> Result<Vec<Parameter>, Error> {
        self.read(states, |held| held.states[1]).await
    }

    /// Reads the parameters.
    pub async fn values(&self, states: &States) -> Result<Vec<Parameter>, Error> {
        self.read(states, |held| held.states[0]).await
    }

    async fn read(&self, states: &States, which: impl Fn(&Held) -> usize) -> Result<Vec<Parameter>, Error> {
        let mut all = vec![];
        for held in &self.held {
            all.push(held.read(states, which(held)).await?);
        }
        Ok(all)
    }

    /// The tensors that a checkpoint keeps: the name and the state of every parameter and of its
    /// moments, with the number of its words.
    pub fn kept(&self) -> Vec<(String, usize, u32)> {
        let of = |held: &Held| {
            let [m, v] = held.moments.expect("parameters with moments");
            [("p", held.states[0]), ("m", m), ("v", v)]
                .map(|(what, n)| (format!("{what}.{}", held.name), n, held.words()))
        };
        self.held.iter().flat_map(of).collect()
    }
}

fn check_factors(pair: &FactorPair, weight: Weight) -> Result<(), Error> {
    let FactorPair { target, rank, a, b, .. } = pair;
    let fits = *rank > 0
        && a.len() as u64 == u64::from(*rank) * u64::from(weight.cols)
        && b.len() as u64 == u64::from(*rank) * u64::from(weight.rows);
    if fits {
        return Ok(());
    }
    let rank = (*rank).max(1);
    let [a, b] = [[rank, a.len() as u32 / rank], [b.len() as u32 / rank, rank]];
    Err(Error::Factors { target: target.clone(), a, b, weight: [weight.rows, weight.cols] })
}

impl Held {
    fn words(&self) -> u32 {
        self.held[0] * self.held[1]
    }

    /// Whether this is a norm, a bias or another vector of a model.
    fn is_vector(&self) -> bool {
        self.shape[0] == 1 && ![".lora_a", ".lora_b"].iter().any(|side| self.name.ends_with(side))
    }

    /// The first values of a weight that is trained from nothing.
    fn fresh(&self, seed: u64) -> Vec<f32> {
        let len = self.shape[0] * self.shape[1];
        match () {
            () if self.name.ends_with(".bias") => vec![0.0; len as usize],
            () if self.is_vector() => vec![1.0; len as usize],
            () => (0..len).map(|i| (FRESH_DEVIATION * random::normal(seed, &self.name, i)) as f32).collect(),
        }
    }

    fn write(&self, states: &mut States, values: &[f32]) {
        let ([rows, cols], [_, wide]) = (self.shape, self.held);
        let mut words = vec![0; (self.held[0] * wide) as usize];
        for (row, to) in
            values.chunks_exact(cols as usize).zip(words.chunks_exact_mut(wide as usize)).take(rows as usize)
        {
            to.iter_mut().zip(row).for_each(|(to, v)| *to = v.to_bits());
        }
        states.write_words(states.state(self.states[0]), 0, &words);
    }

    /// Reads one of its states.
    async fn read(&self, states: &States, n: usize) -> Result<Parameter, Error> {
        let (state, mut bytes) = (states.state(n), vec![]);
        let each = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok::<(), kernels::Error>(())
        };
        states.read_async(state, 0, 0..states.rows(state), each).await?;
        let ([rows, cols], wide) = (self.shape, self.held[1] as usize);
        let row = |row: &[u8]| {
            row[..4 * cols as usize].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        };
        let values =
            bytes.chunks_exact(4 * wide).take(rows as usize).flat_map(|bytes| -> Vec<f32> { row(bytes) }).collect();
        Ok(Parameter { name: self.name.clone(), rows, cols, values })
    }
}
