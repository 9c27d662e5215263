//! Faults in kernels with cooperative matrices, planted without a device: no software driver runs
//! these kernels, but the interpreter does.

use super::built::as_built;
use super::lines::{self, Found, Shaders, Shows};
use super::tally::{Outcome, Tally};
use crate::faults::{self, Fault};
use crate::races::Subject;
use crate::races::computed::{Trial, cooperative};
use crate::races::finding::Finding;
use crate::workspace::read;
use crate::{files, lanes};
use anyhow::Context as _;
use kernels::testing::kinds::card;
use kernels::testing::parity::Case;
use kernels::{Caps, Class};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once_with;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::Instant;

/// Cases of all shaders of a file that may show a fault. If there are many shaders, each has fewer,
/// at least one.
const ENOUGH: usize = 24;
/// Cases of each shader, at most.
const CASES: usize = 4;
/// Cases that are drawn for those behind the first.
const DRAWN: usize = 8;
const SEEDS: u64 = 1000;
/// Steps of a case, at most. Cases with more are left out.
const STEPS: u64 = 20_000_000;

/// What is planted.
pub struct Wanted<'a> {
    /// Only in kernels whose variant's name contains this.
    pub kernel: &'a str,
    /// Only in files whose path contains one of these, if there are any.
    pub files: &'a [String],
    pub lines: &'a RangeInclusive<usize>,
    /// Faults of each file, at most. They are spread over the file.
    pub most: usize,
}

/// Plants faults in the files of kernels with cooperative matrices. Returns true if no fault
/// survived without an excuse.
pub fn run(wanted: &Wanted<'_>) -> anyhow::Result<bool> {
    let begin = Instant::now();
    let caps = card(Class::Discrete, 32, true);
    let targets = cooperative(&caps).into_iter().filter(|target| target.shader.variant.name.contains(wanted.kernel));
    let composed: Vec<_> = targets.map(Subject::of).collect();
    let mut parts = vec![];
    for path in files::all()?.into_iter().filter(|path| files::is_wanted(path, wanted.files)) {
        let text = read(&path)?;
        as_built(&path, &text)?;
        let faults = faults::of(&text).into_iter().filter(|fault| wanted.lines.contains(&(fault.line + 1))).collect();
        // Each core takes a share of a file.
        let mut faults = spread(faults, wanted.most);
        let share = faults.len().div_ceil(lanes::cores());
        while !faults.is_empty() {
            let of_one = faults.drain(..share.min(faults.len())).collect::<Vec<_>>();
            parts.push((path.clone(), text.clone(), of_one));
        }
    }
    println!("{:<44} {:>6} {:>7} {:>8} {:>5}", "file", "red", "excused", "survived", "stale");
    let tallies: Mutex<BTreeMap<String, Tally>> = Mutex::default();
    let work = |_: &mut (), (path, text, faults): &(String, String, Vec<Fault>)| {
        let outcome = planted(&caps, path, text, faults, &composed)?;
        tallies.lock().expect("no panic").entry(path.clone()).or_default().plus(&outcome.tally);
        Ok(())
    };
    lanes::each(lanes::cores(), &parts, || Ok(()), work)?;
    let mut total = Tally::default();
    for (path, tally) in tallies.into_inner().expect("no panic").into_iter().filter(|(_, tally)| tally.planted() > 0) {
        tally.print(&path, "");
        total.plus(&tally);
    }
    total.print("all", &format!("  {:.0} s", begin.elapsed().as_secs_f64()));
    anyhow::ensure!(
        total.planted() > 0,
        "no fault was planted: no kernel with cooperative matrices has what was asked for"
    );
    Ok(total.holds())
}

/// At most `most` of these faults, spread over all of them.
fn spread(all: Vec<Fault>, most: usize) -> Vec<Fault> {
    let taken = most.min(all.len());
    let chosen: BTreeSet<_> = (0..taken).map(|n| n * all.len() / taken).collect();
    all.into_iter().enumerate().filter(|(n, _)| chosen.contains(n)).map(|(_, fault)| fault).collect()
}

/// Plants faults in a file of some of these shaders.
fn planted(caps: &Caps, path: &str, text: &str, faults: &[Fault], composed: &[Subject]) -> anyhow::Result<Outcome> {
    let shaders = Shaders::of(path, text, composed);
    let cases = (ENOUGH / shaders.found().len().max(1)).clamp(1, CASES);
    let mut users: Vec<_> = shaders.found().iter().map(|of| User::of(of, caps, cases)).collect();
    lines::planted(path, text, faults, true, &mut users)
}

/// A shader that a file is part of, with its cases.
struct User<'a> {
    of: &'a Found<'a>,
    caps: &'a Caps,
    /// The cases so far. The case that showed a fault last comes first.
    known: Vec<Trial>,
    /// The cases that have not run yet.
    further: Box<dyn Iterator<Item = Case> + 'a>,
    /// Number of cases, at most.
    cases: usize,
}

