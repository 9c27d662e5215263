//! Plants faults, one at a time: changed lines of shaders, and wrong parameters of operations.
//! Every fault that compiles must make a parity case fail. Results of cards are recorded with the
//! hash of what they are about.

pub mod excuses;
pub mod faults;
pub mod interpreted;
mod lines;
mod params;
mod patterns;
mod reasons;
mod since;

use crate::races::Subject;
use crate::records::{self, Records};
use crate::{files, lanes, read};
use excuses::Excuses;
use faults::Fault;
use kernels::testing::kernel::Variant;
use kernels::testing::kernel::compose::Piece;
use kernels::testing::language;
use kernels::testing::sweep::{self, Target};
use kernels::{Class, Device, Limits, Select};
use lines::Shaders;
pub use since::Changed;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Mutex, OnceLock};

/// The results of cards, by file of a shader or by kernel.
const RECORDS: records::File = ("docs/faults.tsv", "subject\tadapter\thash\tred\texcused\tsurvived\tstale");

/// What is planted.
pub struct Wanted<'a> {
    /// Only faults in shader files whose path contains one of these, if there are any, and then no
    /// wrong parameters.
    pub files: &'a [String],
    /// Only faults in these lines.
    pub lines: &'a RangeInclusive<usize>,
    /// Whether only wrong parameters are planted.
    pub parameters: bool,
    /// Only faults in files and kernels that changed, if given.
    pub since: Option<Changed>,
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

    fn print(&self, name: &str, note: &str) {
        let Self { red, excused, survived, stale } = self;
        println!("{name:<44} {red:>6} {excused:>7} {survived:>8} {stale:>5}{note}");
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

/// What has one line in the records.
enum Unit<'a> {
    File { path: String, text: String, faults: Vec<Fault>, shaders: OnceLock<Shaders<'a>> },
    Kernel { name: &'static str, users: Vec<&'a Subject> },
}

/// Number of faults of a file that a thread plants before it takes others.
const TOGETHER: usize = 16;

impl<'a> Unit<'a> {
    fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.clone(),
            Self::Kernel { name, .. } => format!("parameters of {name}"),
        }
    }

    /// Number of parts that threads take one by one: some faults of a file, or a whole kernel.
    fn parts(&self) -> usize {
        match self {
            Self::File { faults, .. } => faults.len().div_ceil(TOGETHER),
            Self::Kernel { .. } => 1,
        }
    }

    fn hash(&self, composed: &'a [Subject], cases: &HashMap<&'static str, String>) -> anyhow::Result<String> {
        match self {
            Self::File { path, text, shaders, .. } => {
                lines::hash(path, text, shaders.get_or_init(|| Shaders::of(path, text, composed)), cases)
            }
            Self::Kernel { name, users } => Ok(params::hash(name, users, cases)),
        }
    }

    fn run(&self, part: usize, device: &Device, composed: &'a [Subject]) -> anyhow::Result<Outcome> {
        match self {
            Self::File { path, text, faults, shaders } => {
                let faults = &faults[part * TOGETHER..faults.len().min((part + 1) * TOGETHER)];
                lines::run(device, path, text, faults, shaders.get_or_init(|| Shaders::of(path, text, composed)))
            }
            Self::Kernel { name, users } => {
                Ok(Outcome { tally: params::run(device, name, users)?, ..Outcome::default() })
            }
        }
    }

    /// Counts the excuses in these lines that no fault needed.
    fn stale(&self, lines: &RangeInclusive<usize>, needed: &BTreeSet<usize>) -> anyhow::Result<usize> {
        match self {
            Self::File { path, text, .. } => Ok(Excuses::of(path, text)?.report_stale(path, lines, needed)),
            // Its run counted them.
            Self::Kernel { .. } => Ok(0),
        }
    }
}

/// The outcome of some faults.
#[derive(Default)]
struct Outcome {
    tally: Tally,
    /// The indices of the excuses that a fault needed.
    needed: BTreeSet<usize>,
}

