//! A checked model of the store: its files, and the settings of its Modelfile.

use super::manifest::{Layer, Manifest};
use super::params::{Params, quoted};
use super::{Digest, Name, OllamaError, jinja};
use crate::chat::{ChatTemplate, Message, RenderOptions};
use crate::error::json_reason;
use crate::file::ModelFile;
use crate::note::Note;
use gguf::{Directory, Item, Progress, Source};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The kinds of layers whose content applies, and licenses.
const APPLIED: [&str; 7] = ["model", "adapter", "template", "system", "params", "messages", "license"];
/// Upper limit of the bytes of a text layer: template, system prompt, parameters or messages.
const MAX_TEXT: u64 = 1 << 20;
/// Bytes hashed at a time.
const CHUNK: usize = 1 << 20;

/// A layer's file, whose length is the one in the manifest.
#[derive(Clone)]
pub struct Blob {
    /// Its kind: `model`, `projector`, `adapter`, ..
    pub kind: String,
    /// Its file: of the file system, unless the store is elsewhere. Then [`Blob::open`] opens it.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    digest: Digest,
    store: Arc<dyn Directory>,
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, path, bytes, .. } = self;
        f.debug_struct("Blob").field("kind", kind).field("path", path).field("bytes", bytes).finish_non_exhaustive()
    }
}

/// A model of the store.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, with the store's spelling.
    pub name: Name,
    /// The GGUF file.
    pub model: Blob,
    /// LoRA adapters that belong to it.
    pub adapters: Vec<Blob>,
    /// Encoders of images and sound.
    pub projectors: Vec<Blob>,
    /// The prompt's template, in Go's template language. `None` if there is no template, or if it
    /// adds nothing to the prompt and the config names a renderer in Ollama's own code.
    pub template: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// The parameters.
    pub params: Params,
    /// Turns that every conversation begins with, after the system prompt (`MESSAGE`).
    pub messages: Vec<Message>,
    /// The other settings that change answers in Ollama and do not apply in Weft, in words.
    unapplied: Vec<String>,
    texts: Vec<Blob>,
}

impl Entry {
    /// Reads the model that the manifest of this name in a store describes.
    pub(super) fn read(store: &Arc<dyn Directory>, name: Name) -> Result<Self, OllamaError> {
        let (manifest, limit) = (name.manifest(), super::manifest::MAX_BYTES + 1);
        let unusable = |reason: String| OllamaError::Manifest { path: store.locate(&manifest), reason };
        let json = store
            .read(&manifest, limit)
            .map_err(|error| OllamaError::Unreadable { path: store.locate(&manifest), error })?;
        let parsed = Manifest::parse(&json).map_err(unusable)?;
        let blob = |layer: &Layer| Blob::new(store, &name, layer);
        let all = |kind| parsed.of(kind).map(blob).collect::<Result<Vec<Blob>, _>>();
        let model = match (all("model")?.as_slice(), parsed.of("tensor").next()) {
            ([one], _) => one.clone(),
            ([], None) => return Err(unusable("it has no model layer".to_string())),
            ([], Some(_)) => {
                return Err(unusable("its model is not a GGUF file but one tensor per layer, for MLX".to_string()));
            }
            (several, _) => return Err(unusable(format!("it has {} model layers", several.len()))),
        };
        let config = match parsed.config.as_ref().map(blob) {
            // The config is optional: copies of a store may lack it.
            None | Some(Err(OllamaError::BlobMissing { .. })) => vec![],
            Some(config) => vec![config?],
        };
        let texts = [all("template")?, all("system")?, all("params")?, config, all("messages")?];
        let text = |at: usize| texts[at].last().map(|blob: &Blob| blob.text(&name)).transpose();
        let params = text(2)?.map_or(Ok(Params::default()), |json| Params::parse(&json));
        let params = params.map_err(|reason| OllamaError::Params { name: name.to_string(), reason })?;
        let turns = text(4)?.map_or(Ok((vec![], vec![])), |json| turns(&json));
        let (messages, keys) = turns.map_err(|reason| OllamaError::Messages { name: name.to_string(), reason })?;
        let (template, system, config) = (text(0)?, text(1)?, text(3)?);
        let template =
            template.filter(|template| !(says_nothing(template) && config.is_some_and(|json| names_renderer(&json))));
        let system = system.filter(|system| !system.trim().is_empty());
        let mut kinds: Vec<&str> =
            parsed.layers.iter().map(|layer| layer.kind.as_str()).filter(|kind| !APPLIED.contains(kind)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let layer = |kind: &&str| match *kind {
            "projector" => "its encoder of images and sound".to_string(),
            other => format!("its layer {}", quoted(other)),
        };
        let keys = keys.iter().map(|key| format!("{} of its messages", quoted(key)));
        let unapplied = params.unapplied.iter().cloned().chain(keys).chain(kinds.iter().map(layer)).collect();
        Ok(Self {
            model,
            adapters: all("adapter")?,
            projectors: all("projector")?,
            template,
            system,
            params,
            messages,
            unapplied,
            texts: texts.concat(),
            name,
        })
    }

    /// The file with Ollama's chat template, if the file has none of its own, and with a note that
    /// lists the settings that change answers in Ollama and do not apply in Weft. The parameters,
    /// the system prompt, the messages and the adapters are applied by the caller.
    #[must_use]
    pub fn fit(&self, mut file: ModelFile) -> ModelFile {
        let own = !matches!(file.file().get_opt::<&str>("tokenizer.chat_template"), Ok(None));
        let mut unapplied = self.unapplied.clone();
        match self.template.as_deref().map(jinja) {
            None => {}
            Some(Ok(source)) if !own => file = file.with_template(&source),
            Some(Ok(source)) if self.alike(&file, &source) => {}
            Some(Ok(_)) => unapplied.push("its chat template, because the file has its own".to_string()),
            Some(Err(reason)) => unapplied.push(format!("its chat template ({reason})")),
        }
        if !unapplied.is_empty() {
            file.notes.push(Note::Ollama { unapplied });
        }
        file
    }

    /// Whether the file's chat template and this one give the same prompts for plain conversations.
    fn alike(&self, file: &ModelFile, source: &str) -> bool {
        let (tokenizer, theirs) = (file.tokenizer(), ChatTemplate::new(source, file.tokenizer()));
        let system: Vec<Message> = self.system.iter().map(Message::system).collect();
        let turns = |more: &[Message]| [&system[..], more].concat();
        let one = turns(&[Message::user("a")]);
        let two = turns(&[Message::user("a"), Message::assistant("b"), Message::user("c")]);
        let prompt = |template: &ChatTemplate, turns: &[Message]| {
            template.encode(tokenizer, turns, &RenderOptions::default()).ok()
        };
        [one, two].iter().all(|turns| prompt(file.template(), turns) == prompt(&theirs, turns))
    }

    /// Hashes every file, and reports the bytes.
    ///
    /// # Errors
    /// [`OllamaError::BlobDigest`] for the first file whose content differs from its digest;
    /// [`OllamaError::Unreadable`].
    pub fn verify(&self, progress: &dyn Fn(Progress)) -> Result<(), OllamaError> {
        let blobs = || std::iter::once(&self.model).chain(&self.adapters).chain(&self.projectors).chain(&self.texts);
        let total = blobs().map(|blob| blob.bytes).sum();
        let mut done = 0;
        for blob in blobs() {
            let found = blob.hash(|bytes| {
                done += bytes;
                progress(Progress { done, total });
            })?;
            if found != blob.digest.hex() {
                let (name, kind) = (self.name.to_string(), blob.kind.clone());
                return Err(OllamaError::BlobDigest { name, kind, path: blob.path.clone(), found });
            }
        }
        Ok(())
    }
}

impl Blob {
    fn new(store: &Arc<dyn Directory>, name: &Name, layer: &Layer) -> Result<Self, OllamaError> {
        let (inside, store, digest) = (layer.digest.path(), Arc::clone(store), layer.digest.clone());
        let (name, kind, path) = (name.to_string(), layer.kind.clone(), store.locate(&inside));
        let found = match store.item(&inside) {
            Ok(Item::File { bytes }) => bytes,
            Ok(Item::Folder) => return Err(OllamaError::BlobMissing { name, kind, path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OllamaError::BlobMissing { name, kind, path });
            }
            Err(error) => return Err(OllamaError::Unreadable { path, error }),
        };
        if found != layer.bytes {
            return Err(OllamaError::BlobSize { name, kind, path, expected: layer.bytes, found });
        }
        Ok(Self { kind, path, bytes: found, digest, store })
    }

