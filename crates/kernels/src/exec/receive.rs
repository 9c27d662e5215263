//! Loads weights from a source whose reads are awaited, in the order of the file.

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::listed::{HostTensor, Listed, converted, row_bytes, source_bytes};
use crate::exec::upload::{Flight, Rows, target};
use crate::exec::weights::{Store, TensorBytes, Weights, upload_all, vector_buffer};
use crate::graph::tensor::Weight;
use crate::kernel::format;
use crate::kernel::split::parts;
use gguf::{AsyncSource, Progress, Report};
use std::sync::Arc;

/// Bytes that one read asks for. A row may be longer.
const READ_BYTES: usize = 4 << 20;

/// Limit for the bytes that a device was given and has not copied yet.
const IN_FLIGHT: u64 = 32 << 20;

/// Bytes on their way from a source to an executor.
struct Receiver<'a, S> {
    source: &'a S,
    progress: Report<'a>,
    done: u64,
    total: u64,
    /// Bytes that were given to the device since it was last awaited.
    in_flight: u64,
    read: Vec<u8>,
    relaid: Vec<u8>,
}

impl<S: AsyncSource> Receiver<'_, S> {
    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        (self.progress)(Progress { done: self.done, total: self.total });
    }

    async fn fill(&self, offset: u64, buf: &mut [u8]) -> Result<(), Error> {
        let len = buf.len();
        let read = self.source.read_at(offset, buf).await;
        Ok(read.map_err(|error| gguf::Error::Read { offset, len, error })?)
    }

    /// The first `size` bytes from `offset` on.
    async fn all(&mut self, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let refused = || Error::OutOfMemory { what: "a weight".to_string(), bytes: size };
        let len = usize::try_from(size).map_err(|_| refused())?;
        let mut all = vec![];
        all.try_reserve_exact(len).map_err(|_| refused())?;
        while all.len() < len {
            let at = all.len();
            all.resize(len.min(at + READ_BYTES), 0);
            self.fill(offset + at as u64, &mut all[at..]).await?;
            self.advance((all.len() - at) as u64);
        }
        Ok(all)
    }

    /// The values of a vector from `offset` on.
    async fn vector(&mut self, offset: u64, ty: gguf::GgmlType, cols: u32) -> Result<Vec<f32>, Error> {
        let bytes = self.all(offset, row_bytes(ty, cols)).await?;
        converted(ty, cols, &bytes)
    }

    /// The buffers of a matrix from `offset` on.
    async fn matrix(
        &mut self,
        device: &Device,
        name: &str,
        weight: Weight,
        offset: u64,
        source: &TensorBytes,
    ) -> Result<Vec<Buffer>, Error> {
        let Weight { ty, rows, cols, .. } = weight;
        let format = format::format(ty).ok_or_else(|| Error::Format { tensor: name.to_string(), ty: ty.name() })?;
        let all = Rows::new(format, cols, source);
        let per_read = (READ_BYTES / all.from.max(1)).max(1);
        let mut buffers = vec![];
        for range in parts(device.caps(), ty, rows, cols) {
            let (buffer, mut to) = target(device, name, &all, range.len() as u32).await?;
            let mut row = range.start as usize;
            while row < range.end as usize {
                let count = per_read.min(range.end as usize - row);
                let mut read = std::mem::take(&mut self.read);
                read.resize(count * all.from, 0);
                self.fill(offset + row as u64 * all.from as u64, &mut read).await?;
                let relaid = all.relaid(&read, &mut self.relaid);
                device.0.queue.write_buffer(&buffer, to, relaid);
                let written = relaid.len() as u64;
                self.read = read;
                (row, to, self.in_flight) = (row + count, to + written, self.in_flight + written);
                if self.in_flight >= IN_FLIGHT {
                    device.flush("the upload of weights").await?;
                    self.in_flight = 0;
                }
                self.advance(count as u64 * all.from as u64);
            }
            device.check(name)?;
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    async fn onto_device(
        &mut self,
        device: &Device,
        name: &str,
        weight: Weight,
        tensor: Listed,
    ) -> Result<Vec<Buffer>, Error> {
        match (tensor.offset(), tensor) {
            (Some(offset), Listed::Matrix(source)) => self.matrix(device, name, weight, offset, &source).await,
            (Some(offset), Listed::Converted(ty, _)) => {
                let values = self.vector(offset, ty, weight.cols).await?;
                Ok(vec![vector_buffer(device, name, &values).await?])
            }
            (_, tensor) => {
                let buffers = upload_all(device, name, weight, tensor, &mut Flight::default()).await?;
                self.advance(source_bytes(weight));
                Ok(buffers)
            }
        }
    }

    async fn onto_host(&mut self, weight: Weight, tensor: Listed) -> Result<HostTensor, Error> {
        match (tensor.offset(), tensor) {
            (Some(offset), Listed::Matrix(_)) => {
                Ok(HostTensor::Read(Arc::new(self.all(offset, source_bytes(weight)).await?)))
            }
            (Some(offset), Listed::Converted(ty, _)) => {
                Ok(HostTensor::Vector(self.vector(offset, ty, weight.cols).await?.into()))
            }
            (_, tensor) => {
                self.advance(source_bytes(weight));
                tensor.on_host(weight)
            }
        }
    }
}

impl Weights {
    /// As [`Weights::load_async`], where the bytes of the file come from `source`, whose offsets
    /// are those of the file. Its reads are in the order of the file. Tensors that are not of a
    /// file in their own type are read as they are listed.
    ///
    /// # Errors
    /// As [`Weights::load_async`].
    pub async fn receive(self, source: &impl AsyncSource, progress: Report<'_>) -> Result<Self, Error> {
        let Self { list, store, bytes } = self;
        let Store::Listed(executor, listed) = store else { return Ok(Self { list, store, bytes }) };
        let total = listed.iter().zip(&list).map(|(tensor, (_, weight))| tensor.source_bytes(*weight)).sum();
        let mut from = Receiver { source, progress, done: 0, total, in_flight: 0, read: vec![], relaid: vec![] };
        let mut order: Vec<(usize, Listed)> = listed.into_iter().enumerate().collect();
        order.sort_by_key(|(_, tensor)| tensor.offset());
        let store = match executor {
            Executor::Gpu(device) => {
                let mut buffers: Vec<Vec<Buffer>> = list.iter().map(|_| vec![]).collect();
                for (n, tensor) in order {
                    let (name, weight) = &list[n];
                    buffers[n] = from.onto_device(&device, name, *weight, tensor).await?;
                }
                device.flush("the upload of weights").await?;
                Store::Gpu(device, buffers)
            }
            Executor::Cpu => {
                let mut tensors: Vec<Option<HostTensor>> = list.iter().map(|_| None).collect();
                for (n, tensor) in order {
                    tensors[n] = Some(from.onto_host(list[n].1, tensor).await?);
                }
                Store::Cpu(tensors.into_iter().flatten().collect())
            }
        };
        let bytes = match &store {
            Store::Gpu(_, buffers) => buffers.iter().flatten().map(|buffer| buffer.size()).sum(),
            Store::Cpu(_) | Store::Listed(..) => bytes,
        };
        Ok(Self { list, store, bytes })
    }
}
