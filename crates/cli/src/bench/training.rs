//! Times steps of training.

use super::grid::Test;
use super::measure::{Bench, tokens};
use crate::progress::Bar;
use anyhow::{Context, Result};
use kernels::{Profile, Watch};
use std::time::Instant;
use train::{Checkpointing, Document, GradientOptions, Lora, NO_TARGET, Trainer, TrainerOptions};

/// Rank of the factors that are trained.
const RANK: u32 = 16;

impl Bench<'_> {
    /// Tokens per second of each repetition of a step.
    pub fn training_rates(&mut self, test: Test, length: u32) -> Result<Vec<f64>> {
        let (repetitions, documents) = (self.args.repetitions, self.documents(test, length));
        let bar = Bar::count(test.to_string());
        let trainer = self.trainer(test)?;
        let mut rates = vec![];
        for n in 0..=repetitions {
            let began = Instant::now();
            trainer.step(&documents, Watch::default())?;
            if n > 0 {
                rates.push(test.tokens() / began.elapsed().as_secs_f64());
            }
            bar.set(u64::from(n) + 1, u64::from(repetitions) + 1);
        }
        Ok(rates)
    }

    /// Times the dispatches of a step.
    pub fn training_profile(&mut self, test: Test, length: u32) -> Result<Profile> {
        let documents = self.documents(test, length);
        Ok(self.trainer(test)?.profile(&documents)?)
    }

    /// Operations of a step, forward and backward, for the rows and the targets that its examples
    /// have; the plan has room for more.
    pub fn training_flops(&self, test: Test) -> f64 {
        let rows = test.tokens() as u32;
        let targets = rows - test.sequences;
        let trainer = self.trainer.as_ref().filter(|(of, _)| *of == test);
        trainer.map_or(0.0, |(_, trainer)| trainer.work(rows, targets).flops as f64)
    }

    /// The trainer of a test. That of another test is dropped first, to free its memory.
    fn trainer(&mut self, test: Test) -> Result<&mut Trainer> {
        if self.trainer.as_ref().is_none_or(|(of, _)| *of != test) {
            self.trainer = None;
            let gradients = GradientOptions::default().rows(test.tokens() as u32).checkpointing(Checkpointing::Auto);
            let options = TrainerOptions::default().gradients(gradients.precision(self.options.plan.precision));
            let trainer =
                Trainer::new(&self.model, Lora::new(RANK), &options).with_context(|| self.args.source.name())?;
            self.trainer = Some((test, trainer));
        }
        Ok(&mut self.trainer.as_mut().expect("just made").1)
    }

    /// Examples with a target after each token but the last one.
    fn documents(&self, test: Test, length: u32) -> Vec<Document> {
        let vocabulary = self.model.summary().vocabulary;
        let document = |n| {
            let ids = tokens(length, vocabulary, 1, n);
            let targets = ids[1..].iter().copied().chain([NO_TARGET]).collect();
            Document { ids, targets, ..Document::default() }
        };
        (0..test.sequences).map(document).collect()
    }
}
