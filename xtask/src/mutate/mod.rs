//! Plants faults in the shaders, one at a time. Every fault that compiles must make a parity case
//! fail.

mod excuses;
mod faults;
mod reasons;

use crate::files::{self, Place, places, renamed};
use crate::{read, shaders};
use anyhow::Context as _;
use excuses::Excuses;
use faults::Fault;
use gguf::GgmlType;
use kernels::Device;
use kernels::testing::kernel::compose::Piece;
use kernels::testing::parity::Case;
use kernels::testing::sweep::Target;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Number of cases that may find a fault, for each kernel that contains the file. Every second case
/// runs split.
const CASES: usize = 32;
/// Number of cases of all kernels that contain a file. If there are many kernels, each has fewer
/// cases, but at least [`FEW`].
const ENOUGH: usize = 192;
const FEW: usize = 4;
/// Like [`CASES`], for the pieces of weight formats. Every case reads the whole format.
const FORMAT_CASES: usize = 12;
/// Files of kernels with many code paths, each taken by few cases, and the number of cases for
/// their faults.
const BRANCHING: ([&str; 4], usize) =
    (["sampling/sample.wgsl", "sampling/sample_scan.wgsl", "sampling/top_k.wgsl", "sampling/pieces/strips.wgsl"], 120);

/// Files with parts that only some weight formats use, and the formats with separate cases, a few
/// each. `None` means every format. Otherwise it is a format with two scales per block or unit of
/// the file, or with rows that neighbouring threads share.
const BY_FORMAT: [(&str, Option<GgmlType>); 9] = [
    ("shaders/matmul/matmul_rows8.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/matmul_rows8_glu.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/matmul_rows8_group.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/pieces/tile128_groups.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/shared/dot_q8.wgsl", None),
    ("shaders/matmul/pieces/rows8_sums.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/pieces/rows8_steps_8.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/pieces/tile64_tiles.wgsl", Some(GgmlType::Q4_K)),
    ("shaders/quant/units/ready.wgsl", Some(GgmlType::Q5_K)),
];

/// A shader that a file is part of, with its cases.
struct User<'a> {
    target: &'a Target,
    /// The renaming of the file's identifiers in the shader's text, one for each binding that uses
    /// the piece.
    places: Vec<Place>,
    /// The cases so far, each with a flag for running split. The case that failed last comes first,
    /// because the same case often finds neighbouring faults.
    known: Vec<(Case, bool)>,
    /// The cases that have not run yet.
    further: Box<dyn Iterator<Item = Case> + 'a>,
}

/// The outcome of the faults of one file.
#[derive(Default)]
struct Tally {
    red: usize,
    excused: usize,
    survived: usize,
    /// Excuses that no fault needed.
    stale: usize,
}

/// Plants every fault in these lines of the files under `shaders/` that `targets` use and whose
/// path contains `only`. Returns true if no fault survived without an excuse and no excuse is
/// stale.
pub fn run(device: &Device, targets: &[Target], only: &str, lines: &RangeInclusive<usize>) -> anyhow::Result<bool> {
    let mut files = files::all()?;
    files.retain(|path| path.contains(only));
    let row = |name: &str, tally: &Tally| {
        println!("{name:<36} {:>6} {:>7} {:>8} {:>5}", tally.red, tally.excused, tally.survived, tally.stale);
    };
    println!("{:<36} {:>6} {:>7} {:>8} {:>5}", "file", "red", "excused", "survived", "stale");
    let mut total = Tally::default();
    for path in files {
        let text = read(&path)?;
        let users = users(device, targets, &path, &text)?;
        if users.is_empty() {
            continue;
        }
        let tally = file(device, &path, &text, lines, users)?;
        row(&path, &tally);
        total.red += tally.red;
        total.excused += tally.excused;
        total.survived += tally.survived;
        total.stale += tally.stale;
    }
    row("all", &total);
    anyhow::ensure!(total.red + total.excused + total.survived > 0, "no fault was planted");
    Ok(total.survived == 0 && total.stale == 0)
}

