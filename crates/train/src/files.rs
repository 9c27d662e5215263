//! Files of results, in the form of safetensors.

use crate::error::Error;
use crate::gradients::CapturedRows;
use crate::parameters::Parameter;
use model::{EMBEDDING, transpose};
use safetensors::tensor::{Dtype, TensorView};
use std::io::Write;

/// Writes parameters or gradients as safetensors, f32, under the names that PEFT and transformers
/// use for this architecture ([`Parameter::peft_name`]), else under their own.
///
/// # Errors
/// [`Error::NoForm`] and [`Error::File`].
pub fn write_parameters(out: impl Write, architecture: &str, parameters: &[Parameter]) -> Result<(), Error> {
    write_all(out, &parameters_file(architecture, parameters)?)
}

/// Writes captures as safetensors, f32 [rows, width]: `blk.3.attn_norm` for a value of a layer,
/// `grad.blk.3.attn_norm` for the derivative by it, `embed` for the input of the first layer.
///
/// # Errors
/// As [`write_parameters`].
pub fn write_captures(out: impl Write, captures: &[CapturedRows]) -> Result<(), Error> {
    write_all(out, &captures_file(captures)?)
}

fn write_all(mut out: impl Write, bytes: &[u8]) -> Result<(), Error> {
    Ok(out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| gguf::Error::Write { error })?)
}

/// The bytes that [`write_parameters`] writes.
pub(crate) fn parameters_file(architecture: &str, parameters: &[Parameter]) -> Result<Vec<u8>, Error> {
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
    serialized(parameters.iter().map(tensor).collect())
}

/// The bytes that [`write_captures`] writes.
pub(crate) fn captures_file(captures: &[CapturedRows]) -> Result<Vec<u8>, Error> {
    let tensor = |captured: &CapturedRows| {
        let CapturedRows { layer, width, values, .. } = captured;
        let shape = vec![values.len() as u32 / (*width).max(1), *width];
        TensorF32::new(captured.capture.tensor_name(*layer), shape, values)
    };
    serialized(captures.iter().map(tensor).collect())
}

/// A tensor for [`serialized`].
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

/// The bytes of a file with these tensors.
pub(crate) fn serialized(tensors: Vec<TensorF32>) -> Result<Vec<u8>, Error> {
    let mut views = vec![];
    for TensorF32 { name, shape, bytes } in &tensors {
        let shape = shape.iter().map(|n| *n as usize).collect();
        let view = TensorView::new(Dtype::F32, shape, bytes).map_err(|error| Error::no_form(error.to_string()))?;
        views.push((name, view));
    }
    // Transformers refuses files that do not say whose tensors they are.
    let origin = Some([("format".to_string(), "pt".to_string())].into_iter().collect());
    safetensors::serialize(views, origin).map_err(|error| Error::no_form(error.to_string()))
}
