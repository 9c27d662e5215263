//! Faults planted in the shaders, one at a time: every one that compiles must turn a parity case red.

mod allowed;
mod faults;

use crate::{read, root, shaders};
use anyhow::Context as _;
use faults::Fault;
use kernels::Device;
use kernels::compose::{Kernel, instantiate};
use kernels::sweep::{Known, Target};
use std::collections::BTreeMap;
use std::path::Path;

/// Cases that may show a fault, for each kernel that the file is part of.
const CASES: usize = 8;

/// A kernel that a file is part of, with its cases.
struct User<'a> {
    target: &'a Target,
    /// The name that the file's identifiers are given, if it is the piece of a binding.
    binding: Option<(&'static str, &'static str)>,
    known: Vec<Known>,
}

/// What became of the faults of one file.
#[derive(Default)]
struct Tally {
    red: usize,
    allowed: usize,
    survived: usize,
}

/// Plants every fault of the files under `shaders/` that `targets` use and whose path contains `only`; whether each was found.
pub fn run(device: &Device, targets: &[Target], only: &str) -> anyhow::Result<bool> {
    let mut files = vec![];
    list(&root().join("shaders"), &mut files)?;
    files.retain(|path| path.contains(only));
    println!("{:<36} {:>6} {:>6} {:>8}", "file", "red", "allowed", "survived");
    let (mut total, mut used) = (Tally::default(), vec![]);
    for path in files {
        let text = read(&path)?;
        let users = users(device, targets, &text)?;
        if users.is_empty() {
            continue;
        }
        let tally = file(device, &path, &text, &users, &mut used)?;
        println!("{path:<36} {:>6} {:>6} {:>8}", tally.red, tally.allowed, tally.survived);
        total.red += tally.red;
        total.allowed += tally.allowed;
        total.survived += tally.survived;
    }
    println!("{:<36} {:>6} {:>6} {:>8}", "all", total.red, total.allowed, total.survived);
    let stale = allowed::ALLOWED.iter().enumerate().filter(|(n, a)| a.file.contains(only) && !used.contains(n));
    let stale: Vec<_> = stale.filter(|(_, a)| targets.iter().any(|t| uses(&t.kernel, a.file))).collect();
    for (_, allowed) in &stale {
        eprintln!("stale: {} {:?} in {:?} allows nothing that survives", allowed.file, allowed.fault, allowed.line);
    }
    anyhow::ensure!(total.red > 0, "no fault was planted");
    Ok(total.survived == 0 && stale.is_empty())
}

fn list(dir: &Path, files: &mut Vec<String>) -> anyhow::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        if entry.path().is_dir() {
            list(&entry.path(), files)?;
        } else if let Ok(path) = entry.path().strip_prefix(root()) {
            files.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

fn uses(kernel: &Kernel, path: &str) -> bool {
    read(path).is_ok_and(|text| place(kernel, &text).is_some())
}

/// Where a file's text stands in a kernel's: as it is, or with its identifiers renamed for a binding.
fn place(kernel: &Kernel, text: &str) -> Option<Option<(&'static str, &'static str)>> {
    let source = kernel.source();
    if source.contains(text) {
        return Some(None);
    }
    let names = kernel.row.bindings.iter().flat_map(|(name, _)| [("W", *name), ("S", *name)]);
    names.map(Some).find(|at| source.contains(&renamed(text, *at)))
}

fn renamed(text: &str, binding: Option<(&str, &str)>) -> String {
    match binding {
        // The text's own last line end is one too many after renaming.
        Some((prefix, name)) => instantiate(text.trim_end(), prefix, name),
        None => text.to_string(),
    }
}

/// The first kernel of every row that the file is part of.
fn users<'a>(device: &Device, targets: &'a [Target], text: &str) -> anyhow::Result<Vec<User<'a>>> {
    let mut found: BTreeMap<(&str, bool), User<'a>> = BTreeMap::new();
    for target in targets {
        let key = (target.kernel.row.name, target.kernel.subgroups);
        if found.contains_key(&key) {
            continue;
        }
        if let Some(binding) = place(&target.kernel, text) {
            let cases = target.cases(device.caps(), 0, CASES);
            let known = cases.map(Known::new).collect::<Result<Vec<_>, _>>().with_context(|| target.kernel.label())?;
            for case in &known {
                let outcome = case.compare(device, !target.kernel.subgroups)?;
                anyhow::ensure!(outcome.holds(), "{} is red before any fault is planted", target.kernel.label());
            }
            found.insert(key, User { target, binding, known });
        }
    }
    Ok(found.into_values().collect())
}

fn file(device: &Device, path: &str, text: &str, users: &[User<'_>], used: &mut Vec<usize>) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for fault in faults::of(text) {
        let mutant = fault.plant(text);
        match red(device, text, &mutant, users)? {
            None => {}
            Some(true) => tally.red += 1,
            Some(false) => match allowed::find(path, &fault) {
                Some(n) => {
                    used.push(n);
                    tally.allowed += 1;
                }
                None => {
                    report(path, &fault);
                    tally.survived += 1;
                }
            },
        }
    }
    Ok(tally)
}

fn report(path: &str, fault: &Fault) {
    println!("{path}:{}: survived: {}\n    {}\n    {}", fault.line + 1, fault.kind, fault.before.trim(), fault.after.trim());
}

/// Whether a case of some kernel is red with the fault; `None` if the result is no valid shader.
fn red(device: &Device, text: &str, mutant: &str, users: &[User<'_>]) -> anyhow::Result<Option<bool>> {
    let mut valid = false;
    for User { target, binding, known } in users {
        let kernel = &target.kernel;
        let source = kernel.source().replacen(&renamed(text, *binding), &renamed(mutant, *binding), 1);
        anyhow::ensure!(source != kernel.source(), "a fault changed nothing in {}", kernel.label());
        if shaders::validate(&source, kernel.subgroups).is_err() {
            continue;
        }
        valid = true;
        let broken = device.with_source(kernel, source);
        for case in known {
            let outcome = case.compare(&broken, !kernel.subgroups);
            if !outcome.with_context(|| kernel.label())?.holds() {
                return Ok(Some(true));
            }
        }
    }
    Ok(valid.then_some(false))
}
