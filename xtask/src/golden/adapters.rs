//! Goldens of adapters: logits that transformers and PEFT computed with an active, unmerged
//! adapter.

use super::args::Args;
use super::check::Check;
use super::fixtures::{FOLDERS, ids, json};
use crate::npy;
use anyhow::{Context, Result, ensure};
use kernels::{Executor, Precision};
use model::{AdapterFile, Applied, KvType, Model, Session, SessionOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The largest allowed difference of a logit, by prefix of the model's name.
const BOUNDS: [(&str, f64); 2] = [("gemma4", 2e-3), ("", 5e-4)];

/// The folders of `train` whose models this version can run.
pub fn names(args: &Args) -> Result<Vec<String>> {
    let train = args.fixtures()?.join("train");
    let mut names = vec![];
    for entry in std::fs::read_dir(&train).with_context(|| format!("cannot read {}", train.display()))? {
        names.extend(entry?.file_name().into_string());
    }
    names.retain(|name| FOLDERS.contains(&folder_and_file(name).0) && format!("train/{name}").contains(&args.only));
    names.sort();
    Ok(names)
}

/// The folder and the file of the model that a folder of `train` adapts.
fn folder_and_file(name: &str) -> (&str, String) {
    match name.split_once('-') {
        Some((folder, _)) => (folder, format!("{name}.gguf")),
        None => (name, format!("{name}-F16.gguf")),
    }
}

/// Runs one of [`names`] with both file formats of its adapter.
pub fn run(args: &Args, name: &str, executors: &[Executor], report: impl Fn(&str, &Executor, &Check)) -> Result<()> {
    let (train, (folder, file)) = (args.fixtures()?.join("train"), folder_and_file(name));
    let (base, own) = (args.fixtures()?.join(folder), train.join(folder));
    let forms = [("peft", own.join("adapter_init")), ("gguf", own.join(format!("{folder}-adapter-f32.gguf")))];
    for executor in executors {
        let model = Model::open(base.join(&file))?.on(executor.clone())?;
        let golden = Golden { model, base: &base, file: &file, folder: &train.join(name) };
        for (form, path) in &forms {
            golden.checks(form, path, &mut |check| report(&format!("train/{name}"), executor, &check))?;
        }
    }
    Ok(())
}

struct Golden<'a> {
    model: Model,
    base: &'a Path,
    file: &'a str,
    folder: &'a Path,
}

impl Golden<'_> {
    fn checks(&self, form: &str, path: &Path, report: &mut dyn FnMut(Check)) -> Result<()> {
        let adapter = self.model.adapter(&AdapterFile::open(path)?)?;
        let applied = |scale| vec![Applied { adapter: Arc::clone(&adapter), scale }];
        let with = npy::read_f32(&self.folder.join("adapter_logits.npy"))?;
        let without = npy::read_f32(&self.base.join(self.plain()?))?;
        let options = |chunk| SessionOptions::default().chunk(chunk).kv(KvType::F32).precision(Precision::F32);
        // Both formats give the same adapter, so only one runs every mode.
        let modes = [("one prefill", 512), ("chunks of 29", 29), ("token by token", 1)];
        for (mode, chunk) in modes.into_iter().take(if form == "peft" { 3 } else { 1 }) {
            let mut session = self.model.session(options(chunk))?;
            session.set_adapters(applied(1.0))?;
            report(self.check(&format!("{form}, {mode}"), &mut session, &with)?);
        }
        // One session in which the adapter is applied, applied twice with scales that sum to 1, set
        // to scale 0, and removed.
        let mut session = self.model.session(options(64))?;
        report(self.check(&format!("{form}, not yet"), &mut session, &without)?);
        for (mode, adapters, reference) in [
            ("swapped in", applied(1.0), &with),
            ("two halves", [applied(0.25), applied(0.75)].concat(), &with),
            ("scale 0", applied(0.0), &without),
            ("removed", vec![], &without),
        ] {
            session.set_adapters(adapters)?;
            report(self.check(&format!("{form}, {mode}"), &mut session, reference)?);
        }
        Ok(())
    }

    /// The file with the logits of the model alone.
    fn plain(&self) -> Result<String> {
        let meta = json(&self.base.join("meta.json"))?;
        let files = meta["files"].as_array().context("meta.json has no files")?;
        let entry =
            files.iter().find(|entry| entry["gguf"] == self.file).context("meta.json has no entry for the model")?;
        Ok(entry["logits"].as_str().context("an entry of meta.json has no logits")?.to_string())
    }

    /// Evaluates the prompt, or the part of it that a change of adapters made stale.
    fn check(&self, mode: &str, session: &mut Session, reference: &npy::Array) -> Result<Check> {
        let start = Instant::now();
        if session.tokens().is_empty() {
            session.feed(&ids(&json(&self.base.join("tokens.json"))?)?)?;
        }
        let mut got = vec![];
        session.logits(|_, rows, _| got.extend_from_slice(rows))?;
        ensure!(
            got.len() == reference.values.len(),
            "got {} logits, the reference has {}",
            got.len(),
            reference.values.len()
        );
        let worst = got.iter().zip(&reference.values).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
        let vocabulary = reference.shape[1];
        let mut rows = got.chunks_exact(vocabulary).zip(reference.values.chunks_exact(vocabulary));
        let agrees = rows.all(|(got, expected)| cpu_ref::argmax(got) == cpu_ref::argmax(expected));
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let bound = BOUNDS.iter().find(|(start, _)| name.starts_with(start)).map_or(0.0, |(_, bound)| *bound);
        Ok(Check {
            mode: mode.to_string(),
            worst,
            bound,
            agrees,
            kl: None,
            flips: None,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}
