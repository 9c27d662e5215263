//! The run: steps, validation, checkpoints, and what happens when it is stopped.

use super::args::{Args, Base};
use super::examples::Examples;
use super::report::Report;
use super::settings::Settings;
use super::{curve, dry, results};
use crate::exit::{Interrupted, line, note};
use crate::interrupt::{self, Guard};
use crate::steps::both_ways;
use anyhow::{Context, Error, Result};
use kernels::{Executor, Watch};
use model::{KvType, Model, ModelFile, SessionOptions};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use train::{BaseDigest, Begin, Document, Folder, Loss, Record, Restored, Step, Trainer};

/// The time between checkpoints where no number of steps is asked for.
const SAVE_EVERY: Duration = Duration::from_secs(300);
/// Validations of a run, about.
const VALIDATIONS: u64 = 10;
/// How often a lost device is opened again without a checkpoint in between.
const REOPENED: u32 = 3;

pub fn run(args: &Args) -> Result<()> {
    let begin = match (args.resume, args.force) {
        (true, _) => Begin::Resume,
        (_, true) => Begin::Force,
        _ => Begin::New,
    };
    // The folder is checked before a file of examples is read, which may take long.
    args.output.as_deref().map_or(Ok(()), |output| Folder::check(output, begin))?;
    let file = args.source.model_file()?.with_base(match args.base {
        Some(Base::Nf4) => model::Base::Nf4,
        Some(Base::Nf4Dq) => model::Base::Nf4Dq,
        None => model::Base::AsStored,
    });
    args.source.say_notes_of_base(&file)?;
    let examples = Examples::open(args, &file)?;
    examples.say_counts();
    let mut start = Start::new(args, file, examples)?;
    start.settings.warmup_note().into_iter().for_each(|said| note(&said));
    start.say(args)?;
    let Some(output) = args.output.as_deref().filter(|_| !args.dry_run) else { return dry::run(args, start) };
    let mut folder = Folder::open(output, begin)?;
    for lost in 0.. {
        let saved = folder.last_saved();
        let Err(error) = Run::new(args, &mut start, &mut folder).and_then(Run::go) else { return Ok(()) };
        let again =
            start.model.executor().is_lost() && (lost < REOPENED || folder.last_saved() > saved) && !args.streams();
        if !again {
            return Err(error);
        }
        note(&format!("{}; the device is opened again, and the run goes on from its last checkpoint", line(&error)));
        start.reopen(args)?;
    }
    unreachable!("the loop ends by returning")
}

/// What a run needs before it begins.
pub struct Start {
    pub model: Model,
    pub examples: Examples,
    pub settings: Settings,
    pub memory: train::Memory,
    /// Bytes that were free before the weights were loaded, if anything tells.
    pub free: Option<u64>,
    digest: BaseDigest,
}

impl Start {
    /// Checks that all fits, and loads the weights.
    fn new(args: &Args, file: ModelFile, examples: Examples) -> Result<Self> {
        let executor = open(args, &file)?;
        let checked = args.source.named(file.check(&executor))?;
        let settings = Settings::new(args, &checked, &examples)?;
        let free = checked.available_bytes();
        let memory = named(args, Trainer::memory_of(&checked, &settings.method, &settings.options))?;
        args.source.verify_if_asked(&file)?;
        let digest = if args.dry_run { BaseDigest::of(&file) } else { BaseDigest::begin(&file) };
        let model = args.source.weights(file, executor)?;
        Ok(Self { model, examples, settings, memory, free, digest })
    }

    /// Loads the weights onto a device that is opened again.
    fn reopen(&mut self, args: &Args) -> Result<()> {
        let file = self.model.to_file();
        let executor = open(args, &file)?;
        self.model = args.source.weights(file, executor)?;
        Ok(())
    }

    /// Says what will be done.
    fn say(&self, args: &Args) -> Result<()> {
        if args.json {
            return Ok(());
        }
        let model = format!("{} on {}", args.source.name(), self.model.executor().name());
        let mut lines = vec![["model".to_string(), model], ["examples".to_string(), self.examples.to_string()]];
        lines.extend(self.settings.lines(args));
        let free = self.free.map_or_else(String::new, |bytes| format!("; {} MB are free", bytes / 1_000_000));
        lines.push(["memory".to_string(), format!("{}{free}", self.memory)]);
        let mut out = std::io::stdout().lock();
        for [what, how] in lines {
            writeln!(out, "{what:<10}{how}")?;
        }
        Ok(writeln!(out)?)
    }
}

fn open(args: &Args, file: &ModelFile) -> Result<Executor> {
    let session = SessionOptions::default().context(1).kv(KvType::F32);
    args.source.located(args.steps.device.open(file, &session))
}

