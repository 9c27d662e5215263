//! Training in a page.

mod options;
mod records;

use crate::adapter;
use crate::cancel::Cancel;
use crate::error::Failure;
use crate::json;
use crate::model::Model;
use crate::opened::tell;
use gguf::{AsyncSource, MemoryDirectory};
use js_sys::{Array, Function, Object, Uint8Array};
use kernels::{Phase, Progress, Watch};
use options::Options;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use train::defaults::{Amount, Course};
use train::{BaseDigest, Batches, CheckpointError, Data, DataOptions, Document, Ended, Ending, Method, Record, Texts};
use wasm_bindgen::JsCast as _;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// A run: a trainer, its examples, and what it has done.
#[wasm_bindgen]
pub struct Trainer {
    trainer: train::Trainer,
    batches: Batches,
    learnt: Data,
    held: Option<Data>,
    /// How lines become documents.
    reading: DataOptions,
    ending: Ending,
    records: Vec<Record>,
    options: Value,
    /// Notes about the adapter that the run goes on from.
    notes: Vec<String>,
}

#[wasm_bindgen]
impl Model {
    /// Plans a run. `options` are `TrainOptions`, with texts as bytes.
    pub async fn trainer(&self, options: JsValue, report: Function, cancel: &Cancel) -> Result<Trainer, Failure> {
        let data = |key: &str| json::bytes(&options, key);
        let (learnt, held) = (data("data"), data("validation"));
        let chosen: Options = json::read(&options::without_data(&options), "options")?;
        let learnt = learnt.ok_or_else(|| Failure::new("bad-options", "data: there are no examples"))?;
        let texts = Texts::from(&self.model);
        let reading = chosen.data(self.model.summary().context_length)?;
        let open = |name: &str, bytes: Vec<u8>| {
            let files: Vec<(String, Box<dyn gguf::Source>)> = vec![(name.to_string(), Box::new(bytes))];
            Data::new(files, texts.clone(), &reading, &|progress| tell(&report, "data", progress))
        };
        let mut learnt = open("data", learnt)?;
        let mut held = held.map(|bytes| open("validation", bytes)).transpose()?;
        let holds_out = held.is_none() && chosen.holds_out();
        if let Some(share) = train::defaults::held_share(learnt.len()).filter(|_| holds_out) {
            let (part, rest) = learnt.split(share, chosen.seed())?;
            (learnt, held) = (part, Some(rest));
        }
        let (lora, note) = match json::get(&options, "init").dyn_into::<Array>() {
            Ok(files) => {
                let (factors, note) = self.model.factors_of(&adapter::file(&files.to_vec())?)?;
                (chosen.lora_from(factors)?, note)
            }
            Err(_) => (chosen.lora()?, None),
        };
        let notes = note.iter().map(ToString::to_string).collect();
        let method = Method::from(lora.clone());
        let mut batches = Batches::new(learnt.clone(), chosen.batch(), chosen.seed());
        if !chosen.shuffle() {
            batches = batches.in_order();
        }
        let course = Course::of(&chosen.course()?, &method, self.model.weights(), Amount::of(&batches, held.is_some()));
        let rows = chosen.rows.unwrap_or_else(|| train::defaults::rows(&learnt, held.as_ref(), chosen.batch()));
        let most = train::defaults::most_rows([&learnt].into_iter().chain(held.as_ref()), chosen.batch(), true);
        let trainer_options = chosen.optimizer(course.options.clone())?;
        let gradients = trainer_options.gradients.clone().rows(rows).most_rows(most);
        let gradients = gradients.memory_bytes(self.limits.memory_bytes);
        // `evaluate` takes any lines at any time.
        let trainer_options = trainer_options.gradients(gradients).validation(true);
        let digest = self.base_digest(&report, cancel).await?;
        let trainer = train::Trainer::new_async(&self.model, method, &trainer_options).await?.with_digest(digest);
        let options = chosen.in_force(&lora, &trainer_options, &course, rows, &reading);
        Ok(Trainer { trainer, batches, learnt, held, reading, ending: course.ending, records: vec![], options, notes })
    }
}