/// How far a unit is.
struct Progress {
    /// Parts that are not done.
    left: usize,
    so_far: Outcome,
    failed: bool,
    /// The hash, and what is recorded with it.
    known: Option<(String, Option<Tally>)>,
}

/// One run over all units.
struct Run<'a> {
    wanted: &'a Wanted<'a>,
    composed: &'a [Subject],
    cases: HashMap<&'static str, String>,
    adapter: String,
    /// Whether results are written to the file.
    records_it: bool,
    units: Vec<Unit<'a>>,
    progress: Vec<Mutex<Progress>>,
    records: Mutex<Records>,
    total: Mutex<Tally>,
}

impl<'a> Run<'a> {
    /// The hash of a unit, and what is recorded with it.
    fn known(&self, n: usize) -> anyhow::Result<(String, Option<Tally>)> {
        let mut progress = self.progress[n].lock().expect("no panic");
        if progress.known.is_none() {
            let hash = self.units[n].hash(self.composed, &self.cases)?;
            let records = self.records.lock().expect("no panic");
            let tally = records
                .of(&self.units[n].name(), &self.adapter, &hash)
                .and_then(Tally::read)
                .filter(|_| self.wanted.resume);
            progress.known = Some((hash, tally));
        }
        Ok(progress.known.clone().expect("it was set above"))
    }

    /// Runs a part of a unit that is not recorded. The last part ends the unit.
    fn part(&self, n: usize, part: usize, device: &Device) -> anyhow::Result<()> {
        let result = self.known(n).and_then(|(_, known)| match known {
            Some(_) => Ok(Outcome::default()),
            None => self.units[n].run(part, device, self.composed),
        });
        let mut progress = self.progress[n].lock().expect("no panic");
        progress.left -= 1;
        progress.failed |= result.is_err();
        let Outcome { tally, needed } = result?;
        progress.so_far.tally.plus(&tally);
        progress.so_far.needed.extend(needed);
        match (&progress.known, progress.left, progress.failed) {
            (Some((hash, known)), 0, false) => self.end(&self.units[n], hash, known.as_ref(), &progress.so_far),
            _ => Ok(()),
        }
    }

    /// Prints and records a unit whose parts are done.
    fn end(&self, unit: &Unit<'_>, hash: &str, known: Option<&Tally>, found: &Outcome) -> anyhow::Result<()> {
        let mut tally = known.unwrap_or(&found.tally).clone();
        if known.is_none() && tally.planted() > 0 {
            tally.stale += unit.stale(self.wanted.lines, &found.needed)?;
        }
        if tally != Tally::default() {
            tally.print(&unit.name(), if known.is_some() { "  recorded" } else { "" });
            self.total.lock().expect("no panic").plus(&tally);
        }
        if known.is_none() && self.records_it && tally.planted() > 0 {
            let mut records = self.records.lock().expect("no panic");
            records.put(&unit.name(), &self.adapter, hash, tally.text());
            records.write()?;
        }
        Ok(())
    }
}