/// Adds the name of the model to an error that names no file.
pub fn named<T>(args: &Args, result: Result<T, train::Error>) -> Result<T> {
    result.map_err(|error| match error {
        train::Error::Model(error) => args.source.named::<()>(Err(error)).expect_err("an error"),
        error if error.names_a_file() => error.into(),
        other => Error::new(other).context(args.source.name()),
    })
}

/// A run on one device.
struct Run<'a> {
    args: &'a Args,
    start: &'a mut Start,
    folder: &'a mut Folder,
    trainer: Trainer,
    report: Report,
    cancel: Arc<AtomicBool>,
    guard: Guard,
    saved: Instant,
}

impl<'a> Run<'a> {
    fn new(args: &'a Args, start: &'a mut Start, folder: &'a mut Folder) -> Result<Self> {
        let Settings { method, options, facts, steps } = &start.settings;
        let trainer = named(args, Trainer::new(&start.model, method.clone(), options))?;
        let mut trainer = trainer.with_digest(start.digest.clone());
        let restored = folder.resume(&mut trainer, facts)?;
        start.examples.seek(restored.as_ref().map(|restored| &*restored.position))?;
        if let Some(Restored { is_sampled, .. }) = restored {
            say_restored(args, trainer.tally().steps, is_sampled);
        }
        let report = Report::new(args.json, *steps)?;
        let cancel = Arc::new(AtomicBool::new(false));
        let guard = interrupt::stops(Arc::clone(&cancel));
        Ok(Self { args, start, folder, trainer, report, cancel, guard, saved: Instant::now() })
    }

    fn go(mut self) -> Result<()> {
        while self.start.settings.steps.is_none_or(|steps| self.trainer.tally().steps < steps) {
            let before = self.trainer.tally().steps;
            let batch = match self.start.examples.next(self.args.batch) {
                Ok(Some(batch)) => batch,
                Ok(None) if before == 0 => {
                    return Err(Error::msg("stdin: no example; is the program before the pipe right?"));
                }
                Ok(None) => break,
                Err(error) => return Err(self.failed(error)),
            };
            let result = self.step(&batch);
            if self.trainer.tally().steps == before {
                self.start.examples.step_back();
            }
            match result {
                Ok(()) if !self.guard.raised() => {}
                Err(error) if !is_cancelled(&error) => return Err(self.failed(error)),
                _ => return self.stopped(),
            }
        }
        self.finished()
    }

    /// A step, its validation and its checkpoint.
    fn step(&mut self, batch: &[Document]) -> Result<()> {
        let is_first = self.trainer.tally().steps == 0;
        self.report.begins(self.trainer.tally().steps + 1, self.folder.records().last());
        let step = self.watched(|trainer, watch| trainer.step(batch, watch))?;
        let validation = match self.is_validated(step.number).then(|| self.validation()).transpose() {
            // The step itself is done.
            Err(error) if is_cancelled(&error) => None,
            other => other?.flatten(),
        };
        let tokens = batch.iter().map(|document| document.ids.len() as u64).sum();
        let Step { number: step, ref loss, norm, rate, ref skipped } = step;
        self.side_results(is_first, step, loss)?;
        let record = Record { step, loss: loss.loss, norm, rate, tokens, validation, skipped: skipped.clone() };
        self.report.ended(&record)?;
        self.folder.log(record)?;
        let due = match self.args.save_every {
            Some(every) => step.is_multiple_of(every),
            None => self.saved.elapsed() >= SAVE_EVERY,
        };
        if due && Some(step) != self.start.settings.steps {
            // A full disk may have room again at the next checkpoint.
            if let Err(error) = self.save() {
                self.report
                    .bar()
                    .suspend(|| note(&format!("{}; the run goes on without this checkpoint", line(&error))));
            }
            self.saved = Instant::now();
        }
        Ok(())
    }

