//! Faults in the lines of shader files.

use super::tally::Outcome;
use crate::faults::excuses::Excuses;
use crate::faults::{self, BARRIER, Fault};
use crate::files::{Place, places, replaced};
use crate::races::{self, Subject, first_of_each};
use crate::records::Digest;
use crate::shaders;
use anyhow::Context as _;
use gguf::GgmlType;
use kernels::Device;
use kernels::testing::parity::Case;
use kernels::testing::sweep::Target;
use std::collections::HashMap;
use std::sync::OnceLock;

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
const BRANCHING: ([&str; 5], usize) = (
    [
        "sampling/sample.wgsl",
        "sampling/sample_scan.wgsl",
        "sampling/top_k.wgsl",
        "sampling/pieces/strips.wgsl",
        "shared/threefry.wgsl",
    ],
    120,
);

/// Files with parts that only some weight formats use, and the formats with separate cases, a few
/// each. `None` means every format. Otherwise it is a format with two scales per block or unit of
/// the file, with blocks longer than a tile, or with rows that neighbouring threads share.
const BY_FORMAT: [(&str, Option<GgmlType>); 11] = [
    ("shaders/matmul/matmul_input_tile128.wgsl", Some(GgmlType::Q4_K)),
    ("shaders/matmul/matmul_rows8.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/matmul_rows8_glu.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/matmul_rows8_group.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/pieces/tile128_groups.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/shared/dot_q8.wgsl", None),
    ("shaders/matmul/pieces/rows8_sums.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/pieces/rows8_steps_8.wgsl", Some(GgmlType::Q6_K)),
    ("shaders/matmul/pieces/tile64_tiles.wgsl", Some(GgmlType::Q4_K)),
    ("shaders/quant/units/ready.wgsl", Some(GgmlType::Q5_K)),
    ("shaders/quant/units/rows_sums.wgsl", Some(GgmlType::Q6_K)),
];

/// The first shader of every form that contains a file.
pub struct Shaders<'a> {
    found: Vec<Found<'a>>,
    /// Number of cases of each.
    cases: usize,
}

/// A shader that a file is part of.
pub struct Found<'a> {
    pub of: &'a Subject,
    /// The renaming of the file's identifiers in the shader's text, one for each binding that uses
    /// the piece.
    places: Vec<Place>,
    /// What its entry point reaches.
    reached: OnceLock<Vec<u32>>,
}

impl<'a> Shaders<'a> {
    /// For some files every weight format has a shader of its own.
    pub fn of(path: &str, text: &str, composed: &'a [Subject]) -> Self {
        let by_format = BY_FORMAT.iter().find(|(file, _)| *file == path).map(|(_, alone)| *alone);
        let wanted = match path.starts_with("shaders/quant/") {
            true => FORMAT_CASES,
            false if by_format.is_some() => FORMAT_CASES,
            false if BRANCHING.0.iter().any(|file| path == format!("shaders/{file}")) => BRANCHING.1,
            false => CASES,
        };
        let format = |target: &Target| {
            target
                .format()
                .filter(|ty| by_format.is_some_and(|alone| alone.is_none_or(|alone| alone == *ty)))
                .map(|ty| ty.name())
        };
        let places = |of: &Subject| places(&of.target.shader, &of.source, text);
        let found = first_of_each(composed.iter().filter(|of| !places(of).is_empty()), format);
        let found: Vec<_> =
            found.into_values().map(|of| Found { of, places: places(of), reached: OnceLock::new() }).collect();
        let cases = (ENOUGH / found.len().max(1)).clamp(FEW, wanted);
        Self { found, cases }
    }

    pub fn found(&self) -> &[Found<'a>] {
        &self.found
    }
}

impl Found<'_> {
    fn reached(&self) -> anyhow::Result<&[u32]> {
        if self.reached.get().is_none() {
            let reached = reached(&self.of.source, self.of)?.with_context(|| self.of.target.shader.label())?;
            self.reached.get_or_init(|| reached);
        }
        Ok(self.reached.get().expect("it was set above"))
    }
}

/// A shader that a file is part of, with what runs its cases.
pub trait Shows<'a> {
    fn found(&self) -> &'a Found<'a>;

    /// Whether a case fails with this text in place of the shader's own.
    fn shows(&mut self, source: String) -> anyhow::Result<bool>;
}

/// A shader that a file is part of, with its cases on a device.
struct User<'a> {
    of: &'a Found<'a>,
    /// The cases so far, each with a flag for running split. The case that failed last comes first,
    /// because the same case often finds neighbouring faults.
    known: Vec<(Case, bool)>,
    device: &'a Device,
    /// The cases that have not run yet.
    further: Box<dyn Iterator<Item = Case> + 'a>,
}

/// The hash of what decides the outcome of a file: its faults, each with its excuse, and the
/// kernels that contain it with their cases. Comments decide nothing, and excuses of other files
/// neither.
pub fn hash(
    path: &str,
    text: &str,
    shaders: &Shaders<'_>,
    cases: &HashMap<&'static str, String>,
) -> anyhow::Result<String> {
    let mut digest = Digest::default();
    digest.add(&shaders.cases.to_le_bytes());
    let excuses = Excuses::of(path, text)?;
    for fault in faults::of(text) {
        digest.add(fault.after.as_bytes());
        digest.add(excuses.name(&fault).as_bytes());
    }
    shaders.found.iter().for_each(|Found { of, .. }| digest.shader(&of.target, &of.source, cases));
    Ok(digest.text())
}

