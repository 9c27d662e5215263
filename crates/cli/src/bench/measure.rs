//! Runs a test and times it.

use super::args::Args;
use super::engine::Engine;
use super::grid::{Kind, Test};
use crate::open::Loaded;
use crate::progress::Bar;
use anyhow::Result;
use kernels::Work;
use kernels::measure::{self, Measured as Roof};
use kernels::{Executor, Precision, Profile};
use model::{Applied, Checked, Error, Model, SessionOptions};
use std::time::Instant;
use train::Trainer;

/// The loaded model and the options of the tests.
pub struct Bench<'a> {
    pub args: &'a Args,
    pub model: Model,
    pub adapters: Vec<Applied>,
    pub(super) options: SessionOptions,
    /// The number of sequences of the last test, and its engine.
    engine: Option<(u32, Engine)>,
    /// The last test of training, and its trainer.
    pub(super) trainer: Option<(Test, Trainer)>,
    checked: Checked,
    /// Bytes of KV cache per position.
    position_bytes: f64,
    /// The measured limits of the device; `None` for the CPU.
    roof: Option<Roof>,
}

/// The results of a test.
pub struct Measured {
    pub test: Test,
    /// Tokens per second of each repetition, all sequences together.
    pub rates: Vec<f64>,
}

impl Measured {
    /// Median of the tokens per second. With an even number of repetitions, it is the mean of the
    /// two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.rates.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
    }

    /// The least and the most tokens per second.
    pub fn range(&self) -> (f64, f64) {
        self.rates.iter().fold((f64::INFINITY, 0.0), |(least, most), &rate| (least.min(rate), most.max(rate)))
    }
}

/// The work of one step.
pub struct Step {
    pub tokens: f64,
    pub bytes: f64,
    pub flops: f64,
}

impl<'a> Bench<'a> {
    /// Measures the device first, which takes one or two seconds.
    pub fn new(args: &'a Args, loaded: Loaded, options: SessionOptions) -> Result<Self, Error> {
        let Loaded { model, checked, adapters, preparing, .. } = loaded;
        // No pipelines may be compiled during a measurement.
        preparing.finish();
        let one = options.clone().context(Some(1));
        let position_bytes = checked.needs(&one)?.kv.0 as f64;
        let roof = match model.executor() {
            Executor::Cpu => None,
            Executor::Gpu(device) => {
                let _bar = Bar::count(format!("measuring {}", device.adapter().name));
                Some(measure::measure(device)?)
            }
        };
        Ok(Self { args, model, adapters, options, engine: None, trainer: None, checked, position_bytes, roof })
    }

    /// The bytes and operations of one step of a test, and the number of tokens it counts for.
    fn step(&self, test: Test) -> Step {
        let work = |rows| -> Work { self.checked.recording(&self.options, rows).work() };
        let (rows, length, flops) = match test.kind {
            Kind::Prompt(n) => (n.min(self.options.chunk), n, work(n.min(self.options.chunk)).flops as f64),
            Kind::Generate(n) => (test.sequences, n, work(1).flops as f64 * f64::from(test.sequences)),
            Kind::Train(_) => {
                // The backward pass may find weights in a cache of the device: each counts once.
                let bytes = work(1).weight_bytes as f64;
                return Step { tokens: test.tokens(), bytes, flops: self.training_flops(test) };
            }
        };
        let positions = f64::from(test.sequences) * (f64::from(test.depth) + f64::from(length) / 2.0);
        let bytes = work(1).weight_bytes as f64 + positions * self.position_bytes;
        Step { tokens: f64::from(rows), bytes, flops }
    }

    /// The gigabytes (10^9 bytes) read per second at this rate: in every step the weights, and the
    /// KV cache of each sequence.
    pub fn gb_per_second(&self, measured: &Measured) -> f64 {
        let step = self.step(measured.test);
        step.bytes * measured.median() / step.tokens / 1e9
    }

    /// The shortest possible time of a step, by the device's bandwidth or arithmetic, as a share of
    /// the measured time. In plans that round, products may go through cooperative matrices.
    pub fn roof_share(&self, measured: &Measured) -> Option<f64> {
        let (step, roof) = (self.step(measured.test), self.roof.as_ref()?);
        let fast = self.options.plan.precision == Precision::Fast;
        let least_s = roof.roof().nanoseconds(step.bytes, step.flops, fast) / 1e9;
        Some(least_s * measured.median() / step.tokens)
    }

    /// Runs the test once to warm up, then measures the repetitions.
    pub fn measure(&mut self, test: Test) -> Result<Measured> {
        let rates = match test.kind {
            Kind::Train(n) => self.training_rates(test, n)?,
            _ => self.args.source.named(self.rates(test))?,
        };
        Ok(Measured { test, rates })
    }

