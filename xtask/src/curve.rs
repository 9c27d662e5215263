//! `curve`: the speed of models over lengths of prompts, depths and numbers of sequences, beside a
//! peer.

mod report;

use crate::workspace::root;
use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measure whole curves of models with `weft bench`: prompts of many lengths, depths, batches
///
/// Every point is kept in OUT/curve.json as soon as it is measured. A point of the same commit,
/// device, file and mode is not measured again, so an interrupted curve is continued. The tables of
/// all points of this commit and device are printed and written to OUT/curve.md; each file and mode
/// gets a picture, OUT/FILE-MODE.svg.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask curve qwen3-8b.gguf
  cargo xtask curve qwen3-8b.gguf qwen3-0.6b.gguf --beside llama-bench --mode all,no-coop
  cargo xtask curve qwen3-8b.gguf --prompts 16,64,512 --depths 0 --batches 1 --out target/short")]
pub struct Args {
    /// Model files
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The binary to measure
    #[arg(long, value_name = "BINARY", default_value = "target/release/weft")]
    weft: PathBuf,

    /// `llama-bench` of llama.cpp, which takes turns with weft: prompts and one sequence only
    #[arg(long, value_name = "PEER_BENCH")]
    beside: Option<PathBuf>,

    /// What the device may use
    #[arg(long, value_enum, value_name = "MODE,..", value_delimiter = ',', default_value = "all")]
    mode: Vec<Mode>,

    /// Lengths of prompts without context; those of 512 and 2048 tokens are read at every depth
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192"
    )]
    prompts: Vec<u32>,

    /// Tokens of context of prompts and of generation
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "0,4096,16384")]
    depths: Vec<u32>,

    /// Sequences that generate at once, after 512 tokens of context
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,8,16,32,64")]
    batches: Vec<u32>,

    /// Measured runs of each point
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,

    /// The commit of the binary [default: that of the checkout]
    #[arg(long)]
    commit: Option<String>,

    /// Folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "target/curve")]
    out: PathBuf,
}

/// What the device may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Everything it has.
    All,
    /// No cooperative matrices.
    NoCoop,
    /// WebGPU's default limits and no optional feature.
    Webgpu,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NoCoop => "no-coop",
            Self::Webgpu => "webgpu",
        }
    }

    /// The environment of weft and of a peer. Without matrix cores, and under WebGPU's limits, the
    /// peer has no matrix cores either.
    fn environment(self) -> &'static [(&'static str, &'static str)] {
        const PEER: [(&str, &str); 2] = [("GGML_VK_DISABLE_COOPMAT", "1"), ("GGML_VK_DISABLE_COOPMAT2", "1")];
        match self {
            Self::All => &[],
            Self::NoCoop => &[("WEFT_WITHOUT", "coop"), PEER[0], PEER[1]],
            Self::Webgpu => &[("WEFT_LIMITS", "webgpu"), PEER[0], PEER[1]],
        }
    }
}

/// The prompts that are read at every depth.
const DEEP: [u32; 2] = [512, 2048];
/// Tokens that one sequence generates, and each of several.
const GENERATED: [u32; 2] = [64, 32];
/// Context of several sequences.
const BATCH_DEPTH: u32 = 512;

/// Points that one run of a benchmark measures.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ask {
    prompts: Vec<u32>,
    generate: u32,
    depth: u32,
    sequences: u32,
}

impl Ask {
    /// The names of its points, as `weft bench` prints them.
    fn tests(&self) -> Vec<String> {
        let depth = if self.depth > 0 { format!("@d{}", self.depth) } else { String::new() };
        let sequences = if self.sequences > 1 { format!("@b{}", self.sequences) } else { String::new() };
        let prompts = self.prompts.iter().map(|n| format!("pp{n}"));
        let kinds = prompts.chain((self.generate > 0).then(|| format!("tg{}", self.generate)));
        kinds.map(|kind| kind + &depth + &sequences).collect()
    }

