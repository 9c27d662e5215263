//! Finds the tensors of an architecture in a file by name and checks every shape.

use crate::base::Base;
use crate::error::Error;
use gguf::{GgmlType, Gguf, TensorInfo};
use kernels::{TensorBytes, Weight, Weights};
use std::sync::Arc;

/// Checks tensors and lists them in [`Weights`], which load them later.
pub(crate) struct Loader<'a> {
    pub file: &'a Arc<Gguf>,
    pub architecture: &'static str,
    pub base: Base,
    pub weights: Weights,
}

impl Base {
    /// The type of the matrices that are converted.
    pub(crate) fn ty(self) -> Option<GgmlType> {
        match self {
            Self::AsStored => None,
            Self::Nf4 => Some(GgmlType::NF4),
            Self::Nf4Dq => Some(GgmlType::NF4_DQ),
        }
    }
}

impl Loader<'_> {
    /// Whether the file has this tensor.
    pub fn has(&self, name: &str) -> bool {
        self.file.find_tensor(name).is_some()
    }

    /// Number of rows of a matrix, for the rows that the metadata does not give: the vocabulary.
    pub fn rows(&self, name: &str) -> Result<u32, Error> {
        let tensor = self.find(name)?.1;
        u32::try_from(tensor.rows()).map_err(|_| Error::TensorShape {
            name: name.to_string(),
            expected: vec![u64::from(u32::MAX), tensor.cols()],
            found: shape(tensor),
        })
    }

    /// Lists a matrix [rows, cols] in its own type, or in the type of the base.
    pub fn matrix(&mut self, name: &str, rows: u32, cols: u32) -> Result<Weight, Error> {
        let (at, tensor) = self.checked(name, &[u64::from(rows), u64::from(cols)])?;
        let ty = tensor.ty()?;
        self.list(name, ty, rows, cols, TensorBytes::File(Arc::clone(self.file), at))
    }

    /// Lists the first `rows` rows of a matrix that may have more, in its own type.
    pub fn leading(&mut self, name: &str, rows: u32, cols: u32) -> Result<Weight, Error> {
        let all = self.rows(name)?.max(rows);
        let (at, tensor) = self.checked(name, &[u64::from(all), u64::from(cols)])?;
        let (ty, bytes) = (tensor.ty()?, tensor.bytes);
        let part = TensorBytes::Part(Arc::clone(self.file), at, 0..bytes / u64::from(all) * u64::from(rows));
        Ok(self.weights.matrix(name, ty, rows, cols, &part)?)
    }

    /// Lists a tensor [count, rows, cols] as one matrix [count * rows, cols], with the type as of
    /// [`Loader::matrix`]: the matrices of all experts, one after the other.
    pub fn experts(&mut self, name: &str, count: u32, rows: u32, cols: u32) -> Result<Weight, Error> {
        let (at, tensor) = self.checked(name, &[count, rows, cols].map(u64::from))?;
        let ty = tensor.ty()?;
        self.list(name, ty, count * rows, cols, TensorBytes::File(Arc::clone(self.file), at))
    }

    /// Lists a tensor [count, rows, cols] as `count` matrices [rows, cols] in its own type.
    pub fn matrices(&mut self, name: &str, count: u32, rows: u32, cols: u32) -> Result<Vec<Weight>, Error> {
        let (at, tensor) = self.checked(name, &[count, rows, cols].map(u64::from))?;
        let (ty, bytes) = (tensor.ty()?, tensor.bytes);
        let each = bytes / u64::from(count);
        let part = |n: u64| TensorBytes::Part(Arc::clone(self.file), at, n * each..(n + 1) * each);
        let parts: Vec<_> = (0..u64::from(count)).map(part).collect();
        let weights = parts.iter().map(|part| self.weights.matrix(name, ty, rows, cols, part));
        Ok(weights.collect::<Result<_, _>>()?)
    }

    /// Lists a vector [cols] and converts it to f32. Its type must be a type that weights may have.
    pub fn vector(&mut self, name: &str, cols: u32) -> Result<Weight, Error> {
        let (at, tensor) = self.checked(name, &[u64::from(cols)])?;
        let ty = tensor.ty()?;
        Ok(self.weights.vector_of(name, ty, cols, &TensorBytes::File(Arc::clone(self.file), at))?)
    }

    /// Reads the values of a vector [cols] for use on the host.
    pub fn values(&mut self, name: &str, cols: u32) -> Result<Vec<f32>, Error> {
        let (_, tensor) = self.checked(name, &[u64::from(cols)])?;
        let ty = tensor.ty()?;
        if !kernels::reads(ty) {
            return Err(kernels::Error::Format { tensor: name.to_string(), ty: ty.name() }.into());
        }
        Ok(self.file.dequantized(tensor)?)
    }

    /// Reads a vector [cols] of divisors of rope's frequencies. They must be finite and above zero.
    pub fn divisors(&mut self, name: &str, cols: u32) -> Result<Vec<f32>, Error> {
        let values = self.values(name, cols)?;
        match values.iter().find(|value| !value.is_finite() || **value <= 0.0) {
            Some(found) => {
                Err(Error::TensorValue { name: name.to_string(), expected: "finite numbers above zero", found: *found })
            }
            None => Ok(values),
        }
    }

    /// Lists a matrix in its own type, or in the type of the base if it is one of a linear layer.
    fn list(&mut self, name: &str, ty: GgmlType, rows: u32, cols: u32, source: TensorBytes) -> Result<Weight, Error> {
        let (ty, source) = match self.base.ty().filter(|_| is_linear(name)) {
            Some(base) => (base, quantized(name, ty, base, cols, source)?),
            None => (ty, source),
        };
        Ok(self.weights.matrix(name, ty, rows, cols, &source)?)
    }

    fn find(&self, name: &str) -> Result<(usize, &TensorInfo), Error> {
        let tensor = self.file.find_tensor(name);
        let tensor =
            tensor.ok_or_else(|| Error::TensorMissing { name: name.to_string(), architecture: self.architecture })?;
        let at = self.file.tensors().iter().position(|t| std::ptr::eq(t, tensor)).unwrap_or_default();
        Ok((at, tensor))
    }

    fn checked(&self, name: &str, expected: &[u64]) -> Result<(usize, &TensorInfo), Error> {
        let (at, tensor) = self.find(name)?;
        let found = shape(tensor);
        // A file may store a matrix of one row as a vector, and a single expert as a matrix.
        let leading = expected.iter().take(expected.len() - 1).take_while(|&&n| n == 1).count();
        if found == expected[leading..] {
            return Ok((at, tensor));
        }
        Err(Error::TensorShape { name: name.to_string(), expected: expected.to_vec(), found })
    }
}