impl Model {
    /// The digest of every byte of the model, which is read once.
    async fn base_digest(&self, report: &Function, cancel: &Cancel) -> Result<BaseDigest, Failure> {
        if let Some(known) = self.digest.borrow().clone() {
            return Ok(known);
        }
        self.running.begin(cancel);
        let total = self.remote.len_bytes();
        let read = async |offset: u64, bytes: &mut [u8]| {
            self.remote.read_at(offset, bytes).await?;
            tell(report, "digest", Progress { done: offset + bytes.len() as u64, total });
            Ok(())
        };
        let read = BaseDigest::read_async(&self.model.to_file(), read).await;
        let digest = read.map_err(|error| self.running.told(error))?;
        self.digest.replace(Some(digest.clone()));
        Ok(digest)
    }
}

#[wasm_bindgen]
impl Trainer {
    /// `TrainFacts`.
    pub fn facts(&self) -> JsValue {
        let counts = self.learnt.counts();
        json::write(&json!({
            "examples": self.learnt.len(),
            "validation": self.held.as_ref().map_or(0, Data::len),
            "documents": counts.documents,
            "tokens": counts.tokens,
            "learntTokens": counts.targets,
            "stepsPerEpoch": self.batches.per_epoch(),
            "steps": self.ending.steps,
            "parameters": self.trainer.elements(),
            "unused": self.learnt.unused(),
            "options": self.options,
            "notes": self.notes,
        }))
    }

    /// `TrainMemory`.
    pub fn memory(&self) -> JsValue {
        let memory = self.trainer.memory();
        json::write(&json!({
            "weights": memory.weights,
            "parameters": memory.parameters + memory.gradients,
            "optimizer": memory.moments,
            "intermediates": memory.saved + memory.scratch + memory.validation,
            "total": memory.total(),
        }))
    }

    /// The first examples as the model reads them: `Piece[][]`.
    pub fn examples(&self, count: u32) -> Result<JsValue, Failure> {
        let mut shown = vec![];
        for n in 0..self.learnt.len().min(count.into()) {
            for document in self.learnt.documents(n)? {
                let pieces = self.learnt.texts().pieces(&document);
                let piece = |piece: train::Piece| json!({ "text": piece.text, "learnt": piece.learnt });
                shown.push(pieces.into_iter().map(piece).collect::<Vec<_>>());
            }
        }
        Ok(json::write(&shown))
    }

    /// The records of all steps: `StepResult[]`.
    pub fn log(&self) -> Vec<JsValue> {
        self.records.iter().map(|record| records::to_js(record, &records::to_json(record))).collect()
    }

    /// One step. A step that is cancelled changes nothing.
    pub async fn step(&mut self, report: Function, cancel: &Cancel) -> Result<JsValue, Failure> {
        let before = self.batches.position();
        let batch = self.batches.next()?;
        let began = js_sys::Date::now();
        let done = watched(&report, cancel, &[Phase::Forward, Phase::Backward], async |watch| {
            self.trainer.step_async(&batch, watch).await
        })
        .await;
        let step = match done {
            Ok(step) => step,
            Err(error) => {
                self.batches.seek(before)?;
                return Err(error);
            }
        };
        let tokens = batch.iter().map(|document| document.ids.len() as u64).sum();
        let record = Record {
            step: step.number,
            loss: step.loss.loss,
            norm: step.norm,
            rate: step.rate,
            tokens,
            validation: None,
            skipped: step.skipped,
        };
        let mut result = records::to_json(&record);
        self.records.push(record.clone());
        result["targets"] = json!(step.loss.targets);
        result["seconds"] = json!((js_sys::Date::now() - began) / 1000.0);
        result["validates"] = json!(self.held.is_some() && self.ending.is_validated(step.number));
        result["ended"] = json!(self.ended());
        Ok(records::to_js(&record, &result))
    }

