//! `verify-shaders --races`: runs dispatches of parity cases on the host, the invocations of a
//! workgroup in step. Shows that no two accesses to a word race, and that two would without any of
//! the barriers.

pub mod computed;
mod eval;
pub mod finding;
mod group;
mod machine;
mod math;
mod memory;
mod program;
mod scene;
mod shadow;
mod step;
#[cfg(test)]
mod tests;
mod types;
mod value;

use crate::faults::excuses::Excuses;
use crate::faults::{self, BARRIER, Fault};
use crate::{files, lanes};
pub use scene::{Shown, Subject, first_of_each};
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

/// Dispatches on which a shader is analysed: the first of its variant, subgroup form and type of
/// states, and those that differ from it in the format of weights.
const SCENES: [usize; 2] = [2, 1];

/// Dispatches of all shaders on which a dropped barrier may show. If many shaders have it, each has
/// fewer dispatches, but at least [`FEW`].
const ENOUGH: usize = 64;
pub const FEW: usize = 3;
/// Dispatches of each shader on which it may show, at most.
const MOST: usize = 16;

/// The barriers of one file: dropped ones that race, that do not and are excused, that do not, and
/// excuses of others.
#[derive(Clone, Copy, Default)]
struct Tally {
    shown: usize,
    excused: usize,
    survived: usize,
    stale: usize,
}

/// Analyses every shader with a barrier whose variant's name contains `kernel` and that has a file
/// whose path contains one of `parts`, then drops each barrier of these files. Above 1, `every`
/// leaves shaders and files out: of each variant one shader stays, of the others and of the files
/// every Nth. Returns true if no shader races, and every dropped barrier does or has an excuse.
pub fn run(kernel: &str, parts: &[String], every: usize) -> anyhow::Result<bool> {
    let begin = Instant::now();
    let texts = files::read(&files::all()?)?;
    let wanted: Vec<_> = texts.iter().filter(|(path, _)| files::is_wanted(path, parts)).step_by(every).collect();
    let all = scene::subjects();
    let has = |of: &Subject, text: &str| !files::places(&of.target.shader, &of.source, text).is_empty();
    let named = all.iter().filter(|of| of.target.shader.variant.name.contains(kernel));
    let subjects: Vec<_> =
        named.filter(|of| parts.is_empty() || wanted.iter().any(|(_, text)| has(of, text))).collect();
    let firsts: Vec<&Subject> = first_of_each(subjects.iter().copied(), |_| None).into_values().collect();
    let stays =
        |(n, of): &(usize, &Subject)| n.is_multiple_of(every) || firsts.iter().any(|first| std::ptr::eq(*first, *of));
    let subjects: Vec<_> = subjects.into_iter().enumerate().filter(stays).map(|(_, of)| of).collect();
    anyhow::ensure!(
        !subjects.is_empty(),
        "no shader with a barrier has {kernel:?} in its kernel's name and {parts:?} in a file's path"
    );
    let clean = shipped(&texts, &subjects, begin)?;

    println!("{:<44} {:>6} {:>7} {:>8} {:>5}", "dropped barriers of", "races", "excused", "survived", "stale");
    let row = |name: &str, Tally { shown, excused, survived, stale }: Tally| {
        println!("{name:<44} {shown:>6} {excused:>7} {survived:>8} {stale:>5}");
    };
    let total = Mutex::new(Tally::default());
    let work = |_: &mut (), (path, text): &&(String, String)| {
        if !subjects.iter().any(|of| has(of, text)) {
            return Ok(());
        }
        // Another kernel may be the one that needs the barrier.
        let users = first_of_each(all.iter().filter(|of| has(of, text)), |_| None).into_values().collect();
        if let Some(tally) = dropped(path, text, users)? {
            row(path, tally);
            let mut total = total.lock().expect("no panic");
            total.shown += tally.shown;
            total.excused += tally.excused;
            total.survived += tally.survived;
            total.stale += tally.stale;
        }
        Ok(())
    };
    lanes::each(lanes::cores(), &wanted, || Ok(()), work)?;
    let total = total.into_inner().expect("no panic");
    row("all", total);
    println!("{:.0} s", begin.elapsed().as_secs_f64());
    Ok(clean && total.survived == 0 && total.stale == 0)
}