    /// The points of this run that are not `done`. `None` if all are done.
    fn without(&self, done: &BTreeSet<String>) -> Option<Self> {
        let open = |n: u32, of: &Self| !done.contains(&of.tests()[0]) && n > 0;
        let one = |prompts: Vec<u32>, generate: u32| Self { prompts, generate, ..self.clone() };
        let prompts = self.prompts.iter().copied().filter(|&n| open(n, &one(vec![n], 0))).collect::<Vec<_>>();
        let generate = if open(self.generate, &one(vec![], self.generate)) { self.generate } else { 0 };
        (generate > 0 || !prompts.is_empty()).then(|| one(prompts, generate))
    }

    fn list(&self) -> String {
        if self.prompts.is_empty() {
            "0".to_string()
        } else {
            self.prompts.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        }
    }
}

fn asks(args: &Args) -> Vec<Ask> {
    let mut asks = vec![];
    for &depth in &args.depths {
        let prompts = if depth == 0 {
            args.prompts.clone()
        } else {
            args.prompts.iter().copied().filter(|n| DEEP.contains(n)).collect()
        };
        asks.push(Ask { prompts, generate: GENERATED[0], depth, sequences: 1 });
    }
    let several = args.batches.iter().map(|&sequences| Ask {
        prompts: vec![],
        generate: GENERATED[1],
        depth: BATCH_DEPTH,
        sequences,
    });
    asks.into_iter().chain(several).collect()
}

/// Which binary a point is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Weft,
    Peer,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Weft => "weft",
            Self::Peer => "llama.cpp",
        }
    }
}

/// The points so far, each an object with the fields who, commit, device, file, mode, test, rate,
/// least, most.
struct Points {
    path: PathBuf,
    all: Vec<Value>,
}

/// What all points of one side of a curve have in common.
struct Subject<'a> {
    who: Who,
    commit: &'a str,
    device: &'a str,
    file: String,
    mode: Mode,
}

impl Subject<'_> {
    fn has(&self, point: &Value) -> bool {
        let is = |field: &str, value: &str| point[field] == *value;
        is("who", self.who.name())
            && is("commit", self.commit)
            && is("device", self.device)
            && is("file", &self.file)
            && is("mode", self.mode.name())
    }

    fn point(&self, test: &str, rates: &[f64]) -> Value {
        let mut sorted = rates.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        json!({
            "who": self.who.name(), "commit": self.commit, "device": self.device, "file": self.file, "mode": self.mode.name(),
            "test": test, "rate": median, "least": sorted[0], "most": sorted[sorted.len() - 1],
        })
    }
}