/// Plants faults in a file. Nothing is planted in a file that no shader has.
pub fn run(
    device: &Device,
    path: &str,
    text: &str,
    faults: &[Fault],
    shaders: &Shaders<'_>,
) -> anyhow::Result<Outcome> {
    let Shaders { found, cases } = shaders;
    let mut users: Vec<_> = found.iter().map(|of| User::of(of, device, *cases)).collect();
    planted(path, text, faults, device.caps().subgroup_size >= 32, &mut users)
}

/// Plants faults in a file that the shaders of these users have. `wide`: subgroups have at least 32
/// threads.
pub fn planted<'a>(
    path: &str,
    text: &str,
    faults: &[Fault],
    wide: bool,
    users: &mut [impl Shows<'a>],
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    if users.is_empty() {
        return Ok(outcome);
    }
    let excuses = Excuses::of(path, text)?;
    let mut analysed: Vec<_> = users.iter().map(|user| user.found().of).collect();
    for fault in faults {
        let excuse = excuses.find(fault, wide);
        let planted = excuse.is_none_or(|found| excuses.plants(found));
        let races = fault.kind == BARRIER
            && (races::shows(text, fault, &mut analysed, races::FEW)? == Some(true)
                || (excuse.is_none() && races::shows_anywhere(text, fault)?));
        let red = match races {
            true => Some(true),
            false if planted => red(text, &fault.plant(text), users)?,
            false => Some(false),
        };
        match (red, excuse) {
            (None, _) => {}
            (Some(true), _) => outcome.tally.red += 1,
            (Some(false), Some(found)) => {
                outcome.needed.insert(found);
                outcome.tally.excused += 1;
            }
            (Some(false), None) => {
                report(path, fault);
                outcome.tally.survived += 1;
            }
        }
    }
    Ok(outcome)
}

fn report(path: &str, fault: &Fault) {
    println!(
        "{path}:{}: survived: {}\n    {}\n    {}",
        fault.line + 1,
        fault.kind,
        fault.before.trim(),
        fault.after.trim()
    );
}

/// What the entry point of a text reaches. `None` if the text is no valid shader of this kind.
fn reached(source: &str, of: &Subject) -> anyhow::Result<Option<Vec<u32>>> {
    let shader = &of.target.shader;
    let Ok((module, _)) = shaders::validate(source, shader) else { return Ok(None) };
    shaders::reached(&module, shader).map(Some).map_err(anyhow::Error::msg)
}

/// True if a case of some shader fails with the fault. `None` if the fault makes no valid shader,
/// or changes only functions that no shader calls.
fn red<'a>(text: &str, mutant: &str, users: &mut [impl Shows<'a>]) -> anyhow::Result<Option<bool>> {
    let mut valid = false;
    for n in 0..users.len() {
        let found = users[n].found();
        let Found { of, places, .. } = found;
        let source = replaced(&of.source, text, mutant, places);
        anyhow::ensure!(source != of.source, "a fault changed nothing in {}", of.target.shader.label());
        let right = found.reached()?;
        if reached(&source, of)?.is_none_or(|reached| reached == right) {
            continue;
        }
        valid = true;
        if users[n].shows(source)? {
            users[..=n].rotate_right(1);
            return Ok(Some(true));
        }
    }
    Ok(valid.then_some(false))
}

impl<'a> User<'a> {
    fn of(of: &'a Found<'a>, device: &'a Device, cases: usize) -> Self {
        let further = of.of.target.cases(device.caps(), 0, cases).map(|(_, case)| case);
        Self { of, known: vec![], device, further: Box::new(further) }
    }
}

impl<'a> Shows<'a> for User<'a> {
    fn found(&self) -> &'a Found<'a> {
        self.of
    }

    fn shows(&mut self, source: String) -> anyhow::Result<bool> {
        let (device, shader) = (self.device, &self.of.of.target.shader);
        let (label, faulty) = (shader.label(), device.with_source(shader, source));
        let holds = |device: &Device, (case, split): &(Case, bool)| {
            let compare = if *split { Case::compare_split } else { Case::compare };
            Ok::<_, kernels::Error>(compare(case, device, !shader.subgroups)?.holds())
        };
        let mut n = 0;
        loop {
            if n == self.known.len() {
                let Some(case) = self.further.next() else { return Ok(false) };
                let known = (case, n % 2 == 1);
                anyhow::ensure!(
                    holds(device, &known).with_context(|| label.clone())?,
                    "{label} fails before any fault is planted"
                );
                self.known.push(known);
            }
            if !holds(&faulty, &self.known[n]).with_context(|| label.clone())? {
                self.known[..=n].rotate_right(1);
                return Ok(true);
            }
            n += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::reached;
    use crate::races::Subject;
    use crate::records::code;
    use kernels::testing::sweep::Target;

    #[test]
    fn what_a_shader_reaches_is_neither_comments_nor_functions_that_it_does_not_call() {
        let targets = Target::all(&kernels::Caps::WEBGPU).into_iter();
        let of =
            targets.map(Subject::of).find(|of| of.target.shader.label() == "attention_tile_64 kv-f32 kv-f32").unwrap();
        let whole = reached(&of.source, &of).unwrap().unwrap();
        assert_eq!(reached(&code(&of.source), &of).unwrap().unwrap(), whole);
        let planted = |right: &str, wrong: &str| {
            assert!(of.source.contains(right), "{right}");
            reached(&of.source.replacen(right, wrong, 1), &of).unwrap().unwrap() != whole
        };
        assert!(!planted("(-65504.0)", "(65504.0)"), "of the range of f16, which only other kernels need");
        assert!(planted("product * params.scale", "product / params.scale"));
        assert_eq!(reached("not a shader", &of).unwrap(), None);
    }
}
