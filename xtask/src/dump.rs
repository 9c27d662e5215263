//! `shaders --dump`: writes every composed kernel and every plan to files, so that two commits can
//! be compared.

use crate::compiled::kinds;
use crate::{lanes, shaders};
use anyhow::Context as _;
use gguf::Gguf;
use kernels::Executor;
use kernels::Precision;
use kernels::plan::{PlanOptions, Planned, plan};
use kernels::testing::Switches;
use kernels::testing::cases;
use kernels::testing::kernel::compose::Shader;
use kernels::testing::kernel::random::Gen;
use kernels::testing::language;
use model::{ModelFile, SessionOptions};
use naga::back::spv;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Write every composed kernel with its SPIR-V, and plans of models, to compare two commits
#[derive(clap::Args)]
pub struct Args {
    /// Folder for every composed kernel (.wgsl, .spv), the hashes of their SPIR-V (shaders.txt) and
    /// the plans (plans.txt)
    #[arg(long, value_name = "DIR")]
    dump: PathBuf,
    /// GGUF files whose plans are written too; only their headers are read
    models: Vec<PathBuf>,
}

/// Seeds of each operation's parity cases.
const SEEDS: u64 = 48;
/// Numbers of rows of the steps for which models are planned.
const ROW_COUNTS: [u32; 11] = [1, 2, 4, 8, 9, 17, 33, 64, 65, 200, 512];

/// Writes the files.
pub fn run(args: &Args) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.dump).with_context(|| args.dump.display().to_string())?;
    let mut plans = String::new();
    let mut all: Vec<Shader> = language::variants().flat_map(|variant| Shader::all(variant, &[0, 8, 32])).collect();
    let mut known: HashSet<Shader> = all.iter().cloned().collect();
    let mut note = |what: &str, planned: Planned| {
        let _ = writeln!(plans, "# {what}\n{planned}");
        for placed in planned.dispatches {
            let _ = writeln!(plans, "{}", params(&placed.dispatch.params));
            if known.insert(placed.shader.clone()) {
                all.push(placed.shader);
            }
        }
    };
    for (stem, make) in cases() {
        for seed in 0..SEEDS {
            for (kind, caps) in kinds() {
                let case = make(&mut Gen::new(seed));
                let compiled = seed % 4 == 3;
                let case = if compiled { case.compiled() } else { case };
                // A device with small bindings may refuse a case.
                if let Ok(planned) = case.planned(&caps, false) {
                    note(&format!("{stem} {seed} {kind}"), planned);
                }
            }
        }
    }
    for path in &args.models {
        of_model(path, &mut note).with_context(|| path.display().to_string())?;
    }
    std::fs::write(args.dump.join("plans.txt"), plans)?;
    shaders(&all, &args.dump)
}

fn params(bytes: &[u8]) -> String {
    bytes
        .chunks(4)
        .map(|word| word.iter().rev().fold(String::new(), |text, byte| text + &format!("{byte:02x}")) + " ")
        .collect()
}

/// The plans of a model's steps, with and without rounding.
fn of_model(path: &Path, note: &mut impl FnMut(&str, Planned)) -> anyhow::Result<()> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let checked = ModelFile::new(Gguf::open(path)?)?.check(&Executor::Cpu)?;
    for rows in ROW_COUNTS {
        let rec = checked.recording(&SessionOptions::default().context(4096), rows);
        for (kind, caps) in kinds() {
            for fast in [false, true] {
                let options = PlanOptions::plain()
                    .precision(if fast { Precision::Fast } else { Precision::F32 })
                    .specialize(fast)
                    .sequences(u32::from(fast && rows < 9));
                if let Ok(planned) = plan(&rec, &caps, &options) {
                    note(&format!("{name} {rows} rows, fast {fast}, {kind}"), planned);
                }
            }
        }
    }
    Ok(())
}

/// Writes kernels as text and as SPIR-V, and the list of hashes.
fn shaders(kernels: &[Shader], folder: &Path) -> anyhow::Result<()> {
    let hashes = Mutex::new(BTreeMap::new());
    let work = |_: &mut (), kernel: &Shader| {
        let label = kernel.label();
        let given = kernel.given.iter().fold(String::new(), |text, word| match word {
            Some(word) => format!("{text} {word:x}"),
            None => text + " -",
        });
        let source = kernel.source();
        let options =
            spv::Options { lang_version: (1, 3), flags: spv::WriterFlags::empty(), ..spv::Options::default() };
        let words =
            shaders::spirv(&source, kernel, &options).map_err(anyhow::Error::msg).with_context(|| label.clone())?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let hash = hex(&Sha256::digest(&bytes));
        let name = format!("{}-{}", label.replace(['/', ' '], "_"), &hex(&Sha256::digest(source.as_bytes()))[..12]);
        std::fs::write(folder.join(format!("{name}.wgsl")), source)?;
        std::fs::write(folder.join(format!("{name}.spv")), bytes)?;
        hashes.lock().map_err(|_| anyhow::anyhow!("another thread failed"))?.insert(format!("{label}{given}"), hash);
        Ok(())
    };
    lanes::each(lanes::cores(), kernels, || Ok(()), work)?;
    let hashes = hashes.into_inner()?;
    let text: String = hashes.iter().map(|(label, hash)| format!("{hash} {label}\n")).collect();
    std::fs::write(folder.join("shaders.txt"), text)?;
    println!("{} kernels in {}", hashes.len(), folder.display());
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
