//! The learning rate of every step.

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

/// How the rate changes after the warmup.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Schedule {
    Constant,
    /// Falls to zero in a line.
    Linear,
    /// Falls to zero as half a cosine.
    #[default]
    Cosine,
    /// Falls to zero as half a cosine, and begins again, so many times in all.
    CosineRestarts {
        cycles: u32,
    },
    /// Stays for this share of the run, then falls to zero as half a cosine.
    FlatCosine {
        flat: f64,
    },
}

/// The rate of every step of a run.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rate {
    pub peak: f64,
    pub schedule: Schedule,
    /// Steps in which the rate rises to its peak in a line. They are part of the run.
    pub warmup: u64,
    /// Steps of the run.
    pub steps: u64,
}

impl Rate {
    /// The same rate in every step.
    #[must_use]
    pub fn constant(peak: f64) -> Self {
        Self { peak, schedule: Schedule::Constant, warmup: 0, steps: u64::MAX }
    }

    /// The rate of a step, the first of which is 0. Behind the end of the run, the rate of its end.
    #[must_use]
    pub fn at(&self, step: u64) -> f64 {
        let Self { peak, schedule, warmup, steps } = *self;
        if step < warmup {
            return peak * (step + 1) as f64 / warmup as f64;
        }
        let after = steps.saturating_sub(warmup).max(1);
        let done = ((step - warmup) as f64 / after as f64).min(1.0);
        let cosine = |done: f64| 0.5 * (1.0 + (PI * done).cos());
        peak * match schedule {
            Schedule::Constant => 1.0,
            Schedule::Linear => 1.0 - done,
            Schedule::Cosine => cosine(done),
            Schedule::CosineRestarts { .. } if done >= 1.0 => 0.0,
            Schedule::CosineRestarts { cycles } => cosine((f64::from(cycles) * done).fract()),
            Schedule::FlatCosine { flat } if done <= flat => 1.0,
            Schedule::FlatCosine { flat } => cosine((done - flat) / (1.0 - flat)),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Linear => f.write_str("linear"),
            Self::Cosine => f.write_str("cosine"),
            Self::CosineRestarts { cycles } => write!(f, "cosine-restarts:{cycles}"),
            Self::FlatCosine { flat } => write!(f, "flat-cosine:{flat}"),
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    /// `constant`, `linear`, `cosine`, `cosine-restarts:CYCLES`, `flat-cosine:SHARE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once(':').map_or((text, None), |(name, number)| (name, Some(number)));
        match (name, number) {
            ("constant", None) => Ok(Self::Constant),
            ("linear", None) => Ok(Self::Linear),
            ("cosine", None) => Ok(Self::Cosine),
            ("cosine-restarts", number) => match number.unwrap_or("4").parse() {
                Ok(cycles) if cycles > 0 => Ok(Self::CosineRestarts { cycles }),
                _ => Err(format!("\"{text}\": the number of cycles must be 1 or more")),
            },
            ("flat-cosine", number) => match number.unwrap_or("0.7").parse() {
                Ok(flat) if (0.0..1.0).contains(&flat) => Ok(Self::FlatCosine { flat }),
                _ => Err(format!("\"{text}\": the share of steps before the fall must be from 0 to below 1")),
            },
            _ => Err(format!(
                "\"{text}\" is none of constant, linear, cosine, cosine-restarts:CYCLES, flat-cosine:SHARE"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates(schedule: &str, warmup: u64) -> Vec<f64> {
        let rate = Rate { peak: 2.0, schedule: schedule.parse().expect("a schedule"), warmup, steps: 8 };
        (0..9).map(|step| (rate.at(step) * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn every_schedule_has_its_form() {
        assert_eq!(rates("constant", 2), [1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(rates("linear", 0), [2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25, 0.0]);
        assert_eq!(rates("linear", 4), [0.5, 1.0, 1.5, 2.0, 2.0, 1.5, 1.0, 0.5, 0.0]);
        assert_eq!(rates("cosine", 0), [2.0, 1.924, 1.707, 1.383, 1.0, 0.617, 0.293, 0.076, 0.0]);
        assert_eq!(rates("cosine-restarts:2", 0), [2.0, 1.707, 1.0, 0.293, 2.0, 1.707, 1.0, 0.293, 0.0]);
        assert_eq!(rates("flat-cosine:0.5", 0), [2.0, 2.0, 2.0, 2.0, 2.0, 1.707, 1.0, 0.293, 0.0]);
    }

    proptest! {
        #[test]
        fn rates_rise_in_the_warmup_and_then_fall_to_zero(
            (kind, cycles, flat) in (0..5, 1_u32..6, 0.0..0.99),
            (warmup, steps, peak) in (0_u64..200, 1_u64..2000, 1e-6..10.0),
        ) {
            let schedule = match kind {
                0 => Schedule::Constant,
                1 => Schedule::Linear,
                2 => Schedule::Cosine,
                3 => Schedule::CosineRestarts { cycles },
                _ => Schedule::FlatCosine { flat },
            };
            prop_assert_eq!(schedule.to_string().parse(), Ok(schedule));
            let rate = Rate { peak, schedule, warmup, steps };
            let rates: Vec<f64> = (0..steps.max(warmup + 1) + 3).map(|step| rate.at(step)).collect();
            let near = |rate: f64, expected: f64| (rate - expected).abs() <= 1e-15 * peak;
            prop_assert!(rates.iter().all(|rate| (0.0..=peak).contains(rate) || near(*rate, peak)));
            let (rising, falling) = rates.split_at(warmup as usize);
            prop_assert!(rising.is_sorted_by(|a, b| a < b) && rising.last().is_none_or(|last| near(*last, peak)));
            let rises = falling.windows(2).filter(|pair| pair[1] > pair[0]).count();
            prop_assert!(rises < if kind == 3 { cycles as usize } else { 1 }, "rises {} times", rises);
            let end = if kind == 0 { peak } else { 0.0 };
            prop_assert!(falling[0] == peak && near(rates[rates.len() - 1], end));
        }
    }

    #[test]
    fn a_run_shorter_than_its_warmup_only_rises() {
        let rate = Rate { peak: 1.0, schedule: Schedule::Cosine, warmup: 10, steps: 4 };
        assert_eq!([rate.at(0), rate.at(3), rate.at(9)], [0.1, 0.4, 1.0]);
        assert!(Rate::constant(3.0).at(u64::MAX) == 3.0);
    }

    #[test]
    fn names_are_read_back_and_others_refused() {
        for name in ["constant", "linear", "cosine", "cosine-restarts:3", "flat-cosine:0.25"] {
            assert_eq!(name.parse::<Schedule>().expect("a schedule").to_string(), name);
        }
        for bad in [
            "",
            "cos",
            "linear:2",
            "cosine-restarts:0",
            "cosine-restarts:x",
            "flat-cosine:1",
            "flat-cosine:nan",
            "flat-cosine:-1",
        ] {
            assert!(bad.parse::<Schedule>().is_err(), "{bad}");
        }
    }
}
