//! The weights of an executor: device buffers in the kernels' layout, or the bytes of the file for
//! the oracles.

use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::upload::{Flight, upload};
use crate::graph::tensor::{Place, Weight};
use crate::kernel::format;
use crate::kernel::split::parts;
use gguf::{GgmlType, Gguf, Source};
use std::ops::Range;
use std::sync::Arc;

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
}

impl TensorBytes {
    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Read`] if the file cannot be read or is too short.
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
        }
        Ok(())
    }

    /// The bytes, if they are in memory already.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Owned(bytes) => Some(bytes),
            Self::File(file, n) => file.tensor_bytes(&file.tensors()[*n]),
            Self::Part(file, n, part) => {
                let all = file.tensor_bytes(&file.tensors()[*n])?;
                all.get(usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?)
            }
            Self::At(..) => None,
        }
    }
}

#[derive(Clone)]
pub(crate) enum HostTensor {
    Vector(Arc<[f32]>),
    Matrix(TensorBytes),
}

#[derive(Clone)]
enum Store {
    Gpu(Device, Vec<Vec<wgpu::Buffer>>),
    Cpu(Vec<HostTensor>),
    /// No data: only sizes are counted.
    Dry {
        on_gpu: bool,
    },
}

/// The weights of one model on one executor. A clone shares the tensors; dropping the last clone
/// frees them.
#[derive(Clone)]
pub struct Weights {
    list: Vec<(String, Weight)>,
    store: Store,
    bytes: u64,
    flight: Flight,
}

impl Weights {
    /// An empty set for this executor.
    #[must_use]
    pub fn new(executor: &Executor) -> Self {
        let store = match executor {
            Executor::Gpu(device) => Store::Gpu(device.clone(), vec![]),
            Executor::Cpu => Store::Cpu(vec![]),
        };
        Self { list: vec![], store, bytes: 0, flight: Flight::default() }
    }

    /// A set that checks types and counts bytes, and allocates nothing.
    #[must_use]
    pub fn dry(executor: &Executor) -> Self {
        let store = Store::Dry { on_gpu: matches!(executor, Executor::Gpu(_)) };
        Self { list: vec![], store, bytes: 0, flight: Flight::default() }
    }

    /// Call it after loading: frees the staging memory that loading used.
    #[must_use]
    pub fn loaded(self) -> Self {
        Self { flight: Flight::default(), ..self }
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

    /// Loads a matrix [rows, cols] in its file's type.
    ///
    /// # Errors
    /// [`Error::Format`] for a type that kernels do not read, and allocation and read errors.
    pub fn matrix(&mut self, name: &str, ty: GgmlType, rows: u32, cols: u32, source: &TensorBytes) -> Result<Weight, Error> {
        let format = format::format(ty).ok_or_else(|| Error::Format { tensor: name.to_string(), ty: ty.name() })?;
        match &mut self.store {
            Store::Gpu(device, buffers) => {
                let mut made = vec![];
                for range in parts(device.caps(), ty, rows, cols) {
                    made.push(upload(device, name, format, range, cols, source, &mut self.flight)?);
                }
                self.bytes += made.iter().map(wgpu::Buffer::size).sum::<u64>();
                buffers.push(made);
            }
            Store::Cpu(tensors) => {
                let row_bytes = ty.row_bytes(cols as usize).unwrap_or(0);
                let source = match source.bytes() {
                    Some(_) => source.clone(),
                    None => {
                        let mut owned = vec![0; row_bytes * rows as usize];
                        source.read(0, &mut owned)?;
                        TensorBytes::Owned(owned.into())
                    }
                };
                self.bytes += row_bytes as u64 * u64::from(rows);
                tensors.push(HostTensor::Matrix(source));
            }
            Store::Dry { on_gpu: true } => self.bytes += Self::device_bytes(ty, rows, cols),
            Store::Dry { on_gpu: false } => self.bytes += ty.row_bytes(cols as usize).unwrap_or(0) as u64 * u64::from(rows),
        }
        Ok(self.add(name, ty, rows, cols))
    }

    /// Loads a vector (norm, bias, scale). Kernels read vectors as f32, whatever the file's type.
    ///
    /// # Errors
    /// Allocation errors.
    pub fn vector(&mut self, name: &str, values: Vec<f32>) -> Result<Weight, Error> {
        let cols = values.len() as u32;
        self.bytes += 4 * u64::from(cols);
        match &mut self.store {
            Store::Gpu(device, buffers) => {
                let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
                let buffer = device.buffer(name, 4 * u64::from(cols), usage)?;
                device.0.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&values));
                buffers.push(vec![buffer]);
            }
            Store::Cpu(tensors) => tensors.push(HostTensor::Vector(values.into())),
            Store::Dry { .. } => {}
        }
        Ok(self.add(name, GgmlType::F32, 1, cols))
    }

    /// Appends the tensors of another set without copying them. Returns a function that maps a
    /// handle of the other set to a handle of this set.
    ///
    /// # Panics
    /// If the sets are on different executors, or only one of them is dry.
    pub fn append(&mut self, other: &Self) -> impl Fn(Weight) -> Weight + use<> {
        let offset = self.list.len() as u32;
        let moved = move |w: Weight| match w.place {
            Place::Loaded(n) => Weight { place: Place::Loaded(n + offset), ..w },
            Place::State(_) => w,
        };
        match (&mut self.store, &other.store) {
            (Store::Gpu(here, all), Store::Gpu(there, more)) if Arc::ptr_eq(&here.0, &there.0) => all.extend_from_slice(more),
            (Store::Cpu(all), Store::Cpu(more)) => all.extend_from_slice(more),
            (Store::Dry { on_gpu: here }, Store::Dry { on_gpu: there }) if here == there => {}
            _ => panic!("weights of different executors"),
        }
        self.list.extend(other.list.iter().map(|(name, w)| (name.clone(), moved(*w))));
        self.bytes += other.bytes;
        moved
    }

    fn add(&mut self, name: &str, ty: GgmlType, rows: u32, cols: u32) -> Weight {
        let weight = Weight::loaded(self.list.len() as u32, ty, rows, cols);
        self.list.push((name.to_string(), weight));
        weight
    }

    /// The buffers of the n-th weight, on a GPU.
    #[cfg(feature = "interop")]
    pub(crate) fn buffers(&self, n: u32) -> Option<&[wgpu::Buffer]> {
        match &self.store {
            Store::Gpu(_, buffers) => buffers.get(n as usize).map(Vec::as_slice),
            Store::Cpu(_) | Store::Dry { .. } => None,
        }
    }

    /// The buffer of one part of the n-th weight.
    pub(crate) fn buffer(&self, n: u32, part: u32) -> &wgpu::Buffer {
        match &self.store {
            Store::Gpu(_, buffers) => &buffers[n as usize][part as usize],
            Store::Cpu(_) | Store::Dry { .. } => unreachable!("a GPU plan over weights that are not on the GPU"),
        }
    }

    /// The n-th weight, which must be a vector.
    pub(crate) fn vector_of(&self, n: u32) -> &[f32] {
        match &self.store {
            Store::Cpu(tensors) => match &tensors[n as usize] {
                HostTensor::Vector(values) => values,
                HostTensor::Matrix(_) => unreachable!("{} is a matrix", self.list[n as usize].0),
            },
            Store::Gpu(..) | Store::Dry { .. } => unreachable!("a CPU plan over weights that are not on the CPU"),
        }
    }

    /// The n-th weight, in its file's type.
    pub(crate) fn matrix_of(&self, n: u32) -> cpu_ref::Rows<'_> {
        let Store::Cpu(tensors) = &self.store else { unreachable!("a CPU plan over weights of a GPU") };
        let bytes = match &tensors[n as usize] {
            HostTensor::Matrix(source) => source.bytes().expect("read when it was loaded"),
            HostTensor::Vector(values) => bytemuck::cast_slice(values),
        };
        let weight = self.list[n as usize].1;
        cpu_ref::Rows::new(weight.ty, weight.cols as usize, bytes)
    }
}