/// Analyses the shaders as they are. Returns true if none of them races.
fn shipped(texts: &[(String, String)], subjects: &[&Subject], begin: Instant) -> anyhow::Result<bool> {
    let (scenes, racy, equal) = (Mutex::new(0), Mutex::new(0), Mutex::new(BTreeSet::new()));
    let firsts = first_of_each(subjects.iter().copied(), |_| None);
    let work = |_: &mut (), of: &&Subject| {
        let first = firsts.values().any(|first| std::ptr::eq(*first, *of));
        let verdict = of.verdict(SCENES[usize::from(!first)])?;
        let label = of.target.shader.label();
        anyhow::ensure!(verdict.scenes > 0, "{label}: no case is small enough for the analysis");
        *scenes.lock().expect("no panic") += verdict.scenes;
        equal.lock().expect("no panic").extend(verdict.equal.iter().map(|&at| place(texts, of, at)));
        if let Some(Shown { finding, subgroup }) = verdict.shown {
            let places: Vec<_> = finding.places().into_iter().map(|at| place(texts, of, at)).collect();
            println!("{label}: {finding} with subgroups of {subgroup}\n    {}", places.join("\n    "));
            *racy.lock().expect("no panic") += 1;
        }
        Ok(())
    };
    lanes::each(lanes::cores(), subjects, || Ok(()), work)?;
    let (scenes, racy, equal) =
        (*scenes.lock().expect("no panic"), *racy.lock().expect("no panic"), equal.into_inner().expect("no panic"));
    println!(
        "{} shaders with barriers, on {scenes} dispatches in {:.0} s: {racy} race; several invocations write equal words at {} places",
        subjects.len(),
        begin.elapsed().as_secs_f64(),
        equal.len()
    );
    Ok(racy == 0)
}

/// The file and the number of the line at an offset in a shader's text, with the text of the line.
fn place(texts: &[(String, String)], of: &Subject, at: u32) -> String {
    let line = of.source[..at as usize].matches('\n').count() + 1;
    let code = of.source.lines().nth(line - 1).unwrap_or_default().trim();
    match files::origin(texts, &of.target.shader, &of.source, line) {
        Some((path, line)) => format!("{path}:{line}: {code}"),
        None => format!("line {line} of {}: {code}", of.target.shader.label()),
    }
}

/// Drops each barrier of a file. `None` for a file without barriers.
fn dropped(path: &str, text: &str, mut users: Vec<&Subject>) -> anyhow::Result<Option<Tally>> {
    let (mut tally, excuses, mut needed) = (Tally::default(), Excuses::of(path, text)?, BTreeSet::new());
    for fault in faults::of(text).into_iter().filter(|fault| fault.kind == BARRIER) {
        let excuse = excuses.find(&fault, false);
        // A search for what cannot be found takes long.
        let scenes = if excuse.is_some() { 1 } else { scenes_of(&users) };
        match (shows(text, &fault, &mut users, scenes)?, excuse) {
            (None, _) => {}
            (Some(true), _) => tally.shown += 1,
            (Some(false), Some(found)) => {
                needed.insert(found);
                tally.excused += 1;
            }
            (Some(false), None) => {
                println!("{path}:{}: survived: {}\n    {}", fault.line + 1, fault.kind, fault.before.trim());
                tally.survived += 1;
            }
        }
    }
    if tally.shown + tally.excused + tally.survived == 0 {
        return Ok(None);
    }
    tally.stale = excuses.report_stale_of(path, BARRIER, &needed);
    Ok(Some(tally))
}

/// Whether a shader of any device races with the fault. The form of a shader for other subgroups
/// may be the one that needs the barrier.
pub fn shows_anywhere(text: &str, fault: &Fault) -> anyhow::Result<bool> {
    static ALL: LazyLock<Vec<Subject>> = LazyLock::new(scene::subjects);
    let having = ALL.iter().filter(|of| !files::places(&of.target.shader, &of.source, text).is_empty());
    let mut users: Vec<_> = first_of_each(having, |_| None).into_values().collect();
    let scenes = scenes_of(&users);
    Ok(shows(text, fault, &mut users, scenes)? == Some(true))
}

/// Dispatches of each of these shaders on which a dropped barrier may show.
fn scenes_of(users: &[&Subject]) -> usize {
    (ENOUGH / users.len().max(1)).clamp(FEW, MOST)
}

/// Whether a shader of these races with the fault, on so many dispatches of each. `None` if no text
/// with the fault is a valid shader. The shader that races comes first for the next fault.
pub fn shows(text: &str, fault: &Fault, users: &mut [&Subject], scenes: usize) -> anyhow::Result<Option<bool>> {
    let (mutant, mut valid) = (fault.plant(text), false);
    for n in 0..users.len() {
        let source = files::replaced(
            &users[n].source,
            text,
            &mutant,
            &files::places(&users[n].target.shader, &users[n].source, text),
        );
        if !users[n].is_valid(&source) {
            continue;
        }
        valid = true;
        if users[n].shown(&source, scenes)?.is_some() {
            users[..=n].rotate_right(1);
            return Ok(Some(true));
        }
    }
    Ok(valid.then_some(false))
}
