//! Files of results, in the form of safetensors.

use crate::checkpoint::{Facts, Restored};
use crate::error::Error;
use crate::gradients::CapturedRows;
use crate::parameters::Parameter;
use crate::trainer::Trainer;
use model::{EMBEDDING, transpose};
use safetensors::tensor::{Dtype, TensorView};
use std::io;
use std::path::Path;

/// Writes parameters or gradients as safetensors, f32, under the names that PEFT and transformers
/// use for this architecture ([`Parameter::peft_name`]), else under their own. The file is written
/// whole or not at all.
///
/// # Errors
/// [`Error::Write`] and [`Error::File`].
pub fn save_parameters(path: &Path, architecture: &str, parameters: &[Parameter]) -> Result<(), Error> {
    let tensor = |parameter: &Parameter| {
        let name = parameter.peft_name(architecture).unwrap_or_else(|| parameter.name.clone());
        let Parameter { rows, cols, .. } = *parameter;
        // PEFT keeps the factor that ids choose rows of with its rows as columns.
        if parameter.name.strip_suffix(".lora_b") == Some(EMBEDDING) {
            return TensorF32::new(name, vec![cols, rows], &transpose(&parameter.values, cols as usize));
        }
        let is_factor = [".lora_a", ".lora_b"].iter().any(|side| parameter.name.ends_with(side));
        let shape = if rows == 1 && !is_factor { vec![cols] } else { vec![rows, cols] };
        TensorF32::new(name, shape, &parameter.values)
    };
    save_then(path, parameters.iter().map(tensor).collect(), || Ok(()))
}

/// Writes captures as safetensors, f32 [rows, width]: `blk.3.attn_norm` for a value of a layer,
/// `grad.blk.3.attn_norm` for the derivative by it, `embed` for the input of the first layer.
///
/// # Errors
/// As [`save_parameters`].
pub fn save_captures(path: &Path, captures: &[CapturedRows]) -> Result<(), Error> {
    let tensor = |captured: &CapturedRows| {
        let CapturedRows { layer, width, values, .. } = captured;
        let shape = vec![values.len() as u32 / (*width).max(1), *width];
        TensorF32::new(captured.capture.tensor_name(*layer), shape, values)
    };
    save_then(path, captures.iter().map(tensor).collect(), || Ok(()))
}

/// A tensor for [`save_then`].
pub(crate) struct TensorF32 {
    name: String,
    shape: Vec<u32>,
    bytes: Vec<u8>,
}

impl TensorF32 {
    pub(crate) fn new(name: String, shape: Vec<u32>, values: &[f32]) -> Self {
        Self { name, shape, bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }
}

/// Writes tensors, and calls `then` when their bytes are written, but before the file has its name.
pub(crate) fn save_then(
    path: &Path,
    tensors: Vec<TensorF32>,
    then: impl FnOnce() -> io::Result<()>,
) -> Result<(), Error> {
    let failed = |reason: String| Error::Write { file: path.display().to_string(), reason };
    let mut views = vec![];
    for TensorF32 { name, shape, bytes } in &tensors {
        let shape = shape.iter().map(|n| *n as usize).collect();
        views.push((name, TensorView::new(Dtype::F32, shape, bytes).map_err(|error| failed(error.to_string()))?));
    }
    // Transformers refuses files that do not say whose tensors they are.
    let origin = Some([("format".to_string(), "pt".to_string())].into_iter().collect());
    let bytes = safetensors::serialize(views, origin).map_err(|error| failed(error.to_string()))?;
    Ok(gguf::atomic_write(path, |out| {
        out.write_all(&bytes)?;
        out.flush()?;
        then()
    })?)
}

impl Trainer {
    /// Takes the state of a checkpoint file; see [`Trainer::restore`].
    ///
    /// # Errors
    /// As [`Trainer::restore`].
    pub fn load_checkpoint(&mut self, path: &Path, facts: &Facts) -> Result<Restored, Error> {
        let file = gguf::FileSource::open(path)?;
        self.restore(&file, facts).map_err(|reason| Error::Checkpoint { file: path.display().to_string(), reason })
    }
}