    /// Calls `work` with progress and the flag of Ctrl-C.
    fn watched<T>(&mut self, work: impl FnOnce(&mut Trainer, Watch<'_>) -> Result<T, train::Error>) -> Result<T> {
        let report = self.report.bar().reporter();
        let progress = |phase, progress| report(both_ways(phase, progress));
        let watch = Watch { cancel: Some(&self.cancel), progress: Some(&progress) };
        named(self.args, work(&mut self.trainer, watch))
    }

    fn is_validated(&self, step: u64) -> bool {
        let every = self.start.settings.steps.map_or(100, |steps| steps.div_ceil(VALIDATIONS));
        step.is_multiple_of(every) || Some(step) == self.start.settings.steps
    }

    /// The loss of the held-out examples, if there are any: the mean that the steps have, over all
    /// of them.
    fn validation(&mut self) -> Result<Option<f64>> {
        let (mut sum, mut weight, mut at) = (0.0, 0.0, 0);
        while let Some(batch) = self.start.examples.held_out(at, self.args.batch)? {
            let loss = self.watched(|trainer, watch| trainer.evaluate(&batch, watch))?;
            sum += loss.loss * loss.weight;
            weight += loss.weight;
            at += u64::from(self.args.batch);
        }
        Ok((weight > 0.0).then(|| sum / weight))
    }

    /// What is written beside the parameters: gradients and captures of the first step, traces of
    /// all.
    fn side_results(&mut self, is_first: bool, step: u64, loss: &Loss) -> Result<()> {
        if let (true, Some(path)) = (is_first, &self.args.grads) {
            let gradients = named(self.args, self.trainer.gradients())?;
            train::save_parameters(path, self.start.model.summary().architecture, &gradients)?;
        }
        if let (true, Some(capture)) = (is_first, &self.args.steps.capture) {
            train::save_captures(&capture.file, &loss.captures)?;
        }
        if self.args.trace {
            let path = self.folder.file("trace.jsonl");
            trace(&path, is_first, step, loss).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        let (facts, position) = (&self.start.settings.facts, self.start.examples.position());
        named(self.args, self.folder.save(&self.trainer, facts, &position, self.args.keep as usize))?;
        Ok(())
    }

    /// Ctrl-C: the step in progress is left out, and the run can go on.
    fn stopped(mut self) -> Result<()> {
        let saved = self.save().and_then(|()| self.results());
        self.report.curve(self.folder.records())?;
        let results = saved.context("the run was stopped, but its state cannot be written")?;
        let again = if self.args.streams() { "" } else { "; the same command with --resume goes on" };
        note(&format!("stopped after step {}; so far: {results}{again}", self.trainer.tally().steps));
        Err(Interrupted.into())
    }

    /// Saves what can be saved after an error.
    fn failed(&mut self, error: Error) -> Error {
        if self.start.model.executor().is_lost() || self.trainer.tally().steps == 0 {
            return error;
        }
        let said = match self.save().and_then(|()| self.results()) {
            Ok(results) => format!("the state after step {} is saved: {results}", self.trainer.tally().steps),
            Err(failed) => format!("and the state cannot be written: {}", line(&failed)),
        };
        Error::msg(format!("{}; {said}", line(&error)))
    }

    fn finished(mut self) -> Result<()> {
        if self.args.streams() {
            self.start.examples.say_unused();
        }
        let saved = self.save();
        let results = self.results();
        self.report.curve(self.folder.records())?;
        let results = saved.and(results)?;
        let tally = self.trainer.tally();
        if self.args.json {
            return self
                .report
                .object(&json!({ "done": true, "steps": tally.steps, "skipped": tally.skipped, "result": results }));
        }
        let skipped = if tally.skipped > 0 { format!(", {} of them skipped", tally.skipped) } else { String::new() };
        Ok(writeln!(std::io::stdout(), "{} steps{skipped}; {results}", tally.steps)?)
    }

    /// Writes the adapter or the model, and the curve. Returns how to use them.
    fn results(&mut self) -> Result<String> {
        if let Some(svg) = curve::svg(self.folder.records()) {
            gguf::atomic_write(self.folder.file("loss.svg"), |out| out.write_all(svg.as_bytes()))?;
        }
        named(self.args, results::save(self.args, self.start.model.weights(), &self.trainer, self.folder))
    }
}

/// Says where a run goes on.
fn say_restored(args: &Args, steps: u64, is_sampled: bool) {
    if !args.json {
        note(&format!("going on after step {steps}"));
    }
    if is_sampled {
        note("the checkpoint is of an older version: only samples of the model's weights were compared with its model");
    }
}

fn is_cancelled(error: &Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(train::Error::Kernels(kernels::Error::Cancelled))))
}

/// Adds a step to the trace.
fn trace(path: &Path, is_first: bool, step: u64, loss: &Loss) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    let mut file = options.create(true).write(true).truncate(is_first).append(!is_first).open(path)?;
    let mut lines = String::new();
    for traced in &loss.traced {
        let train::Traced { ref capture, layer, norm, largest, not_finite } = *traced;
        let line = json!({ "step": step, "layer": layer, "name": capture.to_string(), "norm": norm, "largest": largest, "not_finite": not_finite });
        lines.push_str(&format!("{line}\n"));
    }
    file.write_all(lines.as_bytes())
}
