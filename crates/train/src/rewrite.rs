//! A model file with other values in some of its tensors. Metadata, the tokenizer and all other
//! tensors stay as they are.

use crate::error::Error;
use crate::host::{self, Fill};
use gguf::quants::WRITTEN;
use gguf::{GgmlType, Gguf, GgufBuilder, Progress, Report, TensorInfo, quantize};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Observes the writing of a model file.
#[derive(Copy, Clone, Default)]
pub struct Writing<'a> {
    /// Stops the writing. Nothing of the file is left then.
    pub cancel: Option<&'a AtomicBool>,
    /// Gets the bytes of the tensors that are written.
    pub progress: Option<Report<'a>>,
}

/// A tensor of the new file.
struct Tensor<'a> {
    name: &'a str,
    /// The tensor of the base that has its shape.
    like: &'a TensorInfo,
    /// The type and the values of a tensor that changes; `None` for the bytes of `like`.
    changed: Option<(GgmlType, Fill<'a>)>,
}

/// A model file to be written.
pub struct Rewrite<'a> {
    base: &'a Gguf,
    tensors: Vec<Tensor<'a>>,
    fallbacks: Vec<Fallback>,
}

/// A tensor that has another type than the one that was asked for, because its rows are no whole
/// number of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    pub tensor: String,
    /// Elements of a row.
    pub cols: u64,
    pub asked: GgmlType,
    pub written: GgmlType,
}

/// Bytes that are copied at a time, and about the bytes of values that a thread converts at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The largest magnitude that rounds to a finite f16.
const F16_LIMIT: f32 = 65_520.0;

impl<'a> Rewrite<'a> {
    /// All tensors of a file.
    pub fn of(base: &'a Gguf) -> Self {
        let tensors = base.tensors().iter().map(|like| Tensor { name: like.name(), like, changed: None });
        Self { base, tensors: tensors.collect(), fallbacks: vec![] }
    }

    /// Whether the file will have this tensor.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|tensor| tensor.name == name)
    }

    /// Adds a tensor with the shape and, unless it is changed, the bytes of one of the base.
    ///
    /// # Errors
    /// [`Error::File`] if the base has no such tensor.
    pub fn add(&mut self, name: &'a str, like: &str) -> Result<(), Error> {
        self.tensors.push(Tensor { name, like: self.base.tensor(like)?, changed: None });
        Ok(())
    }

    /// The tensors that get another type than was asked for.
    pub fn fallbacks(&self) -> &[Fallback] {
        &self.fallbacks
    }

    /// Gives a tensor other values, in the type `ty` or in its own. Rows that are no whole number
    /// of its blocks get the type that [`GgmlType::fitting`] says.
    ///
    /// # Errors
    /// [`Error::NoTarget`], and [`Error::Unwritable`] for a type that cannot be written.
    pub fn change(&mut self, name: &str, ty: Option<GgmlType>, fill: Fill<'a>) -> Result<(), Error> {
        let found = self.tensors.iter_mut().find(|tensor| tensor.name == name);
        let tensor = found.ok_or_else(|| Error::NoTarget { target: name.to_string() })?;
        let (asked, cols) = (ty.map_or_else(|| tensor.like.ty(), Ok)?, tensor.like.cols());
        if !WRITTEN.contains(&asked) {
            return Err(Error::Unwritable { tensor: name.to_string(), ty: asked.name() });
        }
        let written = asked.fitting(cols as usize);
        if written != asked {
            self.fallbacks.push(Fallback { tensor: name.to_string(), cols, asked, written });
        }
        tensor.changed = Some((written, fill));
        Ok(())
    }

    /// Gives the file to `write`, which writes it in memory that does not grow with the model.
    /// Returns its size in bytes.
    ///
    /// # Errors
    /// [`Error::File`], and [`kernels::Error::Cancelled`].
    pub fn write(
        &self,
        watch: Writing<'_>,
        write: impl FnOnce(&GgufBuilder<'_>) -> gguf::Result<()>,
    ) -> Result<u64, Error> {
        let total = self.tensors.iter().map(|tensor| tensor.like.bytes).sum();
        let log = Log { watch, total, done: AtomicU64::new(0) };
        let mut file = GgufBuilder::new().copy_metadata(self.base);
        if let Some(number) = self.file_type()? {
            file = file.set("general.file_type", number);
        }
        let quantizes =
            self.tensors.iter().any(|tensor| tensor.changed.as_ref().is_some_and(|(ty, _)| ty.is_quantized()));
        if quantizes && self.base.get_opt::<u32>("general.quantization_version")?.is_none() {
            file = file.set("general.quantization_version", 2u32);
        }
        for tensor in &self.tensors {
            let ty = tensor.changed.as_ref().map_or_else(|| tensor.like.ty(), |(ty, _)| Ok(*ty))?;
            file = file.tensor_written(tensor.name, tensor.like.shape(), ty, |out| tensor.write(self.base, &log, out));
        }
        let written = write(&file);
        if written.is_err() && log.is_cancelled() {
            return Err(kernels::Error::Cancelled.into());
        }
        written?;
        Ok(file.len_bytes()?)
    }

    /// The value of `general.file_type`, if the base has one and most weights of the matrices get
    /// another type.
    fn file_type(&self) -> Result<Option<u32>, Error> {
        let (mut before, mut after) = (HashMap::new(), HashMap::new());
        for Tensor { like, changed, .. } in self.tensors.iter().filter(|tensor| tensor.like.n_dims > 1) {
            let ty = like.ty()?;
            *before.entry(ty).or_insert(0u64) += like.elements();
            *after.entry(changed.as_ref().map_or(ty, |(ty, _)| *ty)).or_insert(0u64) += like.elements();
        }
        let most =
            |of: HashMap<GgmlType, u64>| of.into_iter().max_by_key(|(ty, elements)| (*elements, *ty)).map(|(ty, _)| ty);
        let (before, after) = (most(before), most(after));
        let stated = self.base.get_opt::<u32>("general.file_type")?.is_some();
        Ok(after.filter(|_| stated && after != before).and_then(file_type))
    }
}