/// Plants every fault in what is wanted of the shaders of `targets`. Returns true if no fault
/// survived without an excuse and no excuse is stale.
///
/// # Errors
/// If a unit fails, for example because a fault took the device with it, the other units are done
/// nevertheless.
pub fn run(device: &Device, select: &Select, targets: &[Target], wanted: &Wanted<'_>) -> anyhow::Result<bool> {
    let composed: Vec<_> = targets.iter().cloned().map(Subject::of).collect();
    let units = units(&composed, wanted)?;
    if units.is_empty() && wanted.since.is_some() {
        println!("no shader file and no kernel has changed: no fault to plant");
        return Ok(true);
    }
    let card = device.adapter().class != Class::Software;
    anyhow::ensure!(
        card || !wanted.resume,
        "{} has no results of a software driver: --since REV plants what changed since then",
        RECORDS.0
    );
    let parts: Vec<(usize, usize)> =
        units.iter().enumerate().flat_map(|(n, unit)| (0..unit.parts()).map(move |part| (n, part))).collect();
    let start = |unit: &Unit<'_>| {
        Mutex::new(Progress { left: unit.parts(), so_far: Outcome::default(), failed: false, known: None })
    };
    let run = Run {
        wanted,
        composed: &composed,
        cases: records::cases(targets),
        adapter: records::adapter(device),
        records_it: card && !wanted.partial,
        progress: units.iter().map(start).collect(),
        units,
        records: Mutex::new(Records::read(RECORDS)?),
        total: Mutex::default(),
    };
    println!("{:<44} {:>6} {:>7} {:>8} {:>5}", "file or kernel", "red", "excused", "survived", "stale");
    let open = || Ok(sweep::open(select, Limits::from_env())?);
    let work = |device: &mut Device, &(n, part): &(usize, usize)| {
        if let Err(error) = run.part(n, part, device) {
            println!("{}: {error:#}", run.units[n].name());
            *device = open()?;
        }
        Ok(())
    };
    lanes::each(lanes::for_device(device), &parts, open, work)?;
    let failed = |n: &usize| run.progress[*n].lock().expect("no panic").failed;
    let failed: Vec<_> = (0..run.units.len()).filter(failed).map(|n| run.units[n].name()).collect();
    anyhow::ensure!(failed.is_empty(), "no result: {}", failed.join(", "));
    if run.records_it && !wanted.parameters && wanted.files.is_empty() && wanted.since.is_none() {
        let names: BTreeSet<_> = run.units.iter().map(Unit::name).collect();
        let mut records = run.records.lock().expect("no panic");
        records.keep(&run.adapter, |name| names.contains(name));
        records.write()?;
    }
    let total = run.total.into_inner().expect("no panic");
    total.print("all", "");
    anyhow::ensure!(
        total.planted() > 0,
        "no fault was planted: no kernel that {} runs has what was asked for",
        run.adapter
    );
    Ok(total.holds())
}

/// The files and the kernels that are wanted.
fn units<'a>(composed: &'a [Subject], wanted: &Wanted<'_>) -> anyhow::Result<Vec<Unit<'a>>> {
    let mut units = vec![];
    let files = if wanted.parameters { vec![] } else { files::all()? };
    let changed = |path: &String| wanted.since.as_ref().is_none_or(|since| since.file(path));
    for path in files.into_iter().filter(|path| files::is_wanted(path, wanted.files) && changed(path)) {
        let text = read(&path)?;
        as_built(&path, &text)?;
        let faults = faults::of(&text).into_iter().filter(|fault| wanted.lines.contains(&(fault.line + 1))).collect();
        units.push(Unit::File { path, text, faults, shaders: OnceLock::new() });
    }
    if wanted.files.is_empty() && *wanted.lines == (1..=usize::MAX) {
        let mut kernels: BTreeMap<&'static str, Vec<&Subject>> = BTreeMap::new();
        let changed = |of: &&Subject| {
            wanted.since.as_ref().is_none_or(|since| since.kernel(of.target.shader.variant, of.target.stem))
        };
        for user in first_of_each(composed, |_| None).into_values().filter(changed) {
            kernels.entry(user.target.shader.variant.name).or_default().push(user);
        }
        units.extend(kernels.into_iter().map(|(name, users)| Unit::Kernel { name, users }));
    }
    Ok(units)
}

/// Fails if a shader file is not the text that this program was built with. Faults are planted in
/// the built text, where no line of another text would be found.
fn as_built(path: &str, text: &str) -> anyhow::Result<()> {
    let mut built =
        language::variants().flat_map(Variant::pieces).filter(|(of, _)| path.strip_prefix("shaders/") == Some(of));
    anyhow::ensure!(
        built.all(|(_, built)| *built == text),
        "{path} is not the text that this program was built with: build it again"
    );
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
        let kv = shader
            .pieces
            .iter()
            .flatten()
            .find_map(|piece| if let Piece::Kv(ty) = piece { Some(format!("{ty:?}")) } else { None });
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