impl Points {
    fn read(path: PathBuf) -> Result<Self> {
        let all = match std::fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).with_context(|| format!("{} is no list of points", path.display()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => vec![],
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        Ok(Self { path, all })
    }

    fn rate(&self, subject: &Subject<'_>, test: &str) -> Option<f64> {
        self.all.iter().find(|point| subject.has(point) && point["test"] == *test)?["rate"].as_f64()
    }

    fn tests(&self, subject: &Subject<'_>) -> BTreeSet<String> {
        self.all
            .iter()
            .filter(|point| subject.has(point))
            .filter_map(|point| Some(point["test"].as_str()?.to_string()))
            .collect()
    }

    /// The files and modes with points of weft's binary, in the order in which they were measured.
    fn measured(&self, commit: &str, device: &str) -> Vec<(String, Mode)> {
        let mut found = vec![];
        for point in
            self.all.iter().filter(|p| p["who"] == Who::Weft.name() && p["commit"] == commit && p["device"] == device)
        {
            let mode = point["mode"].as_str().and_then(|name| Mode::from_str(name, false).ok());
            if let (Some(file), Some(mode)) = (point["file"].as_str(), mode)
                && !found.contains(&(file.to_string(), mode))
            {
                found.push((file.to_string(), mode));
            }
        }
        found
    }

    /// The peer's binary that was measured last.
    fn peer(&self, device: &str, file: &str, mode: Mode) -> Option<String> {
        let is_peer = |p: &&Value| {
            p["who"] == Who::Peer.name() && p["device"] == device && p["file"] == file && p["mode"] == mode.name()
        };
        Some(self.all.iter().rev().find(is_peer)?["commit"].as_str()?.to_string())
    }

    /// Adds points and writes all of them, completely or not at all.
    fn add(&mut self, points: Vec<Value>) -> Result<()> {
        self.all.extend(points);
        let text = self.all.iter().map(|point| format!("  {point}")).collect::<Vec<_>>().join(",\n");
        let fresh = self.path.with_extension("new");
        let written =
            std::fs::write(&fresh, format!("[\n{text}\n]\n")).and_then(|()| std::fs::rename(&fresh, &self.path));
        written.with_context(|| format!("writing {}", self.path.display()))
    }
}

pub fn run(args: &Args) -> Result<()> {
    std::fs::create_dir_all(&args.out).with_context(|| format!("making {}", args.out.display()))?;
    let mut points = Points::read(args.out.join("curve.json"))?;
    let commit = args.commit.clone().map_or_else(commit, Ok)?;
    let device = device(&args.weft)?;
    let peer = args.beside.as_ref().map(|path| fingerprint(path)).transpose()?;
    for file in &args.files {
        for &mode in &args.mode {
            let of = |who| {
                let commit = if who == Who::Weft { Some(&commit) } else { peer.as_ref() };
                Some(Subject { who, commit: commit?, device: &device, file: named(file).ok()?, mode })
            };
            let subjects: Vec<Subject<'_>> = [Who::Weft, Who::Peer].into_iter().filter_map(of).collect();
            for ask in asks(args) {
                for subject in &subjects {
                    let Some(open) = ask.without(&points.tests(subject)) else { continue };
                    if subject.who == Who::Peer && open.sequences > 1 {
                        continue;
                    }
                    eprintln!("{} {} {}: {}", subject.who.name(), subject.file, mode.name(), open.tests().join(" "));
                    let measured = match subject.who {
                        Who::Weft => weft(args, file, mode, &open)?,
                        Who::Peer => llama(args, file, mode, &open)?,
                    };
                    points.add(measured.iter().map(|(test, rates)| subject.point(test, rates)).collect())?;
                }
            }
        }
    }
    let mut tables = String::new();
    for (file, mode) in points.measured(&commit, &device) {
        let peer = peer.clone().or_else(|| points.peer(&device, &file, mode));
        let of = |who, commit| Subject { who, commit, device: &device, file: file.clone(), mode };
        let mut subjects = vec![of(Who::Weft, &commit)];
        subjects.extend(peer.iter().map(|peer| of(Who::Peer, peer)));
        tables += &report::table(&points, &subjects);
        if let Some(svg) = report::picture(&points, &subjects) {
            let picture = args.out.join(format!("{file}-{}.svg", mode.name()));
            std::fs::write(&picture, svg).with_context(|| format!("writing {}", picture.display()))?;
        }
    }
    print!("{tables}");
    let path = args.out.join("curve.md");
    std::fs::write(&path, tables).with_context(|| format!("writing {}", path.display()))
}

/// The name of a file without its ending.
fn named(file: &Path) -> Result<String> {
    Ok(file.file_stem().with_context(|| format!("{} names no file", file.display()))?.to_string_lossy().into_owned())
}

/// The commit of the checkout.
fn commit() -> Result<String> {
    let ran = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .current_dir(root())
        .output()
        .context("running git")?;
    ensure!(ran.status.success(), "this is no checkout of git: give the binary's commit with --commit");
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_string())
}

/// The name of the best adapter.
fn device(weft: &Path) -> Result<String> {
    ensure!(
        weft.is_file(),
        "there is no {}: build it with cargo build --release, or name it with --weft",
        weft.display()
    );
    let all = output(Command::new(weft).args(["devices", "--json"]))?;
    Ok(all[0]["name"].as_str().with_context(|| format!("{} finds no device", weft.display()))?.to_string())
}

/// A name for a binary whose commit is not known.
fn fingerprint(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().take(5).fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}

/// What a command prints, as JSON.
fn output(command: &mut Command) -> Result<Value> {
    let ran = command.output().with_context(|| format!("running {}", command.get_program().display()))?;
    ensure!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr).trim());
    serde_json::from_slice(&ran.stdout).with_context(|| format!("reading what {command:?} prints"))
}

