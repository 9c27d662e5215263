//! What a run prints: a line for some of its steps, or a JSON object for each.

use super::curve;
use super::samples::Sample;
use crate::progress::Bar;
use anyhow::Result;
use indicatif::HumanDuration;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal_size::{Height, Width, terminal_size};
use train::Record;

/// Steps whose time tells the speed.
const WINDOW: usize = 20;
/// Lines of a run, about.
const LINES: u64 = 20;

/// Prints the steps of a run.
pub struct Report {
    json: bool,
    /// The number of steps, if it is known.
    steps: Option<u64>,
    bar: Bar,
    times: VecDeque<(Duration, u64)>,
    began: Instant,
}

impl Report {
    pub fn new(json: bool, steps: Option<u64>) -> Result<Self> {
        if !json {
            let head = format!(
                "{:>8}  {:>9}  {:>9}  {:>9}  {:>8}  {:>9}  left",
                "step", "loss", "norm", "rate", "tok/s", "val"
            );
            writeln!(std::io::stdout(), "{head}")?;
        }
        Ok(Self { json, steps, bar: Bar::count("step 1"), times: VecDeque::new(), began: Instant::now() })
    }

    /// The line of progress.
    pub fn bar(&self) -> &Bar {
        &self.bar
    }

    /// A step begins.
    pub fn begins(&mut self, step: u64, last: Option<&Record>) {
        let of = self.steps.map_or_else(String::new, |steps| format!("/{steps}"));
        let loss = last.map_or_else(String::new, |record| format!(", loss {:.4}", record.loss));
        let left = self.left(step.saturating_sub(1)).map_or_else(String::new, |left| format!(", {left} left"));
        self.bar.say(format!("step {step}{of}{loss}{left}"));
        self.began = Instant::now();
    }

    /// A step has ended, with these answers if it was validated.
    pub fn ended(&mut self, record: &Record, answers: &[Sample]) -> Result<()> {
        self.times.push_back((self.began.elapsed(), record.tokens));
        if self.times.len() > WINDOW {
            self.times.pop_front();
        }
        if self.json {
            let mut object = record.to_json();
            if !answers.is_empty() {
                object["samples"] = answers.iter().map(Sample::json).collect();
            }
            return self.object(&object);
        }
        let every = self.steps.map_or(10, |steps| steps.div_ceil(LINES)).max(1);
        let Record { step, loss, norm, rate, validation, ref skipped, .. } = *record;
        if step == 1 || step % every == 0 || Some(step) == self.steps || validation.is_some() || skipped.is_some() {
            let held = validation.map_or_else(String::new, |loss| format!("{loss:.4}"));
            let left = skipped.as_ref().map_or_else(
                || self.left(step).unwrap_or_default(),
                |first| format!("skipped: the first number that is not finite is in {first}"),
            );
            let speed = self.tokens_per_second();
            let line = format!("{step:>8}  {loss:>9.4}  {norm:>9.3e}  {rate:>9.2e}  {speed:>8.0}  {held:>9}  {left}");
            let answers: String = answers.iter().map(|answer| format!("\n{}", answer.lines())).collect();
            self.bar.suspend(|| writeln!(std::io::stdout(), "{}{answers}", line.trim_end()))?;
        }
        Ok(())
    }

    /// Prints one JSON object.
    pub fn object(&self, object: &Value) -> Result<()> {
        Ok(self.bar.suspend(|| writeln!(std::io::stdout(), "{object}"))?)
    }

    /// Tokens per second of the last steps.
    pub fn tokens_per_second(&self) -> f64 {
        let (time, tokens) =
            self.times.iter().fold((0.0, 0), |sum, (time, tokens)| (sum.0 + time.as_secs_f64(), sum.1 + tokens));
        if time > 0.0 { tokens as f64 / time } else { 0.0 }
    }

    /// The time that the rest of the run takes, if it goes on like this.
    fn left(&self, done: u64) -> Option<String> {
        let steps = self.steps?.checked_sub(done)?;
        let time: f64 = self.times.iter().map(|(time, _)| time.as_secs_f64()).sum();
        let each = Duration::try_from_secs_f64(time / self.times.len().max(1) as f64 * steps as f64).ok()?;
        (steps > 0 && !self.times.is_empty()).then(|| HumanDuration(each).to_string())
    }

    /// Prints the curve, if there is a terminal to look at it.
    pub fn curve(&mut self, records: &[Record]) -> Result<()> {
        self.bar.clear();
        let mut out = std::io::stdout();
        if self.json || !out.is_terminal() {
            return Ok(());
        }
        let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let size = terminal_size().map_or([80, 24], |(Width(columns), Height(rows))| [columns, rows].map(usize::from));
        if let Some(lines) = curve::lines(records, size, color) {
            writeln!(out, "\n{lines}")?;
        }
        Ok(())
    }
}
