//! The run: steps, validation, checkpoints, and what happens when it is stopped.

use super::args::{Args, Base};
use super::examples::Examples;
use super::report::Report;
use super::samples::Sample;
use super::samples::Samples;
use super::settings::Settings;
use super::{again, curve, differs, dry, rehearse, results};
use crate::exit::{Interrupted, line, note};
use crate::interrupt::{self, Guard};
use crate::output;
use crate::steps::both_ways;
use crate::text::{counted, quoted};
use anyhow::{Context, Error, Result};
use kernels::{Executor, Watch};
use model::{KvType, Model, ModelFile, SessionOptions};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use train::{BaseDigest, Begin, Document, Ended, Ending, Folder, Loss, Record, Restored, Step, Trainer};

/// The time between checkpoints where no number of steps is asked for.
const SAVE_EVERY: Duration = Duration::from_secs(300);
/// How often a lost device is opened again without a checkpoint in between.
const REOPENED: u32 = 3;

pub fn run(args: &Args) -> Result<()> {
    let begin = match (args.resume, args.force) {
        (true, _) => Begin::Resume,
        (_, true) => Begin::Force,
        _ => Begin::New,
    };
    // Outputs are checked before a file of examples is read, which may take long.
    if !args.dry_run {
        args.output.as_deref().map_or(Ok(()), |output| Folder::check(output, begin))?;
        let files = [args.grads.as_deref(), args.steps.capture.as_ref().map(|capture| &*capture.file)];
        files.into_iter().flatten().try_for_each(output::writable)?;
    }
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
    /// The answers of the base, as JSON lines.
    rehearsal: Option<String>,
}

/// The answers of the base that are rehearsed: those of the folder, if a run goes on.
fn rehearsal(args: &Args, file: &ModelFile, executor: &Executor) -> Result<Option<String>> {
    let Some(rehearse) = args.rehearse.as_ref().filter(|_| !args.dry_run) else { return Ok(None) };
    let kept = args.output.as_deref().filter(|_| args.resume).map(|output| output.join(rehearse::FILE));
    if let Some(kept) = kept.filter(|kept| kept.exists()) {
        return crate::text::file(&kept).map(Some);
    }
    let model = args.source.weights(file.clone(), executor.clone())?;
    rehearse.answered(args, &model).map(Some)
}

impl Start {
    /// Checks that all fits, and loads the weights.
    fn new(args: &Args, file: ModelFile, mut examples: Examples) -> Result<Self> {
        let executor = open(args, &file)?;
        let checked = args.source.named(file.check(&executor))?;
        let free = checked.available_bytes();
        let rehearsal = rehearsal(args, &file, &executor)?;
        rehearsal.iter().try_for_each(|lines| examples.rehearse(args, lines.clone()))?;
        let settings = Settings::new(args, &checked, &examples)?;
        let memory = named(args, Trainer::memory_of(&checked, &settings.method, &settings.options))?;
        args.source.verify_if_asked(&file)?;
        let digest = if args.dry_run { BaseDigest::of(&file) } else { BaseDigest::begin(&file) };
        let model = args.source.weights(file, executor)?;
        Ok(Self { model, examples, settings, memory, free, digest, rehearsal })
    }

    /// Keeps in the folder how the run began.
    fn keep(&self, args: &Args, folder: &Folder) -> Result<()> {
        let write = |name: &str, text: &str| {
            gguf::atomic_write(folder.file(name), |out| out.write_all(text.as_bytes())).map_err(Error::new)
        };
        if let Some(lines) = &self.rehearsal {
            write(rehearse::FILE, lines)?;
        }
        if let Some(examples) = self.examples.held_numbers() {
            write("held-out.json", &json!({ "seed": args.seed, "examples": examples }).to_string())?;
        }
        again::keep(&args.words, self.settings.ending.warmup, self.settings.decay(), folder.path())
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
    samples: Option<Samples>,
}

impl<'a> Run<'a> {
    fn new(args: &'a Args, start: &'a mut Start, folder: &'a mut Folder) -> Result<Self> {
        let Settings { method, options, facts, ending } = &start.settings;
        let trainer = named(args, Trainer::new(&start.model, method.clone(), options))?;
        let mut trainer = trainer.with_digest(start.digest.clone());
        let checkpoint = 4 * 3 * trainer.elements();
        output::room(
            folder.path(),
            2 * (results::bytes(args, &trainer) + checkpoint),
            "two adapters and two checkpoints",
        )?;
        let restored = folder.resume(&mut trainer, facts).map_err(|error| differs::told(args, error))?;
        start.examples.seek(restored.as_ref().map(|restored| &*restored.position))?;
        // A refused run leaves the folder as it was.
        start.keep(args, folder)?;
        if let Some(Restored { is_sampled, .. }) = restored {
            say_restored(args, trainer.tally().steps, is_sampled);
        }
        let report = Report::new(args.json, ending.steps)?;
        let samples = samples(args, start);
        let cancel = Arc::new(AtomicBool::new(false));
        let guard = interrupt::stops(Arc::clone(&cancel));
        Ok(Self { args, start, folder, trainer, report, cancel, guard, saved: Instant::now(), samples })
    }

