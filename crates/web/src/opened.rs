//! Opening a file and loading its weights.

use crate::cancel::Cancel;
use crate::error::Failure;
use crate::model::Model;
use crate::options::{self, Limits};
use crate::reader::{JsSource, Reader, Running};
use crate::{device, info, json};
use gguf::{AsyncSource, Progress, Remote};
use kernels::{Executor, Preparing};
use model::{Checked, ModelFile, SessionOptions};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// A file whose header, tokenizer and tensors are checked, with the way to its bytes.
#[wasm_bindgen]
pub struct Opened {
    name: String,
    file: ModelFile,
    checked: Checked,
    remote: Remote<JsSource>,
    executor: Executor,
    limits: Limits,
    running: Running,
}

/// Opens the file that these parts make, for an executor.
#[wasm_bindgen]
pub async fn open(parts: Vec<Reader>, device: String, limits: JsValue, cancel: &Cancel) -> Result<Opened, Failure> {
    let limits: Limits = json::read(&limits, "limits")?;
    let executor = device::executor(&device).await?;
    let running = Running::new(cancel);
    let sources: Vec<JsSource> = parts.into_iter().map(|reader| JsSource::new(reader, &running)).collect();
    let name = sources.first().map(JsSource::name).unwrap_or_default();
    let bytes: u64 = sources.iter().map(AsyncSource::len_bytes).sum();
    if let Some(limit) = limits.file_bytes.filter(|&limit| limit < bytes) {
        let message = format!("the file has {bytes} bytes, and the limit is {limit}; raise limits.fileBytes");
        return Err(Failure::new("too-large", message).with("bytes", bytes).with("limit", limit));
    }
    let (remote, gguf) = Remote::open(sources).await.map_err(|error| running.told(error))?;
    let file = ModelFile::new(gguf)?;
    let checked = remote.with(|| file.check(&executor)).await.map_err(|error| running.told(error))?;
    Ok(Opened { name, file, checked, remote, executor, limits, running })
}

#[wasm_bindgen]
impl Opened {
    /// `ModelInfo`.
    pub fn info(&self) -> JsValue {
        json::write(&info::of_file(&self.name, &self.file, self.checked.summary(), &self.executor).info())
    }

    /// `Needs` of a session with these options.
    pub fn needs(&self, options: &JsValue) -> Result<JsValue, Failure> {
        let options = json::read::<options::Session>(options, "options")?.options(&self.limits)?;
        Ok(json::write(&info::needs(&self.checked.needs(&options)?, available(&self.limits, &self.executor))))
    }

    /// Loads the weights.
    pub async fn load(self, report: js_sys::Function, cancel: &Cancel) -> Result<Model, Failure> {
        let Self { name, file, checked, remote, executor, limits, running } = self;
        running.begin(cancel);
        let tell = |phase: &'static str, progress: Progress| tell(&report, phase, progress);
        let compiling = prepare(&checked, &limits)?;
        let ranges = file.digest_ranges();
        let source = Kept { remote: &remote, ranges: &ranges, next: Cell::new(0) };
        let loaded = file.receive(checked, &source, &|progress| tell("load", progress)).await;
        let model = loaded.map_err(|error| running.told(error))?;
        // The ranges that the digest reads were kept while they came.
        remote.with(|| model.digest()).await.map_err(|error| running.told(error))?;
        remote.clear();
        Ok(Model { name, model, remote, executor, limits, running, digest: RefCell::default(), _compiling: compiling })
    }
}

/// Begins to compile the kernels of a session with the default options.
fn prepare(checked: &Checked, limits: &Limits) -> Result<Preparing, Failure> {
    Ok(checked.prepare(&SessionOptions::default().memory_bytes(limits.memory_bytes))?)
}

/// Bytes that are free, or that the page allows.
pub fn available(limits: &Limits, executor: &Executor) -> Option<u64> {
    limits.memory_bytes.or_else(|| executor.available_bytes())
}

/// Calls a function of JavaScript with a `Progress`. An error that it throws is its own.
pub fn tell(report: &js_sys::Function, phase: &'static str, progress: Progress) {
    let progress = json!({ "phase": phase, "done": progress.done, "total": progress.total });
    let _ = report.call1(&JsValue::NULL, &json::write(&progress));
}

/// The bytes of a file on their way, of which these ranges stay in memory. Reads come in the order
/// of the file.
struct Kept<'a> {
    remote: &'a Remote<JsSource>,
    ranges: &'a [Range<u64>],
    /// The first range that may still come.
    next: Cell<usize>,
}

impl AsyncSource for Kept<'_> {
    fn len_bytes(&self) -> u64 {
        self.remote.len_bytes()
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.remote.read_at(offset, buf).await?;
        let end = offset + buf.len() as u64;
        while let Some(range) = self.ranges.get(self.next.get()) {
            let (from, to) = (range.start.max(offset), range.end.min(end));
            if from < to {
                self.remote.hold(from, &buf[(from - offset) as usize..(to - offset) as usize]);
            }
            if range.end > end {
                break;
            }
            self.next.set(self.next.get() + 1);
        }
        Ok(())
    }
}
