//! Goldens of the mode that people run: rounded activations and kernels compiled for their params.
//!
//! Random weights amplify rounding far more than trained weights do, so an error has no bound of
//! its own: each file is held at twice the error that was measured when it was first compared.

use super::{Check, Golden};
use anyhow::{Result, ensure};
use kernels::testing::Switches;
use kernels::{Device, PlanOptions};
use model::{KvType, Model, SessionOptions};
use std::collections::BTreeMap;
use std::time::Instant;

/// The first measurements.
const MEASURED: &str = include_str!("fast.txt");

/// What an error may grow to, relative to its first measurement.
const GROWTH: f64 = 2.0;

/// The ways through the plans, in the order of the columns of [`MEASURED`]: name, largest number of
/// rows of a step, and KV type.
const MODES: [(&str, u32, KvType); 4] = [
    ("one prefill", 512, KvType::F16),
    ("chunks of 29", 29, KvType::F16),
    ("token by token", 1, KvType::F16),
    ("q8_0 KV", 64, KvType::Q8_0),
];

/// The bound of a file in the mode with this index; NaN if it was never measured on such a device.
fn bound(file: &str, cooperative: bool, mode: usize) -> f64 {
    let kind = if cooperative { "cooperative" } else { "plain" };
    let mut lines = MEASURED.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|words| words.starts_with(&[file, kind]));
    let measured = line.and_then(|words| words.get(2 + mode)?.parse::<f64>().ok());
    measured.map_or(f64::NAN, |measured| GROWTH * measured)
}

/// The difference of logits from their reference.
struct Difference {
    /// L2 of the difference over L2 of the reference, all rows together.
    l2: f64,
    /// Mean Kullback-Leibler divergence of a row from the reference's row, in nats.
    kl: f64,
}

impl Difference {
    fn of(got: &[f32], expected: &[f32], vocabulary: usize) -> Self {
        let kl = |(got, expected): (&[f32], &[f32])| {
            let (mut p, mut q) = (vec![0.0; vocabulary], vec![0.0; vocabulary]);
            cpu_ref::log_softmax(expected, vocabulary, &mut p);
            cpu_ref::log_softmax(got, vocabulary, &mut q);
            p.iter().zip(&q).map(|(p, q)| f64::from(*p).exp() * (f64::from(*p) - f64::from(*q))).sum::<f64>()
        };
        let rows = got.chunks_exact(vocabulary).zip(expected.chunks_exact(vocabulary));
        let kl = rows.map(kl).sum::<f64>() * vocabulary as f64 / got.len() as f64;
        Self { l2: cpu_ref::nmse(expected, got).sqrt(), kl }
    }
}

impl Golden {
    /// Every way through the plans of the fast mode.
    pub(super) fn run_fast(&self, device: &Device) -> Result<Vec<Check>> {
        let model = Model::open(self.dir.join(&self.name))?.on(device)?;
        let cooperative = device.caps().cooperative;
        let check = |(n, (mode, chunk, kv)): (usize, (&str, u32, KvType))| {
            self.fast(&model, mode, SessionOptions::default().chunk(chunk).kv(kv), bound(&self.name, cooperative, n))
        };
        MODES.into_iter().enumerate().map(check).collect()
    }

    fn fast(&self, model: &Model, mode: &str, options: SessionOptions, bound: f64) -> Result<Check> {
        let start = Instant::now();
        let (got, fast) = self.choosing(model, options.clone().plan(PlanOptions::default()))?;
        // Models without experts have nothing to compare.
        let flips = match fast.is_empty() {
            true => None,
            false => Some(flipped(&self.choosing(model, options.plan(PlanOptions::plain()))?.1, &fast)),
        };
        ensure!(got.iter().all(|x| x.is_finite()), "{mode}: logits that are no numbers");
        let Difference { l2, kl } = Difference::of(&got, &self.reference.values, self.reference.shape[1]);
        let mode = format!("fast, {mode}");
        Ok(Check { mode, worst: l2, bound, agrees: true, kl: Some(kl), flips, seconds: start.elapsed().as_secs_f64() })
    }
}

/// The experts that each row of the prompt chose, by layer: for each row, its k experts.
type Choices = BTreeMap<u32, Vec<Vec<u32>>>;

/// How many experts of `fast` their rows do not choose in `exact`, and how many there are. The
/// order of a row's experts does not count.
fn flipped(exact: &Choices, fast: &Choices) -> (usize, usize) {
    let rows = || fast.iter().flat_map(|(layer, rows)| rows.iter().zip(&exact[layer]));
    let other = |(fast, exact): (&Vec<u32>, &Vec<u32>)| fast.iter().filter(|expert| !exact.contains(expert)).count();
    (rows().map(other).sum(), rows().map(|(fast, _)| fast.len()).sum())
}

impl Golden {
    /// The logits of the whole prompt, and the experts that were chosen.
    fn choosing(&self, model: &Model, options: SessionOptions) -> Result<(Vec<f32>, Choices)> {
        let taps = model.taps().into_iter().filter(|name| *name == "experts").map(String::from).collect();
        let plan = options.plan.clone().taps(taps);
        let mut choices = Choices::new();
        let logits = self.evaluate_tapped(model, options.plan(plan), |rows, tap| {
            let each =
                tap.values.chunks_exact(tap.values.len() / rows).map(|row| row.iter().map(|&id| id as u32).collect());
            choices.entry(tap.layer).or_default().extend(each);
        })?;
        Ok((logits, choices))
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, Difference, MODES, bound, flipped};

    #[test]
    fn an_expert_that_f32_does_not_choose_is_a_flip_and_another_order_is_none() {
        let exact = Choices::from([(0, vec![vec![1, 2], vec![3, 4]]), (1, vec![vec![0, 5], vec![6, 7]])]);
        let fast = Choices::from([(0, vec![vec![2, 1], vec![3, 5]]), (1, vec![vec![0, 5], vec![0, 1]])]);
        assert_eq!((flipped(&exact, &exact), flipped(&exact, &fast)), ((0, 8), (3, 8)));
    }

    #[test]
    fn equal_logits_have_no_difference() {
        let logits = [1.0, -2.0, 0.5, 3.0, 0.0, -1.0];
        let Difference { l2, kl } = Difference::of(&logits, &logits, 3);
        assert_eq!((l2, kl), (0.0, 0.0));
    }

    #[test]
    fn a_divergence_is_the_mean_of_the_rows() {
        // Probabilities 1/2, 1/2 against 3/4, 1/4, and one row that is equal.
        let expected = [0.0, 0.0, 0.0, 0.0];
        let got = [3.0_f32.ln(), 0.0, 0.0, 0.0];
        let row = 0.5 * (0.5_f64 / 0.75).ln() + 0.5 * (0.5_f64 / 0.25).ln();
        assert!((Difference::of(&got, &expected, 2).kl - row / 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_file_that_was_never_measured_has_no_bound() {
        assert!(bound("none.gguf", false, 0).is_nan() && bound("qwen3-Q8_0.gguf", false, MODES.len()).is_nan());
        (0..MODES.len()).for_each(|mode| assert!(bound("qwen3-Q8_0.gguf", false, mode) > 0.0));
    }
}