/// The first shader of every variant that contains the file, with and without subgroups and for
/// every KV type.
fn users<'a>(device: &'a Device, targets: &'a [Target], path: &str, text: &str) -> anyhow::Result<Vec<User<'a>>> {
    let by_format = BY_FORMAT.iter().find(|(file, _)| *file == path).map(|(_, alone)| *alone);
    let wanted = match path.starts_with("shaders/quant/") {
        true => FORMAT_CASES,
        false if by_format.is_some() => FORMAT_CASES,
        false if BRANCHING.0.iter().any(|file| path == format!("shaders/{file}")) => BRANCHING.1,
        false => CASES,
    };
    let mut found = BTreeMap::new();
    for target in targets {
        // One weight format represents the others. KV types need separate shaders, because they
        // read and write differently.
        let kv =
            target.shader.pieces.iter().flatten().find_map(|piece| if let Piece::Kv(ty) = piece { Some(format!("{ty:?}")) } else { None });
        let format = target.format().filter(|ty| by_format.is_some_and(|alone| alone.is_none_or(|alone| alone == *ty))).map(|ty| ty.name());
        let key = (target.shader.variant.name, target.shader.subgroups, kv, format);
        if found.contains_key(&key) {
            continue;
        }
        let places = places(&target.shader, &target.shader.source(), text);
        if !places.is_empty() {
            found.insert(key, (target, places));
        }
    }
    let wanted = (ENOUGH / found.len().max(1)).clamp(FEW, wanted);
    let mut users = vec![];
    for (target, places) in found.into_values() {
        users.push(User { target, places, known: vec![], further: Box::new(target.cases(device.caps(), 0, wanted)) });
    }
    Ok(users)
}

fn file(device: &Device, path: &str, text: &str, lines: &RangeInclusive<usize>, mut users: Vec<User<'_>>) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let mut excuses = Excuses::of(path, text)?;
    let wide = device.caps().subgroup_size >= 32;
    for fault in faults::of(text).into_iter().filter(|fault| lines.contains(&(fault.line + 1))) {
        let excuse = excuses.find(&fault, wide);
        let planted = excuse.is_none_or(|found| excuses.plants(found));
        let red = if planted { red(device, text, &fault.plant(text), &mut users)? } else { Some(false) };
        match (red, excuse) {
            (None, _) => {}
            (Some(true), _) => tally.red += 1,
            (Some(false), Some(found)) => {
                excuses.note(found);
                tally.excused += 1;
            }
            (Some(false), None) => {
                report(path, &fault);
                tally.survived += 1;
            }
        }
    }
    tally.stale = excuses.report_stale(path, lines);
    Ok(tally)
}

fn report(path: &str, fault: &Fault) {
    println!("{path}:{}: survived: {}\n    {}\n    {}", fault.line + 1, fault.kind, fault.before.trim(), fault.after.trim());
}

/// True if a case of some shader fails with the fault. `None` if the result is not a valid shader.
fn red(device: &Device, text: &str, mutant: &str, users: &mut [User<'_>]) -> anyhow::Result<Option<bool>> {
    let mut valid = false;
    for n in 0..users.len() {
        let user = &mut users[n];
        let shader = &user.target.shader;
        let mut source = shader.source();
        for place in &user.places {
            source = source.replacen(&renamed(text, *place), &renamed(mutant, *place), 1);
        }
        anyhow::ensure!(source != shader.source(), "a fault changed nothing in {}", shader.label());
        if shaders::validate(&source, shader).is_err() {
            continue;
        }
        valid = true;
        if user.red(device, &device.with_source(shader, source))? {
            users[..=n].rotate_right(1);
            return Ok(Some(true));
        }
    }
    Ok(valid.then_some(false))
}

impl User<'_> {
    /// True if any case fails on `faulty`, which is `device` with a fault planted.
    fn red(&mut self, device: &Device, faulty: &Device) -> anyhow::Result<bool> {
        let label = self.target.shader.label();
        let holds = |device: &Device, (case, split): &(Case, bool)| {
            let compare = if *split { Case::compare_split } else { Case::compare };
            Ok::<_, kernels::Error>(compare(case, device, !self.target.shader.subgroups)?.holds())
        };
        let mut n = 0;
        loop {
            if n == self.known.len() {
                let Some(case) = self.further.next() else { return Ok(false) };
                let known = (case, n % 2 == 1);
                anyhow::ensure!(holds(device, &known).with_context(|| label.clone())?, "{label} fails before any fault is planted");
                self.known.push(known);
            }
            if !holds(faulty, &self.known[n]).with_context(|| label.clone())? {
                self.known[..=n].rotate_right(1);
                return Ok(true);
            }
            n += 1;
        }
    }
}
