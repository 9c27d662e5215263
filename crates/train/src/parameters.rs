//! Trained parameters and their gradients, as states of a recording.

use crate::error::Error;
use kernels::{LowRank, Recorder, State, StateKind, States, Weight, Weights};
use model::FactorPair;
use std::collections::HashMap;

/// A trained pair: its weight, and the rank that its states hold. Rows of states end on 16 bytes,
/// so the rank is rounded up to a multiple of 4. The additional rows of A and columns of B are
/// zero, and so are their gradients.
struct Pair {
    weight: Weight,
    rank: u32,
    held: u32,
    scale: f32,
    target: String,
    /// The states of A, B and of their gradients.
    states: [usize; 4],
}

/// All trained parameters.
pub struct Parameters {
    pairs: Vec<Pair>,
    kinds: Vec<StateKind>,
}

impl Parameters {
    /// The parameters for these factors, in states behind those of the model.
    pub fn new(weights: &Weights, factors: &[FactorPair], model: &[StateKind]) -> Result<Self, Error> {
        let known: HashMap<&str, Weight> = weights.iter().collect();
        let (mut pairs, mut kinds) = (vec![], model.to_vec());
        for FactorPair { target, rank, scale, a, b } in factors {
            let weight = *known.get(target.as_str()).ok_or_else(|| Error::NoTarget { target: target.clone() })?;
            let fits = *rank > 0
                && a.len() as u64 == u64::from(*rank) * u64::from(weight.cols)
                && b.len() as u64 == u64::from(*rank) * u64::from(weight.rows);
            if !fits {
                let [a, b] = [[*rank, a.len() as u32 / (*rank).max(1)], [b.len() as u32 / (*rank).max(1), *rank]];
                return Err(Error::Factors { target: target.clone(), a, b, weight: [weight.rows, weight.cols] });
            }
            let held = rank.next_multiple_of(4);
            let states = [0, 1, 2, 3].map(|n| kinds.len() + n);
            let [a, b] = [held * weight.cols, weight.rows * held].map(StateKind::Words);
            kinds.extend([a, b, a, b]);
            pairs.push(Pair { weight, rank: *rank, held, scale: *scale, target: target.clone(), states });
        }
        Ok(Self { pairs, kinds })
    }

    /// The kinds of all states, those of the model first.
    pub fn kinds(&self) -> &[StateKind] {
        &self.kinds
    }

    /// Adds the factors to the products of a recording. Returns the states of their gradients.
    pub fn adapt(&self, rec: &mut Recorder) -> HashMap<Weight, State> {
        let mut gradients = HashMap::new();
        for &Pair { weight, held, scale, states, .. } in &self.pairs {
            let [a, b, of_a, of_b] = states.map(|n| rec.state(n));
            let (a, b) = (rec.weight(a, held, weight.cols), rec.weight(b, weight.rows, held));
            rec.adapt(weight, LowRank { a, b, scale });
            gradients.extend([(a, of_a), (b, of_b)]);
        }
        gradients
    }

    /// Writes the factors into the states.
    pub fn write(&self, states: &mut States, factors: &[FactorPair]) {
        for (pair, FactorPair { a, b, .. }) in self.pairs.iter().zip(factors) {
            let mut wide_a = a.clone();
            wide_a.resize((pair.held * pair.weight.cols) as usize, 0.0);
            let wide_b: Vec<f32> = b.chunks_exact(pair.rank as usize).flat_map(|row| widened(row, pair.held as usize)).collect();
            for (n, values) in [wide_a, wide_b].into_iter().enumerate() {
                let words: Vec<u32> = values.into_iter().map(f32::to_bits).collect();
                states.write_words(states.state(pair.states[n]), 0, &words);
            }
        }
    }

    /// Sets all gradients to zero.
    pub fn clear(&self, states: &mut States) {
        for n in self.pairs.iter().flat_map(|pair| &pair.states[2..]) {
            let StateKind::Words(words) = self.kinds[*n] else { unreachable!("parameters are words") };
            states.write_words(states.state(*n), 0, &vec![0; words as usize]);
        }
    }

    /// Reads the gradients, in the form of the factors.
    pub async fn gradients(&self, states: &States) -> Result<Vec<FactorPair>, Error> {
        let mut all = vec![];
        for pair in &self.pairs {
            let mut a = words(states, pair.states[2]).await?;
            a.truncate((pair.rank * pair.weight.cols) as usize);
            let wide = words(states, pair.states[3]).await?;
            let b = wide.chunks_exact(pair.held as usize).flat_map(|row| row[..pair.rank as usize].to_vec()).collect();
            all.push(FactorPair { target: pair.target.clone(), rank: pair.rank, scale: pair.scale, a, b });
        }
        Ok(all)
    }
}

fn widened(row: &[f32], to: usize) -> Vec<f32> {
    let mut row = row.to_vec();
    row.resize(to, 0.0);
    row
}

/// The words of a state, as f32.
async fn words(states: &States, n: usize) -> Result<Vec<f32>, Error> {
    let (state, mut bytes) = (states.state(n), vec![]);
    let each = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok::<(), kernels::Error>(())
    };
    states.read_async(state, 0, 0..states.rows(state), each).await?;
    Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}