/// The rates of every run of each point, in tokens per second.
type Rates = Vec<(String, Vec<f64>)>;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn weft(args: &Args, file: &Path, mode: Mode, ask: &Ask) -> Result<Rates> {
    let mut command = Command::new(&args.weft);
    command.arg("bench").arg(file).args([
        "--json",
        "--device",
        "gpu",
        "-p",
        &ask.list(),
        "-n",
        &ask.generate.to_string(),
    ]);
    command.args(["-d", &ask.depth.to_string(), "-b", &ask.sequences.to_string(), "-r", &args.runs.to_string()]);
    let printed = output(command.envs(mode.environment().iter().copied()))?;
    let of = |point: &Value| Some((point["test"].as_str()?.to_string(), numbers(&point["samples"])));
    complete(ask, printed.as_array().into_iter().flatten().filter_map(of).collect(), &args.weft)
}

fn llama(args: &Args, file: &Path, mode: Mode, ask: &Ask) -> Result<Rates> {
    let path = args.beside.as_ref().context("no peer")?;
    let mut command = Command::new(path);
    command.arg("-m").arg(file).args([
        "-o",
        "json",
        "-fa",
        "1",
        "-ngl",
        "99",
        "-p",
        &ask.list(),
        "-n",
        &ask.generate.to_string(),
    ]);
    command.args(["-d", &ask.depth.to_string(), "-r", &args.runs.to_string()]);
    let printed = output(command.envs(mode.environment().iter().copied()))?;
    let of = |point: &Value| {
        let (prompt, generated) = (point["n_prompt"].as_u64()? as u32, point["n_gen"].as_u64()? as u32);
        let one =
            Ask { prompts: (prompt > 0).then_some(prompt).into_iter().collect(), generate: generated, ..ask.clone() };
        Some((one.tests()[0].clone(), numbers(&point["samples_ts"])))
    };
    complete(ask, printed.as_array().into_iter().flatten().filter_map(of).collect(), path)
}

/// The rates, if every point that was asked for has some.
fn complete(ask: &Ask, rates: Rates, binary: &Path) -> Result<Rates> {
    for test in ask.tests() {
        let has = rates.iter().any(|(name, rates)| *name == test && !rates.is_empty());
        ensure!(has, "{} does not print the rates of {test}", binary.display());
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask { prompts: vec![1, 64], generate: 64, depth: 0, sequences: 1 }
    }

    #[test]
    fn points_have_the_names_of_the_benchmark_and_are_asked_for_once() {
        assert_eq!(ask().tests(), ["pp1", "pp64", "tg64"]);
        let deep = Ask { prompts: vec![], generate: 32, depth: 512, sequences: 8 };
        assert_eq!(deep.tests(), ["tg32@d512@b8"]);
        let done = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<BTreeSet<_>>();
        assert_eq!(ask().without(&done(&[])), Some(ask()));
        assert_eq!(ask().without(&done(&["pp64"])), Some(Ask { prompts: vec![1], ..ask() }));
        assert_eq!(ask().without(&done(&["pp1", "pp64"])), Some(Ask { prompts: vec![], ..ask() }));
        assert_eq!(ask().without(&done(&["pp1", "pp64", "tg64"])), None);
    }

    #[test]
    fn points_of_another_commit_device_file_or_mode_are_measured_again() {
        let folder = std::env::temp_dir().join(format!("weft-curve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut points = Points::read(folder.join("curve.json")).unwrap();
        let of =
            |who, commit: &'static str, mode| Subject { who, commit, device: "a card", file: "m".to_string(), mode };
        let ours = of(Who::Weft, "abc", Mode::All);
        points.add(vec![ours.point("pp64", &[3.0, 1.0, 2.0])]).unwrap();
        let points = Points::read(folder.join("curve.json")).unwrap();
        assert_eq!(points.rate(&ours, "pp64"), Some(2.0));
        for other in
            [of(Who::Peer, "abc", Mode::All), of(Who::Weft, "abd", Mode::All), of(Who::Weft, "abc", Mode::Webgpu)]
        {
            assert!(points.tests(&other).is_empty());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