impl<'a> User<'a> {
    fn of(of: &'a Found<'a>, caps: &'a Caps, cases: usize) -> Self {
        let (target, portable) = (&of.of.target, !of.of.target.shader.subgroups);
        let least = once_with(move || target.least(caps)).flatten().map(|(_, case)| case);
        let drawn = once_with(move || {
            let mut seeds = 0..SEEDS;
            let found = std::iter::from_fn(|| target.find(caps, &mut seeds)).take(DRAWN);
            let mut found: Vec<_> =
                found.filter_map(|(_, case)| Some((case.work(caps, portable).ok()?.0, case))).collect();
            found.sort_by_key(|(work, _)| *work);
            found.into_iter().map(|(_, case)| case)
        });
        Self { of, caps, known: vec![], further: Box::new(least.chain(drawn.flatten())), cases }
    }

    /// Runs the next case with the right text.
    fn next(&mut self) -> anyhow::Result<Option<Trial>> {
        let target = &self.of.of.target;
        while self.known.len() < self.cases {
            let Some(case) = self.further.next() else { return Ok(None) };
            let trial = Trial::of(target, &case, self.caps, self.caps.subgroup_size as usize, STEPS);
            if matches!(&trial, Err(error) if error.downcast_ref() == Some(&Finding::Endless)) {
                continue;
            }
            let trial = trial.with_context(|| target.shader.label())?;
            anyhow::ensure!(trial.right.holds(), "{} fails before any fault is planted", target.shader.label());
            return Ok(Some(trial));
        }
        Ok(None)
    }
}

impl<'a> Shows<'a> for User<'a> {
    fn found(&self) -> &'a Found<'a> {
        self.of
    }

    fn shows(&mut self, source: String) -> anyhow::Result<bool> {
        let mut n = 0;
        loop {
            if n == self.known.len() {
                let Some(trial) = self.next()? else { return Ok(false) };
                self.known.push(trial);
            }
            if self.known[n].shows(&source)? {
                self.known[..=n].rotate_right(1);
                return Ok(true);
            }
            n += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tally of a line with another text in the file of a kernel with cooperative matrices.
    /// Only the least case of each shader runs, as in the tests of `races/computed`.
    fn changed(kernel: &str, path: &str, right: &str, wrong: &str) -> Tally {
        let caps = card(Class::Discrete, 32, true);
        let targets = cooperative(&caps).into_iter().filter(|target| target.shader.variant.name.starts_with(kernel));
        let composed: Vec<_> = targets.map(Subject::of).collect();
        let text = read(path).unwrap();
        let found = text.lines().enumerate().filter(|(_, line)| line.contains(right));
        let (line, before) =
            found.collect::<Vec<_>>().first().copied().unwrap_or_else(|| panic!("{path} has no {right}"));
        let fault = Fault { kind: "named", line, before: before.to_string(), after: before.replacen(right, wrong, 1) };
        let shaders = Shaders::of(path, &text, &composed);
        let mut users: Vec<_> = shaders.found().iter().map(|of| User::of(of, &caps, 1)).collect();
        lines::planted(path, &text, &[fault], true, &mut users).unwrap().tally
    }

    #[test]
    fn faults_that_no_software_driver_sees_are_red() {
        let named = [
            ("matmul_tile128_glu", "shaders/matmul/matmul_tile128_glu.wgsl", "c[1]", "c[0]"),
            (
                "matmul_weight_tile128",
                "shaders/matmul/matmul_weight_tile128.wgsl",
                "dy_scales[row] * x_scales[row]",
                "dy_scales[row]",
            ),
            ("matmul_weight_tile128", "shaders/matmul/matmul_weight_tile128.wgsl", " * most;", ";"),
        ];
        for (kernel, path, right, wrong) in named {
            assert_eq!(
                changed(kernel, path, right, wrong),
                Tally { red: 1, ..Tally::default() },
                "{path}: {right} -> {wrong}"
            );
        }
    }

    #[test]
    fn two_faults_of_every_kernel_that_only_cards_run_are_red_or_excused() {
        let files = [
            "matmul/matmul_tile128_glu.wgsl",
            "matmul/matmul_input_tile128.wgsl",
            "matmul/matmul_weight_tile128.wgsl",
            "attention/attention_lse_flash.wgsl",
            "attention/attention_backward_q_flash.wgsl",
            "attention/attention_backward_kv_flash.wgsl",
        ];
        let files = files.map(str::to_string);
        assert!(run(&Wanted { kernel: "", files: &files, lines: &(1..=usize::MAX), most: 2 }).unwrap());
    }

    #[test]
    fn faults_are_spread_over_a_file() {
        let text = read("shaders/matmul/matmul_tile128_glu.wgsl").unwrap();
        let all = faults::of(&text).len();
        let lines = |most| spread(faults::of(&text), most).iter().map(|fault| fault.line).collect::<Vec<_>>();
        assert_eq!(lines(usize::MAX).len(), all);
        let few = lines(5);
        assert!(few.len() == 5 && few[4] - few[0] > 30, "{few:?}");
    }
}