    fn rates(&mut self, test: Test) -> Result<Vec<f64>, Error> {
        let repetitions = self.args.repetitions;
        let bar = Bar::count(test.to_string());
        let vocabulary = self.model.summary().vocabulary;
        let (before, steps) = match test.kind {
            Kind::Prompt(n) => (n, 1),
            // Generation needs a token to begin from. At a depth it is the last token of the
            // context, evaluated again.
            Kind::Generate(n) | Kind::Train(n) => (u32::from(test.depth == 0), n),
        };
        let engine = self.engine(test.sequences)?;
        engine.begin(&|sequence| tokens(test.depth, vocabulary, 1, sequence))?;
        let mut rates = vec![];
        for n in 0..=repetitions {
            engine.rewind(test.depth);
            let began = Instant::now();
            engine.run(&|sequence| tokens(before, vocabulary, 2, sequence), steps)?;
            if n > 0 {
                rates.push(test.tokens() / began.elapsed().as_secs_f64());
            }
            bar.set(u64::from(n) + 1, u64::from(repetitions) + 1);
        }
        Ok(rates)
    }

    /// Times the dispatches of one step: of the first chunk of a prompt, or of the middle token of
    /// a generation, because its context has the average length.
    pub fn profile(&mut self, test: Test) -> Result<Profile> {
        let (depth, rows) = match test.kind {
            Kind::Prompt(n) => (test.depth, n),
            Kind::Generate(n) => (test.depth + n / 2, 1),
            Kind::Train(n) => return self.training_profile(test, n),
        };
        let profile = self.profile_of(test.sequences, depth, rows);
        self.args.source.named(profile)
    }

    fn profile_of(&mut self, sequences: u32, depth: u32, rows: u32) -> Result<Profile, Error> {
        let vocabulary = self.model.summary().vocabulary;
        let engine = self.engine(sequences)?;
        engine.begin(&|sequence| tokens(depth, vocabulary, 1, sequence))?;
        engine.profile(depth, &|sequence| tokens(rows, vocabulary, 2, sequence))
    }

    /// The profile as text, with its share of the time that a step takes by the clock.
    pub fn profiled(&self, profile: &Profile, measured: &Measured) -> String {
        let roof = self.roof.as_ref().map(Roof::roof);
        let clock_us = self.step(measured.test).tokens / measured.median() * 1e6;
        let share = 100.0 * profile.nanoseconds() / 1e3 / clock_us;
        let rest = "the rest is host time and waiting";
        format!(
            "{}\nby the clock a step took {clock_us:.1} us; the kernels above are {share:.1}% of that, {rest}",
            profile.table(roof.as_ref())
        )
    }

    /// The engine for this number of sequences. An engine for another number is dropped first, to
    /// free its cache.
    fn engine(&mut self, sequences: u32) -> Result<&mut Engine, Error> {
        if self.engine.as_ref().is_none_or(|(number, _)| *number != sequences) {
            self.engine = None;
            self.engine = Some((sequences, Engine::new(&self.model, &self.options, sequences, &self.adapters)?));
        }
        Ok(&mut self.engine.as_mut().expect("just made").1)
    }
}

/// Pseudo-random ids, the same in every run. Sequences of a batch have different ids, so that they
/// choose different experts.
pub(super) fn tokens(count: u32, vocabulary: u32, seed: u32, sequence: u32) -> Vec<u32> {
    let seed = seed ^ sequence.wrapping_mul(0x9E37_79B9);
    let next = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(((u64::from(*state) * u64::from(vocabulary)) >> 32) as u32)
    };
    std::iter::repeat_n((), count as usize).scan(seed, |state, ()| next(state)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Test = Test { kind: Kind::Generate(1), depth: 0, sequences: 1 };

    #[test]
    fn the_median_stands_between_the_least_and_the_most() {
        let measured = |rates: &[f64]| Measured { test: TEST, rates: rates.to_vec() };
        assert_eq!((measured(&[3.0, 1.0, 9.0]).median(), measured(&[3.0, 1.0, 9.0]).range()), (3.0, (1.0, 9.0)));
        assert_eq!((measured(&[5.0]).median(), measured(&[5.0]).range()), (5.0, (5.0, 5.0)));
        assert_eq!(measured(&[4.0, 1.0, 2.0, 9.0]).median(), 3.0);
    }

    #[test]
    fn sequences_of_a_batch_hold_different_tokens() {
        let all: Vec<Vec<u32>> = (0..64).map(|sequence| tokens(8, 150_000, 2, sequence)).collect();
        for (n, ids) in all.iter().enumerate() {
            assert!(all[..n].iter().all(|other| other[0] != ids[0] && other != ids), "{n}: {ids:?}");
        }
    }

    #[test]
    fn ids_stay_inside_the_vocabulary() {
        let ids = tokens(1000, 17, 1, 0);
        assert!(ids.len() == 1000 && (0..17).all(|id| ids.contains(&id)) && ids.iter().all(|&id| id < 17));
    }
}
