//! Plants faults, one at a time: changed lines of shaders, and wrong parameters of operations.
//! Every fault that compiles must make a parity case fail. Results are recorded with the hash of
//! what they are about.

pub mod excuses;
pub mod faults;
mod lines;
mod params;
mod reasons;

use crate::races::Subject;
use crate::records::{self, Records};
use crate::{files, lanes, read};
use kernels::testing::kernel::Variant;
use kernels::testing::kernel::compose::Piece;
use kernels::testing::lower;
use kernels::testing::sweep::{self, Target};
use kernels::{Class, Device, Limits, Select};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Mutex;

/// The results, by file of a shader or by kernel.
const RECORDS: records::File = ("docs/faults.tsv", "subject\tadapter\thash\tred\texcused\tsurvived\tstale");

/// What is planted.
pub struct Wanted<'a> {
    /// Only faults in shader files whose path contains this, if it is not empty, and then no wrong
    /// parameters.
    pub file: &'a str,
    /// Only faults in these lines.
    pub lines: &'a RangeInclusive<usize>,
    /// Whether only wrong parameters are planted.
    pub parameters: bool,
    /// Whether some kernels are left out.
    pub partial: bool,
    /// Whether to leave out what is recorded with the same hash.
    pub resume: bool,
}

/// The outcome of the faults of one file or of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    red: usize,
    excused: usize,
    survived: usize,
    /// Excuses that no fault needed.
    stale: usize,
}

impl Tally {
    fn plus(&mut self, other: &Self) {
        self.red += other.red;
        self.excused += other.excused;
        self.survived += other.survived;
        self.stale += other.stale;
    }

    fn planted(&self) -> usize {
        self.red + self.excused + self.survived
    }

    fn holds(&self) -> bool {
        self.survived == 0 && self.stale == 0
    }

    fn text(&self) -> String {
        let Self { red, excused, survived, stale } = self;
        format!("{red}\t{excused}\t{survived}\t{stale}")
    }

    fn read(text: &str) -> Option<Self> {
        let numbers: Vec<usize> = text.split('\t').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [red, excused, survived, stale] = numbers[..] else { return None };
        Some(Self { red, excused, survived, stale })
    }
}

/// What faults are planted in together.
enum Unit<'a> {
    File { path: String, text: String },
    Kernel { name: &'static str, users: Vec<&'a Subject> },
}

impl Unit<'_> {
    fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.clone(),
            Self::Kernel { name, .. } => format!("parameters of {name}"),
        }
    }
}

/// Plants every fault in what is wanted of the shaders of `targets`. Returns true if no fault
/// survived without an excuse and no excuse is stale.
pub fn run(device: &Device, select: &Select, targets: &[Target], wanted: &Wanted<'_>) -> anyhow::Result<bool> {
    let composed: Vec<_> = targets.iter().cloned().map(Subject::of).collect();
    let units = units(&composed, wanted)?;
    let cases = records::cases(targets);
    let adapter = records::adapter(device);
    let records = Mutex::new(Records::read(RECORDS)?);
    let total = Mutex::new(Tally::default());
    println!("{:<44} {:>6} {:>7} {:>8} {:>5}", "file or kernel", "red", "excused", "survived", "stale");
    let row = |name: &str, tally: &Tally, note: &str| {
        println!("{name:<44} {:>6} {:>7} {:>8} {:>5}{note}", tally.red, tally.excused, tally.survived, tally.stale);
    };
    let work = |device: &mut Device, unit: &Unit<'_>| {
        let name = unit.name();
        let hash = match unit {
            Unit::File { path, text } => lines::hash(path, text, &composed, &cases)?,
            Unit::Kernel { users, .. } => params::hash(users, &cases),
        };
        let known = records.lock().expect("no panic").of(&name, &adapter, &hash).and_then(Tally::read).filter(|_| wanted.resume);
        let tally = match (&known, unit) {
            (Some(known), _) => known.clone(),
            (None, Unit::File { path, text }) => lines::run(device, path, text, wanted.lines, &composed)?,
            (None, Unit::Kernel { name, users }) => params::run(device, name, users)?,
        };
        if tally != Tally::default() {
            row(&name, &tally, if known.is_some() { "  recorded" } else { "" });
            total.lock().expect("no panic").plus(&tally);
        }
        if known.is_none() && !wanted.partial && tally.planted() > 0 {
            let mut records = records.lock().expect("no panic");
            records.put(&name, &adapter, &hash, tally.text());
            records.write()?;
        }
        Ok(())
    };
    // As in the parity of `verify-shaders`.
    let threads = if device.adapter().class == Class::Software { lanes::cores() } else { 1 };
    lanes::each(threads, &units, || Ok(sweep::open(select, Limits::from_env())?), work)?;
    if !wanted.partial && !wanted.parameters && wanted.file.is_empty() {
        let names: BTreeSet<_> = units.iter().map(Unit::name).collect();
        let mut records = records.lock().expect("no panic");
        records.keep(&adapter, |name| names.contains(name));
        records.write()?;
    }
    let total = total.into_inner().expect("no panic");
    row("all", &total, "");
    anyhow::ensure!(total.planted() > 0, "no fault was planted: no kernel that {adapter} runs has what was asked for");
    Ok(total.holds())
}