    /// Opens the file, wherever the store is.
    ///
    /// # Errors
    /// [`OllamaError::Unreadable`].
    pub fn open(&self) -> Result<Box<dyn Source>, OllamaError> {
        self.store.open(&self.digest.path()).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: io::Error) -> OllamaError {
        OllamaError::Unreadable { path: self.path.clone(), error }
    }

    fn text(&self, name: &Name) -> Result<String, OllamaError> {
        if self.bytes > MAX_TEXT {
            return Err(OllamaError::TextSize {
                name: name.to_string(),
                kind: self.kind.clone(),
                bytes: self.bytes,
                limit: MAX_TEXT,
            });
        }
        let bytes = self.store.read(&self.digest.path(), MAX_TEXT).map_err(|error| self.unreadable(error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The file's SHA-256 in hexadecimal digits.
    fn hash(&self, mut read: impl FnMut(u64)) -> Result<String, OllamaError> {
        let (file, mut hasher, mut chunk) = (self.open()?, Sha256::new(), vec![0; CHUNK]);
        for at in (0..file.len_bytes()).step_by(CHUNK) {
            let chunk = &mut chunk[..(file.len_bytes() - at).min(CHUNK as u64) as usize];
            file.read_at(at, chunk).map_err(|error| self.unreadable(error))?;
            hasher.update(&*chunk);
            read(chunk.len() as u64);
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The messages of a layer, and the keys that no message of text has.
fn turns(json: &str) -> Result<(Vec<Message>, Vec<String>), String> {
    let mut messages: Vec<Message> = serde_json::from_str(json).map_err(|error| json_reason(&error))?;
    let mut keys = vec![];
    for message in &mut messages {
        if !matches!(message.content, None | Some(Value::String(_))) {
            return Err("the content of a message is not a string".to_string());
        }
        keys.extend(std::mem::take(&mut message.extra).into_iter().map(|(key, _)| key));
    }
    keys.sort_unstable();
    keys.dedup();
    Ok((messages, keys))
}

/// Whether a template is just the prompt.
fn says_nothing(template: &str) -> bool {
    template.split_whitespace().collect::<String>() == "{{.Prompt}}"
}

/// Whether the config names a renderer in Ollama's own code.
fn names_renderer(json: &str) -> bool {
    let config: Option<Map<String, Value>> = serde_json::from_str(json).ok();
    let renderer = config.as_ref().and_then(|config| config.get("renderer")?.as_str());
    renderer.is_some_and(|name| !name.is_empty())
}