/// llama.cpp's `llama_ftype` of a file whose matrices have this type.
fn file_type(ty: GgmlType) -> Option<u32> {
    use GgmlType::*;
    let number = match ty {
        F32 => 0,
        F16 => 1,
        Q4_0 => 2,
        Q4_1 => 3,
        Q8_0 => 7,
        Q5_0 => 8,
        Q5_1 => 9,
        Q4_K => 14,
        Q5_K => 16,
        Q6_K => 18,
        BF16 => 32,
        _ => return None,
    };
    Some(number)
}

/// How much is written.
struct Log<'a> {
    watch: Writing<'a>,
    total: u64,
    done: AtomicU64,
}

impl Log<'_> {
    fn is_cancelled(&self) -> bool {
        self.watch.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Counts bytes of the base whose tensors are written.
    fn add(&self, bytes: usize) -> io::Result<()> {
        let done = self.done.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if let Some(progress) = self.watch.progress {
            progress(Progress { done, total: self.total });
        }
        if self.is_cancelled() { Err(io::Error::other("cancelled")) } else { Ok(()) }
    }
}

impl Tensor<'_> {
    fn write(&self, base: &Gguf, log: &Log<'_>, out: &mut dyn Write) -> io::Result<()> {
        match &self.changed {
            None => self.copy(base, log, out),
            Some((ty, fill)) => self.convert(*ty, fill, log, out),
        }
    }

    fn copy(&self, base: &Gguf, log: &Log<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut bytes = vec![0; self.like.bytes.min(CHUNK_BYTES as u64) as usize];
        let mut offset = 0;
        while offset < self.like.bytes {
            let len = bytes.len().min((self.like.bytes - offset) as usize);
            base.read_tensor(self.like, offset, &mut bytes[..len])?;
            out.write_all(&bytes[..len])?;
            offset += len as u64;
            log.add(len)?;
        }
        Ok(())
    }

    /// Writes the values: in parallel by groups of rows, in the order of the rows.
    fn convert(&self, ty: GgmlType, fill: &Fill<'_>, log: &Log<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (rows, cols) = (self.like.rows() as usize, self.like.cols() as usize);
        let group = (CHUNK_BYTES / 4 / cols).max(1);
        let batch = rows.min(group * host::threads());
        let mut values = vec![0.0; batch * cols];
        for first in (0..rows).step_by(batch) {
            let count = batch.min(rows - first);
            let groups = values[..count * cols].chunks_mut(group * cols).enumerate().collect();
            let convert =
                |(): &mut (), (n, values): (usize, &mut [f32])| self.converted(ty, fill, first + n * group, values);
            let bytes: Vec<Vec<u8>> = host::map(groups, || (), convert)?;
            bytes.iter().try_for_each(|bytes| out.write_all(bytes))?;
            log.add((self.like.bytes / rows as u64) as usize * count)?;
        }
        Ok(())
    }

    fn converted(&self, ty: GgmlType, fill: &Fill<'_>, first: usize, values: &mut [f32]) -> io::Result<Vec<u8>> {
        fill(first, values)?;
        let limit = if ty == GgmlType::F16 { F16_LIMIT } else { f32::INFINITY };
        match values.iter().find(|value| value.is_nan() || value.abs() >= limit) {
            Some(value) => {
                Err(io::Error::other(format!("tensor {} would hold {value}, which is no finite {ty}", self.name)))
            }
            None => {
                let named = |error| io::Error::other(format!("tensor {}: {error}", self.name));
                quantize(ty, values, self.like.cols() as usize).map_err(named)
            }
        }
    }
}