/// The files and the kernels that are wanted.
fn units<'a>(composed: &'a [Subject], wanted: &Wanted<'_>) -> anyhow::Result<Vec<Unit<'a>>> {
    let mut units = vec![];
    let files = if wanted.parameters { vec![] } else { files::all()? };
    for path in files.into_iter().filter(|path| path.contains(wanted.file)) {
        let text = read(&path)?;
        as_built(&path, &text)?;
        units.push(Unit::File { path, text });
    }
    if wanted.file.is_empty() && *wanted.lines == (1..=usize::MAX) {
        let mut kernels: BTreeMap<&'static str, Vec<&Subject>> = BTreeMap::new();
        for user in first_of_each(composed, |_| None).into_values() {
            kernels.entry(user.target.shader.variant.name).or_default().push(user);
        }
        units.extend(kernels.into_iter().map(|(name, users)| Unit::Kernel { name, users }));
    }
    Ok(units)
}

/// Fails if a shader file is not the text that this program was built with. Faults are planted in
/// the built text, where no line of another text would be found.
fn as_built(path: &str, text: &str) -> anyhow::Result<()> {
    let mut built = lower::variants().flat_map(Variant::pieces).filter(|(of, _)| path.strip_prefix("shaders/") == Some(of));
    anyhow::ensure!(built.all(|(_, built)| *built == text), "{path} is not the text that this program was built with: build it again");
    Ok(())
}

/// What shaders of one kernel differ in: its variant, its subgroup form and the threads of a
/// subgroup, the type of its states, and sometimes its weight format.
pub type Form = (&'static str, bool, u32, Option<String>, Option<&'static str>);

/// The first shader of every form. KV types need separate shaders, because they read and write
/// differently. One weight format represents the others, unless `format` gives a name for it.
pub fn first_of_each<'a>(
    composed: impl IntoIterator<Item = &'a Subject>,
    format: impl Fn(&Target) -> Option<&'static str>,
) -> BTreeMap<Form, &'a Subject> {
    let mut found = BTreeMap::new();
    for user in composed {
        let shader = &user.target.shader;
        let kv = shader.pieces.iter().flatten().find_map(|piece| if let Piece::Kv(ty) = piece { Some(format!("{ty:?}")) } else { None });
        found.entry((shader.variant.name, shader.subgroups, user.threads, kv, format(&user.target))).or_insert(user);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_after_the_build_is_named() {
        let path = "shaders/matmul/matmul_weight_tile128.wgsl";
        let text = read(path).unwrap();
        as_built(path, &text).unwrap();
        let error = as_built(path, &format!("{text}// more\n")).unwrap_err().to_string();
        assert!(error.starts_with(path) && error.contains("build it again"), "{error}");
    }

    #[test]
    fn a_tally_is_read_as_it_is_written() {
        let tally = Tally { red: 31, excused: 4, survived: 0, stale: 1 };
        assert_eq!(Tally::read(&tally.text()), Some(tally));
        assert_eq!(Tally::read("31\t4\t0"), None);
        assert_eq!(Tally::read("31\t4\t0\tx"), None);
    }
}