    fn go(mut self) -> Result<()> {
        let why = loop {
            if let Some(why) = self.start.settings.ending.reached(self.folder.records()) {
                break why;
            }
            let before = self.trainer.tally().steps;
            let batch = match self.start.examples.next(self.args.batch) {
                Ok(Some(batch)) => batch,
                Ok(None) if before == 0 => {
                    return Err(Error::msg("stdin: no example; is the program before the pipe right?"));
                }
                Ok(None) => break Ended::Steps,
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
            if let Some((first, last)) = Ending::risen(self.folder.records()) {
                return Err(Error::msg(risen(&self.start.settings, first, last)));
            }
        };
        self.finished(why)
    }

    /// A step, its validation and its checkpoint.
    fn step(&mut self, batch: &[Document]) -> Result<()> {
        let is_first = self.trainer.tally().steps == 0;
        self.report.begins(self.trainer.tally().steps + 1, self.folder.records().last());
        let step = self.watched(|trainer, watch| trainer.step(batch, watch))?;
        let validation =
            match self.start.settings.ending.is_validated(step.number).then(|| self.validation()).transpose() {
                // The step itself is done.
                Err(error) if is_cancelled(&error) => None,
                other => other?.flatten(),
            };
        let tokens = batch.iter().map(|document| document.ids.len() as u64).sum();
        let Step { number: step, ref loss, norm, rate, ref skipped } = step;
        self.side_results(is_first, step, loss)?;
        let record = Record { step, loss: loss.loss, norm, rate, tokens, validation, skipped: skipped.clone() };
        let answers = if validation.is_some() { self.validated(validation)? } else { vec![] };
        self.report.ended(&record, &answers)?;
        self.folder.log(record)?;
        let due = match self.args.save_every {
            Some(every) => step.is_multiple_of(every),
            None => self.saved.elapsed() >= SAVE_EVERY,
        };
        if due && Some(step) != self.start.settings.ending.steps {
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

    /// Writes the results of a validated step, and those of the best step; returns sample answers.
    fn validated(&mut self, loss: Option<f64>) -> Result<Vec<Sample>> {
        let best = Ending::best(self.folder.records()).and_then(|record| record.validation);
        let last = self.folder.last()?;
        named(self.args, results::save(self.args, &self.trainer, &last))?;
        if loss.is_some_and(|loss| best.is_none_or(|best| loss < best)) {
            named(self.args, results::save(self.args, &self.trainer, self.folder.path()))?;
        }
        let Some(samples) = &mut self.samples else { return Ok(vec![]) };
        match samples.answers(&last, &self.cancel) {
            Ok(answers) => Ok(answers),
            // The run does not need them.
            Err(error) => {
                self.report.bar().suspend(|| note(&format!("no more sample answers: {}", line(&error))));
                self.samples = None;
                Ok(vec![])
            }
        }
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
        let saved = self.results().and_then(|results| self.save().map(|()| results));
        self.report.curve(self.folder.records())?;
        let results = saved.context("the run was stopped, but its state cannot be written")?;
        let again = match self.args.streams() {
            true => String::new(),
            false => format!("; weft train --resume -o {} goes on", quoted(self.folder.path())),
        };
        note(&format!("stopped after step {}; so far: {results}{again}", self.trainer.tally().steps));
        Err(Interrupted.into())
    }

    /// Saves what can be saved after an error.
    fn failed(&mut self, error: Error) -> Error {
        if self.start.model.executor().is_lost() || self.trainer.tally().steps == 0 {
            return error;
        }
        if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(train::Error::NotFinite { .. }))) {
            let rate = self.start.settings.options.rate.peak;
            return Error::msg(format!(
                "{}: the rate of {rate:e} may be too large; try --lr {:e}, or leave --lr out",
                line(&error),
                rate / 10.0
            ));
        }
        let said = match self.results().and_then(|results| self.save().map(|()| results)) {
            Ok(results) => format!("the state after step {} is saved: {results}", self.trainer.tally().steps),
            Err(failed) => format!("and the state cannot be written: {}", line(&failed)),
        };
        Error::msg(format!("{}; {said}", line(&error)))
    }

    fn finished(mut self, why: Ended) -> Result<()> {
        if self.args.streams() {
            self.start.examples.say_unused();
        }
        // The adapter comes first: it is what the run is for.
        let results = self.results();
        let saved = self.save();
        self.report.curve(self.folder.records())?;
        let results = results.and_then(|results| saved.map(|()| results))?;
        let tally = self.trainer.tally();
        let best = Ending::best(self.folder.records());
        if self.args.json {
            let ended = match why {
                Ended::Steps => "steps",
                Ended::Patience { .. } => "patience",
                Ended::Flat => "flat",
            };
            let merges = results::merges(self.args, self.start.model.weights(), &self.trainer);
            let merges = named(self.args, merges)?;
            let last = best.map(|_| self.folder.last()).transpose()?.map(|last| last.display().to_string());
            return self.report.object(&json!({
                "done": true, "steps": tally.steps, "skipped": tally.skipped, "ended": ended,
                "best_step": best.map(|record| record.step), "best_validation": best.and_then(|record| record.validation),
                "merge_for_llama_cpp": merges, "output": self.folder.path().display().to_string(), "last": last,
            }));
        }
        let skipped = if tally.skipped > 0 { format!(", {} of them skipped", tally.skipped) } else { String::new() };
        let ended = match why {
            Ended::Steps => String::new(),
            Ended::Patience { best } => format!("; the validation got no better after step {best}"),
            Ended::Flat => "; the loss is flat (--epochs learns longer)".to_string(),
        };
        Ok(writeln!(std::io::stdout(), "{}{skipped}{ended}; {results}", counted(tally.steps, "step"))?)
    }

    /// Writes the adapter or the model, and the curve. Returns how to use them.
    fn results(&mut self) -> Result<String> {
        if let Some(svg) = curve::svg(self.folder.records()) {
            gguf::atomic_write(self.folder.file("loss.svg"), |out| out.write_all(svg.as_bytes()))?;
        }
        let (args, best) = (self.args, Ending::best(self.folder.records()).map(|record| record.step));
        if best.is_none_or(|best| best == self.trainer.tally().steps) {
            named(args, results::save(args, &self.trainer, self.folder.path()))?;
        }
        let last = match best {
            Some(best) => {
                let last = self.folder.last()?;
                named(args, results::save(args, &self.trainer, &last))?;
                format!("; it is that of step {best}, the best one by validation ({} is the last one)", last.display())
            }
            None => String::new(),
        };
        let usage = named(args, results::usage(args, self.start.model.weights(), &self.trainer, self.folder))?;
        Ok(format!("{usage}{last}"))
    }
}

/// Held-out prompts, where there are any and low-rank factors are trained.
fn samples(args: &Args, start: &Start) -> Option<Samples> {
    let lacks = match (args.full, start.examples.holds_out()) {
        (true, _) => Some("--samples answers with adapters only, and --full trains all weights"),
        (false, false) => Some("no examples are held out, so --samples has nothing to ask"),
        (false, true) => None,
    };
    if lacks.is_some() || args.samples == Some(0) {
        lacks.filter(|_| args.samples.is_some_and(|n| n > 0)).into_iter().for_each(note);
        return None;
    }
    let samples = Samples::new(args, &start.model, &start.examples);
    samples.map_err(|error| note(&format!("no sample answers: {}", line(&error)))).ok()
}

/// Why a run is given up whose loss stays far above the first one.
fn risen(settings: &Settings, first: f64, last: f64) -> String {
    let rate = settings.options.rate.peak;
    format!(
        "the loss rose from {first:.2} to {last:.2}: the rate of {rate:e} is too large, and the run is given up; try \
         --lr {:e}, or leave --lr out",
        rate / 10.0
    )
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
