//! The weights of an executor: device buffers in the kernels' layout, or the bytes of the file in
//! memory for the oracles.

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::listed::{HostTensor, Listed, converted, row_bytes, source_bytes};
use crate::exec::quantized::Quantized;
use crate::exec::upload::{Flight, upload};
use crate::graph::tensor::{Place, Weight};
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::platform::try_each;
use gguf::{GgmlType, Gguf, Progress, Report, Source};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that one core reads from a file at a time.
const READ_BYTES: usize = 4 << 20;

/// The bytes of one tensor, as ggml lays them out.
#[derive(Clone)]
pub enum TensorBytes {
    Owned(Arc<[u8]>),
    /// A tensor of an open file, by its index in [`Gguf::tensors`].
    File(Arc<Gguf>, usize),
    /// A byte range of a tensor of an open file: one of the tensor's several matrices.
    Part(Arc<Gguf>, usize, Range<u64>),
    /// The bytes of a file in another format, from this offset on.
    At(Arc<dyn Source>, u64),
    /// A tensor that becomes another type while it is read ([`TensorBytes::quantized`]).
    Quantized(Arc<Quantized>),
}

impl TensorBytes {
    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Read`] if the file cannot be read or is too short; [`Error::Quantize`].
    ///
    /// # Panics
    /// If owned bytes are too short.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Owned(bytes) => buf.copy_from_slice(&bytes[offset as usize..][..buf.len()]),
            Self::File(file, n) => file.read_tensor(&file.tensors()[*n], offset, buf)?,
            Self::Part(file, n, part) => file.read_tensor(&file.tensors()[*n], part.start + offset, buf)?,
            Self::At(source, start) => {
                let (offset, len) = (start + offset, buf.len());
                source.read_at(offset, buf).map_err(|error| gguf::Error::Read { offset, len, error })?;
            }
            Self::Quantized(tensor) => tensor.read(offset, buf)?,
        }
        Ok(())
    }

    /// The first `size` bytes, read in parallel if there are threads.
    pub(super) fn read_all(&self, size: u64) -> Result<Vec<u8>, Error> {
        let refused = || Error::OutOfMemory { what: "a weight".to_string(), bytes: size };
        let len = usize::try_from(size).map_err(|_| refused())?;
        let mut all = vec![];
        all.try_reserve_exact(len).map_err(|_| refused())?;
        all.resize(len, 0);
        let pieces = all.chunks_mut(READ_BYTES).enumerate().collect();
        try_each(pieces, |(n, piece)| self.read(n as u64 * READ_BYTES as u64, piece))?;
        Ok(all)
    }

    /// The offset of the first byte in the whole file, if it is a tensor of an open file in its own
    /// type.
    pub(super) fn offset(&self) -> Option<u64> {
        match self {
            Self::File(file, n) => Some(file.tensors()[*n].offset),
            Self::Part(file, n, part) => Some(file.tensors()[*n].offset.saturating_add(part.start)),
            Self::Owned(_) | Self::At(..) | Self::Quantized(_) => None,
        }
    }

    /// The bytes, if they are in memory already.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Owned(bytes) => Some(bytes),
            Self::File(file, n) => file.tensor_bytes(&file.tensors()[*n]),
            Self::Part(file, n, part) => {
                let all = file.tensor_bytes(&file.tensors()[*n])?;
                all.get(usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?)
            }
            Self::At(..) | Self::Quantized(_) => None,
        }
    }
}

/// A buffer with the values of a vector.
pub(super) async fn vector_buffer(device: &Device, name: &str, values: &[f32]) -> Result<Buffer, Error> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
    let bytes = bytemuck::cast_slice(values);
    let buffer = device.buffer(name, bytes.len() as u64, usage).await?;
    device.0.queue.write_buffer(&buffer, 0, bytes);
    Ok(buffer)
}

/// The buffers of one tensor: several if one binding cannot hold it.
pub(super) async fn upload_all(
    device: &Device,
    name: &str,
    weight: Weight,
    tensor: Listed,
    flight: &mut Flight,
) -> Result<Vec<Buffer>, Error> {
    let Weight { ty, rows, cols, .. } = weight;
    match tensor {
        Listed::Vector(values) => Ok(vec![vector_buffer(device, name, &values).await?]),
        Listed::Converted(ty, source) => {
            let values = converted(ty, cols, &source.read_all(row_bytes(ty, cols))?)?;
            Ok(vec![vector_buffer(device, name, &values).await?])
        }
        Listed::Matrix(source) => {
            let format = format::format(ty).ok_or_else(|| Error::Format { tensor: name.to_string(), ty: ty.name() })?;
            let mut made = vec![];
            for range in parts(device.caps(), ty, rows, cols) {
                made.push(upload(device, name, format, range, cols, &source, flight).await?);
            }
            Ok(made)
        }
    }
}

#[derive(Clone)]
pub(super) enum Store {
    Gpu(Device, Vec<Vec<Buffer>>),
    Cpu(Vec<HostTensor>),
    /// The tensors to load, and the executor to load them onto.
    Listed(Executor, Vec<Listed>),
}

/// The weights of one model on one executor. A clone shares the tensors. Dropping the last clone
/// frees them.
///
/// A set is made in two steps. [`Weights::matrix`] and [`Weights::vector`] list the tensors and
/// count their bytes. Types of matrices are checked. [`Weights::load`] then loads all tensors. A
/// plan can be made of a listed set, but only a loaded set can be run.
#[derive(Clone)]
pub struct Weights {
    pub(super) list: Vec<(String, Weight)>,
    pub(super) store: Store,
    pub(super) bytes: u64,
}

impl Weights {
    /// An empty set for this executor.
    #[must_use]
    pub fn new(executor: &Executor) -> Self {
        Self { list: vec![], store: Store::Listed(executor.clone(), vec![]), bytes: 0 }
    }

    /// Loads all listed tensors. `progress` gets the bytes of the tensors in the types that they
    /// are listed with.
    ///
    /// # Errors
    /// Errors of the allocation and of reading a source; [`Error::Quantize`]. Nothing stays
    /// allocated after an error.
    pub async fn load_async(self, progress: Report<'_>) -> Result<Self, Error> {
        let Self { list, store, bytes } = self;
        let Store::Listed(executor, listed) = store else { return Ok(Self { list, store, bytes }) };
        let sizes: Vec<u64> = listed.iter().zip(&list).map(|(tensor, (_, w))| tensor.source_bytes(*w)).collect();
        let (total, mut done) = (sizes.iter().sum(), 0);
        let (store, bytes) = match executor {
            Executor::Gpu(device) => {
                let (mut buffers, mut flight) = (vec![], Flight::default());
                for (((name, weight), tensor), size) in list.iter().zip(listed).zip(sizes) {
                    buffers.push(upload_all(&device, name, *weight, tensor, &mut flight).await?);
                    done += size;
                    progress(Progress { done, total });
                }
                let bytes = buffers.iter().flatten().map(|buffer| buffer.size()).sum();
                (Store::Gpu(device, buffers), bytes)
            }
            Executor::Cpu => {
                let mut tensors = vec![];
                for (((_, weight), tensor), size) in list.iter().zip(listed).zip(sizes) {
                    tensors.push(tensor.on_host(*weight)?);
                    done += size;
                    progress(Progress { done, total });
                }
                (Store::Cpu(tensors), bytes)
            }
        };
        Ok(Self { list, store, bytes })
    }

    /// Bytes that a matrix takes on the GPU, including tables and padding.
    #[must_use]
    pub fn device_bytes(ty: GgmlType, rows: u32, cols: u32) -> u64 {
        format::format(ty).map_or(0, |f| f.buffer_words(rows, cols) * 4)
    }

    /// Bytes that all weights take on this executor.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The names and handles, in the order of loading.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Weight)> {
        self.list.iter().map(|(n, w)| (n.as_str(), *w))
    }

    /// Lists a matrix [rows, cols] in the type of its source.
    ///
    /// # Errors
    /// [`Error::Format`] for a type that kernels do not read.
    ///
    /// # Panics
    /// If the set is loaded already.
    pub fn matrix(
        &mut self,
        name: &str,
        ty: GgmlType,
        rows: u32,
        cols: u32,
        source: &TensorBytes,
    ) -> Result<Weight, Error> {
        if format::format(ty).is_none() {
            return Err(Error::Format { tensor: name.to_string(), ty: ty.name() });
        }
        let weight = self.add(name, ty, rows, cols, Listed::Matrix(source.clone()));
        let bytes = if self.on_gpu() { Self::device_bytes(ty, rows, cols) } else { source_bytes(weight) };
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(weight)
    }

    /// Lists a vector (norm, bias, scale). Kernels read vectors as f32, whatever the file's type.
    ///
    /// # Panics
    /// If the set is loaded already.
    pub fn vector(&mut self, name: &str, values: Vec<f32>) -> Weight {
        let cols = values.len() as u32;
        self.bytes += 4 * u64::from(cols);
        self.add(name, GgmlType::F32, 1, cols, Listed::Vector(values.into()))
    }

    /// Lists a vector that becomes f32 when it is loaded.
    ///
    /// # Errors
    /// [`Error::Format`] for a type that kernels do not read.
    ///
    /// # Panics
    /// If the set is loaded already.
    pub fn vector_of(&mut self, name: &str, ty: GgmlType, cols: u32, source: &TensorBytes) -> Result<Weight, Error> {
        if format::format(ty).is_none() {
            return Err(Error::Format { tensor: name.to_string(), ty: ty.name() });
        }
        self.bytes += 4 * u64::from(cols);
        Ok(self.add(name, GgmlType::F32, 1, cols, Listed::Converted(ty, source.clone())))
    }

    /// Appends the tensors of another set without copying them. Returns a function that maps a
    /// handle of the other set to a handle of this set.
    ///
    /// # Panics
    /// If the sets are on different executors, or only one of them is loaded.
    pub fn append(&mut self, other: &Self) -> impl Fn(Weight) -> Weight + use<> {
        let offset = self.list.len() as u32;
        let moved = move |w: Weight| match w.place {
            Place::Loaded(n) => Weight { place: Place::Loaded(n + offset), ..w },
            Place::State(_) => w,
        };
        match (&mut self.store, &other.store) {
            (Store::Gpu(here, all), Store::Gpu(there, more)) if Arc::ptr_eq(&here.0, &there.0) => {
                all.extend_from_slice(more)
            }
            (Store::Cpu(all), Store::Cpu(more)) => all.extend_from_slice(more),
            (Store::Listed(here, all), Store::Listed(there, more)) if here.kind() == there.kind() => {
                all.extend_from_slice(more)
            }
            _ => panic!("weights of different executors"),
        }
        self.list.extend(other.list.iter().map(|(name, w)| (name.clone(), moved(*w))));
        self.bytes += other.bytes;
        moved
    }

    fn on_gpu(&self) -> bool {
        matches!(self.store, Store::Gpu(..) | Store::Listed(Executor::Gpu(_), _))
    }

    fn add(&mut self, name: &str, ty: GgmlType, rows: u32, cols: u32, tensor: Listed) -> Weight {
        let Store::Listed(_, listed) = &mut self.store else { panic!("{name}: the weights are loaded already") };
        listed.push(tensor);
        let weight = Weight::loaded(self.list.len() as u32, ty, rows, cols);
        self.list.push((name.to_string(), weight));
        weight
    }

    /// The buffers of the n-th weight, on a GPU.
    #[cfg(feature = "interop")]
    pub(crate) fn buffers(&self, n: u32) -> Option<&[Buffer]> {
        match &self.store {
            Store::Gpu(_, buffers) => buffers.get(n as usize).map(Vec::as_slice),
            Store::Cpu(_) | Store::Listed(..) => None,
        }
    }

    /// The buffer of one part of the n-th weight.
    pub(crate) fn buffer(&self, n: u32, part: u32) -> &Buffer {
        match &self.store {
            Store::Gpu(_, buffers) => &buffers[n as usize][part as usize],
            Store::Cpu(_) | Store::Listed(..) => panic!("a GPU plan over weights that are not loaded onto the GPU"),
        }
    }

    /// The n-th weight, which must be a vector.
    pub(crate) fn values_of(&self, n: u32) -> &[f32] {
        match &self.store {
            Store::Cpu(tensors) => match &tensors[n as usize] {
                HostTensor::Vector(values) => values,
                HostTensor::Matrix(_) | HostTensor::Read(_) => unreachable!("{} is a matrix", self.list[n as usize].0),
            },
            Store::Gpu(..) | Store::Listed(..) => panic!("a CPU plan over weights that are not loaded onto the CPU"),
        }
    }

    /// The n-th weight, in its file's type.
    pub(crate) fn matrix_of(&self, n: u32) -> cpu_ref::Rows<'_> {
        let Store::Cpu(tensors) = &self.store else {
            panic!("a CPU plan over weights that are not loaded onto the CPU")
        };
        let bytes = match &tensors[n as usize] {
            HostTensor::Matrix(source) => source.bytes().expect("in memory when it was loaded"),
            HostTensor::Read(bytes) => bytes,
            HostTensor::Vector(values) => bytemuck::cast_slice(values),
        };
        let weight = self.list[n as usize].1;
        cpu_ref::Rows::new(weight.ty, weight.cols as usize, bytes)
    }
}
