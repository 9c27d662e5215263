//! Trained parameters and their gradients, as states of a recording.

use crate::error::Error;
use kernels::{LowRank, Recorder, State, StateKind, States, Weight, Weights};
use model::{FactorPair, Model};
use std::collections::{HashMap, HashSet};

/// What is trained.
#[derive(Clone, Debug)]
pub enum Trained {
    /// Low-rank factors beside the weights of the model, which stay as they are.
    Factors(Vec<FactorPair>),
    /// Weights of the model, by the names of its file. They become f32.
    Weights(Vec<String>),
}

impl Trained {
    /// Every weight of the model that can be trained: matrices, norms, biases, tied embeddings.
    #[must_use]
    pub fn all_weights(model: &Model) -> Self {
        let mut names: Vec<String> = model.weights().iter().map(|(name, _)| name.to_string()).collect();
        names.dedup();
        Self::Weights(names)
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
struct Held {
    name: String,
    shape: [u32; 2],
    held: [u32; 2],
    /// The states of the tensor and of its gradient.
    states: [usize; 2],
}

/// How the model reads trained tensors.
enum Read {
    /// As factors of a weight: the numbers of A and of B.
    Factors { weight: Weight, scale: f32, a: usize, b: usize },
    /// In place of a weight.
    Weight { weight: Weight, n: usize },
}

/// All trained parameters.
pub(crate) struct Parameters {
    held: Vec<Held>,
    reads: Vec<Read>,
    kinds: Vec<StateKind>,
    of_model: usize,
}

impl Parameters {
    /// The parameters, in states behind those of the model.
    pub fn new(weights: &Weights, trained: &Trained, model: &[StateKind]) -> Result<Self, Error> {
        let mut all = Self { held: vec![], reads: vec![], kinds: model.to_vec(), of_model: model.len() };
        let mut known: HashMap<&str, Vec<Weight>> = HashMap::new();
        weights.iter().for_each(|(name, weight)| known.entry(name).or_default().push(weight));
        let find = |target: &str| known.get(target).ok_or_else(|| Error::NoTarget { target: target.to_string() });
        match trained {
            Trained::Factors(factors) => {
                for pair in factors {
                    let weight = find(&pair.target)?[0];
                    check_factors(pair, weight)?;
                    let (target, rank, held) = (&pair.target, pair.rank, pair.rank.next_multiple_of(4));
                    let a = all.hold(format!("{target}.lora_a"), [rank, weight.cols], [held, weight.cols])?;
                    let b = all.hold(format!("{target}.lora_b"), [weight.rows, rank], [weight.rows, held])?;
                    all.reads.push(Read::Factors { weight, scale: pair.scale, a, b });
                }
            }
            Trained::Weights(names) => {
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
        Ok(all)
    }

    fn hold(&mut self, name: String, shape: [u32; 2], held: [u32; 2]) -> Result<usize, Error> {
        let words = held[0].checked_mul(held[1]).filter(|words| *words < 1 << 30);
        let words = words.ok_or_else(|| Error::NotTrained { target: name.clone(), reason: "in f32 it is larger than a buffer" })?;
        let states = [self.kinds.len(), self.kinds.len() + 1];
        self.kinds.extend([StateKind::Words(words); 2]);
        self.held.push(Held { name, shape, held, states });
        Ok(self.held.len() - 1)
    }

    /// The kinds of all states, those of the model first.
    pub fn kinds(&self) -> &[StateKind] {
        &self.kinds
    }

    /// Bytes of the tensors, and the same number for their gradients.
    pub fn bytes(&self) -> u64 {
        States::bytes_for(&self.kinds[self.of_model..], 1, 1) / 2
    }

    fn weight(&self, rec: &Recorder, n: usize) -> (Weight, State) {
        let Held { held: [rows, cols], states: [value, gradient], .. } = self.held[n];
        (rec.weight(rec.state(value), rows, cols), rec.state(gradient))
    }

    /// Adds the factors to the products that follow in a recording. Returns the states of their
    /// gradients.
    pub fn adapt(&self, rec: &mut Recorder) -> HashMap<Weight, State> {
        let mut gradients = HashMap::new();
        for read in &self.reads {
            if let Read::Factors { weight, scale, a, b } = *read {
                let [a, b] = [a, b].map(|n| self.weight(rec, n));
                rec.adapt(weight, LowRank { a: a.0, b: b.0, scale });
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
                let values = factors.iter().flat_map(|pair| [&pair.a, &pair.b]);
                self.held.iter().zip(values).for_each(|(held, values)| held.write(states, values));
            }
            Trained::Weights(_) => {
                for held in &self.held {
                    let file = model.file();
                    let tensor = file.tensor(&held.name).map_err(model::Error::from)?;
                    held.write(states, &file.dequantized(tensor).map_err(model::Error::from)?);
                }
            }
        }
        Ok(())
    }

    /// Sets all gradients to zero.
    pub fn clear(&self, states: &mut States) {
        for Held { held: [rows, cols], states: [_, gradient], .. } in &self.held {
            states.write_words(states.state(*gradient), 0, &vec![0; (rows * cols) as usize]);
        }
    }

    /// Reads the gradients.
    pub async fn gradients(&self, states: &States) -> Result<Vec<Parameter>, Error> {
        let mut all = vec![];
        for held in &self.held {
            all.push(held.read(states, held.states[1]).await?);
        }
        Ok(all)
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
    fn write(&self, states: &mut States, values: &[f32]) {
        let ([rows, cols], [_, wide]) = (self.shape, self.held);
        let mut words = vec![0; (self.held[0] * wide) as usize];
        for (row, to) in values.chunks_exact(cols as usize).zip(words.chunks_exact_mut(wide as usize)).take(rows as usize) {
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
        let row = |row: &[u8]| row[..4 * cols as usize].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let values = bytes.chunks_exact(4 * wide).take(rows as usize).flat_map(|bytes| -> Vec<f32> { row(bytes) }).collect();
        Ok(Parameter { name: self.name.clone(), rows, cols, values })
    }
}