/// Whether a matrix is one of attention or of a feed-forward network, also of experts. A router is
/// not: with a rounded router, tokens would go to other experts.
fn is_linear(name: &str) -> bool {
    let in_layer = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')).map(|(_, name)| name);
    in_layer.is_some_and(|name| {
        (name.starts_with("attn_") || name.starts_with("ffn_")) && !name.starts_with("ffn_gate_inp")
    })
}

/// The blocks of a matrix in the type of the base.
fn quantized(name: &str, ty: GgmlType, base: GgmlType, cols: u32, source: TensorBytes) -> Result<TensorBytes, Error> {
    if !matches!(ty, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16) {
        return Err(Error::BaseType { name: name.to_string(), ty, base });
    }
    if !cols.is_multiple_of(base.block_size() as u32) {
        return Err(Error::BaseRow { name: name.to_string(), cols, base });
    }
    Ok(source.quantized(name, ty, base))
}

/// The shape of a tensor, slowest dimension first. Dimensions of 1 at the slow end are left out,
/// because some files store them and others do not.
fn shape(tensor: &TensorInfo) -> Vec<u64> {
    let mut shape: Vec<u64> = tensor.shape().to_vec();
    while shape.len() > 1 && shape.last() == Some(&1) {
        shape.pop();
    }
    shape.reverse();
    shape
}
