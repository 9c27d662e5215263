//! Runs a test and times it.

use super::Args;
use super::grid::{Kind, Test};
use crate::progress::Bar;
use model::{Checked, Error, GenerateOptions, Sampling, Session, SessionOptions};
use std::time::Instant;

/// What is measured with.
pub struct Bench<'a> {
    pub args: &'a Args,
    pub session: Session,
    /// Bytes of weights that one step reads.
    pub step_bytes: u64,
    /// Bytes of KV cache per position.
    pub position_bytes: u64,
}

/// A test's repetitions.
pub struct Measured {
    pub test: Test,
    /// Tokens per second of each repetition.
    pub rates: Vec<f64>,
}

impl Measured {
    /// Mean tokens per second.
    pub fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len() as f64
    }

    /// Sample standard deviation; 0 for one repetition.
    pub fn deviation(&self) -> f64 {
        if self.rates.len() < 2 {
            return 0.0;
        }
        let mean = self.mean();
        (self.rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (self.rates.len() - 1) as f64).sqrt()
    }
}

impl<'a> Bench<'a> {
    pub fn new(args: &'a Args, session: Session, checked: &Checked, options: &SessionOptions) -> Self {
        let one = SessionOptions { context: Some(1), ..options.clone() };
        let position_bytes = checked.needs(&one).map_or(0, |needs| needs.kv.0);
        Self { args, session, step_bytes: checked.recording(options, 1).work().weight_bytes, position_bytes }
    }

    /// Bytes that a test must read per second at this rate: the weights once a step, the cache of all positions before.
    pub fn bytes_per_second(&self, test: Test, tokens_per_second: f64) -> f64 {
        let tokens = f64::from(test.tokens());
        let (rows, positions) = match test.kind {
            Kind::Prompt(n) => (f64::from(n.min(self.args.chunk)), f64::from(test.depth) + tokens / 2.0),
            Kind::Generate(_) => (1.0, f64::from(test.depth.max(1)) + tokens / 2.0),
        };
        (self.step_bytes as f64 + positions * self.position_bytes as f64) * tokens_per_second / rows
    }

    /// Warms up, then measures.
    pub fn measure(&mut self, test: Test) -> Result<Measured, Error> {
        let repetitions = self.args.repetitions;
        let bar = Bar::count(test.to_string());
        self.session.reset();
        self.session.feed(&tokens(test.depth, self.session.model().summary().vocabulary, 1))?;
        self.session.prefill(None)?;
        let mut rates = vec![];
        for n in 0..=repetitions {
            let rate = self.once(test)?;
            bar.set(u64::from(n) + 1, u64::from(repetitions) + 1);
            if n > 0 {
                rates.push(rate);
            }
        }
        Ok(Measured { test, rates })
    }

    /// Tokens per second of one run from the test's depth.
    fn once(&mut self, test: Test) -> Result<f64, Error> {
        self.session.rollback(test.depth as usize);
        let vocabulary = self.session.model().summary().vocabulary;
        let steps = match test.kind {
            Kind::Prompt(n) => {
                self.session.feed(&tokens(n, vocabulary, 2))?;
                1
            }
            Kind::Generate(n) => {
                // Generation needs a token to begin from; at a depth it is the last one there, evaluated again.
                self.session.feed(&tokens(u32::from(test.depth == 0), vocabulary, 2))?;
                n
            }
        };
        let options = GenerateOptions {
            sampling: Sampling::greedy(),
            max_tokens: Some(steps as usize),
            ignore_end: true,
            ..GenerateOptions::default()
        };
        let began = Instant::now();
        let mut made = 0;
        for token in self.session.generate_with(options)? {
            token?;
            made += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        let counted = if matches!(test.kind, Kind::Prompt(_)) { test.tokens() } else { made };
        Ok(f64::from(counted) / seconds)
    }
}

/// Ids that look random and are the same in every run.
fn tokens(count: u32, vocabulary: u32, seed: u32) -> Vec<u32> {
    let next = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((u64::from(*state) * u64::from(vocabulary) >> 32) as u32)
    };
    std::iter::repeat_n((), count as usize).scan(seed, |state, ()| next(state)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_a_sample() {
        let test = Test { kind: Kind::Generate(1), depth: 0 };
        let measured = Measured { test, rates: vec![1.0, 2.0, 3.0] };
        assert_eq!((measured.mean(), measured.deviation()), (2.0, 1.0));
        assert_eq!(Measured { test, rates: vec![5.0] }.deviation(), 0.0);
    }

    #[test]
    fn ids_stay_inside_the_vocabulary() {
        let ids = tokens(1000, 17, 1);
        assert!(ids.len() == 1000 && (0..17).all(|id| ids.contains(&id)) && ids.iter().all(|&id| id < 17));
    }
}