    /// The mean loss of the held-out examples, which the last step gets, or of these lines.
    pub async fn evaluate(
        &mut self,
        data: Option<Vec<u8>>,
        report: Function,
        cancel: &Cancel,
    ) -> Result<JsValue, Failure> {
        let own = data.is_none();
        let data = match data {
            Some(bytes) => {
                let files: Vec<(String, Box<dyn gguf::Source>)> = vec![("data".to_string(), Box::new(bytes))];
                Data::new(files, self.learnt.texts().clone(), &self.reading, &|_| {})?
            }
            None => self.held.clone().ok_or_else(|| {
                Failure::new("bad-options", "no examples are held out; give validation, or lines to evaluate")
            })?,
        };
        let documents = (0..data.len()).map(|n| data.documents(n)).collect::<Result<Vec<Vec<Document>>, _>>()?.concat();
        let work = async |watch: Watch<'_>| self.trainer.evaluate_async(&documents, watch).await;
        let loss = watched(&report, cancel, &[Phase::Forward], work).await?;
        if let Some(last) = self.records.last_mut().filter(|_| own) {
            last.validation = Some(loss.loss);
        }
        Ok(json::write(&json!({ "loss": loss.loss, "targets": loss.targets, "ended": self.ended() })))
    }

    /// The adapter in PEFT's form: `NamedBytes[]`.
    #[wasm_bindgen(js_name = savePeft)]
    pub async fn save_peft(&self) -> Result<Vec<JsValue>, Failure> {
        let files = MemoryDirectory::default();
        self.trainer.write_peft_async(&files).await?;
        let named = |(name, bytes): (String, Vec<u8>)| {
            let object = Object::new();
            json::set(&object, "name", &JsValue::from_str(&name));
            json::set(&object, "bytes", &Uint8Array::from(bytes.as_slice()));
            object.into()
        };
        Ok(files.into_files().into_iter().map(named).collect())
    }

    /// The adapter as a GGUF file of llama.cpp.
    #[wasm_bindgen(js_name = saveGguf)]
    pub async fn save_gguf(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![];
        self.trainer.write_gguf_async(&mut bytes).await?;
        Ok(bytes)
    }

    /// All that a run needs to go on.
    pub async fn checkpoint(&self) -> Result<Vec<u8>, Failure> {
        let kept = records::kept(self.batches.position(), &self.records);
        let mut bytes = vec![];
        self.trainer.write_checkpoint_async(&mut bytes, &self.batches.facts(), &kept).await?;
        Ok(bytes)
    }

    /// Goes on from a checkpoint of a run with the same model, examples and options.
    pub fn restore(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        let refused = |error: CheckpointError| Failure::new("checkpoint", error.to_string());
        let restored = self.trainer.restore(&bytes, &self.batches.facts()).map_err(refused)?;
        let (position, records) = records::read(&restored.position)?;
        self.batches.seek(position)?;
        self.records = records;
        Ok(())
    }
}

impl Trainer {
    /// Why the run has ended, by the rules of `weft train`.
    fn ended(&self) -> Option<&'static str> {
        if Ending::risen(&self.records).is_some() {
            return Some("risen");
        }
        self.ending.reached(&self.records).map(|ended| match ended {
            Ended::Steps => "steps",
            Ended::Patience { .. } => "patience",
            Ended::Flat => "flat",
        })
    }
}

/// Runs work of a trainer that can be cancelled and tells how far it is: in layers, of all its
/// passes together.
async fn watched<T>(
    report: &Function,
    cancel: &Cancel,
    passes: &[Phase],
    work: impl AsyncFnOnce(Watch<'_>) -> Result<T, train::Error>,
) -> Result<T, Failure> {
    let flag = Arc::<AtomicBool>::default();
    let _guard = cancel.sets(&flag);
    let progress = |phase: Phase, Progress { done, total }: Progress| {
        let before = passes.iter().take_while(|pass| **pass != phase).count() as u64;
        tell(report, "step", Progress { done: before * total + done, total: passes.len() as u64 * total });
    };
    Ok(work(Watch { cancel: Some(&flag), progress: Some(&progress) }).await?)
}
