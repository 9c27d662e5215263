//! Uploads weights to a device. All cores read rows, convert their layout and write them into
//! staging memory, which the device copies from. The staging memory in use is bounded.

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::error::Error;
use crate::exec::weights::TensorBytes;
use crate::kernel::format::Format;
use crate::platform::{Signal, try_each};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::ops::Range;
use wgpu::WriteOnly;

/// The sizes of the parts that a tensor is uploaded in.
#[derive(Copy, Clone, Debug)]
struct Sizes {
    /// Bytes of one copy on the device. A chunk has many pieces, so that all cores have work.
    chunk: usize,
    /// Bytes that one core reads, converts and writes at a time. They fit in its cache.
    piece: usize,
    /// Limit for the bytes of staging memory: the memory that loading needs besides the weights.
    in_flight: u64,
}

const SIZES: Sizes = Sizes { chunk: 16 << 20, piece: 256 << 10, in_flight: 96 << 20 };

/// Staging buffers that are being copied, oldest first, and staging buffers that are free for
/// reuse. Buffers are reused because drivers take longer to create one than to copy it.
#[derive(Default)]
pub(crate) struct Flight {
    copying: VecDeque<Copying>,
    free: Vec<Buffer>,
}

/// A staging buffer whose copy was submitted. It is mapped again after the copy.
struct Copying {
    submission: wgpu::SubmissionIndex,
    mapped: Signal<Result<(), wgpu::BufferAsyncError>>,
    buffer: Buffer,
}

impl Flight {
    /// Bytes of all staging buffers.
    fn bytes(&self) -> u64 {
        self.copying.iter().map(|copying| &copying.buffer).chain(&self.free).map(|buffer| buffer.size()).sum()
    }

    /// A mapped buffer of at least `bytes`. Waits for the oldest copies while the total, with this
    /// buffer, would exceed `limit`.
    async fn take(&mut self, device: &Device, bytes: u64, limit: u64) -> Result<Buffer, Error> {
        let size = bytes.next_multiple_of(16);
        loop {
            if let Some(at) = self.free.iter().position(|buffer| buffer.size() >= size) {
                return Ok(self.free.swap_remove(at));
            }
            if self.bytes() + size <= limit {
                return device.staging(size).await;
            }
            // No free buffer is large enough, so all are dropped to make room.
            self.free.clear();
            let Some(Copying { submission, mapped, buffer }) = self.copying.pop_front() else {
                return device.staging(size).await;
            };
            device.done(submission, "the upload of weights").await?;
            let failed = |e: wgpu::BufferAsyncError| device.failure(e.to_string(), "the upload of weights");
            mapped.await.map_err(failed)?;
            self.free.push(buffer);
        }
    }

    /// Copies the first `bytes` of a staging buffer to the device.
    fn copy(&mut self, device: &Device, buffer: Buffer, to: &wgpu::Buffer, offset: u64, bytes: u64) {
        buffer.unmap();
        let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&buffer, 0, to, offset, Some(bytes));
        let submission = device.submit(encoder);
        let mapped = Signal::new();
        buffer.map_async(wgpu::MapMode::Write, .., mapped.setter());
        self.copying.push_back(Copying { submission, mapped, buffer });
    }
}

/// Rows from `row` on, and the staging memory that they are written to.
struct Piece<'a> {
    row: usize,
    into: WriteOnly<'a, [u8]>,
}

// SAFETY: a piece has exclusive access to its part of the staging memory, as `&mut [u8]` has, so
// it may move to another thread. wgpu implements `Send` for sized contents only.
unsafe impl Send for Piece<'_> {}

/// The rows of a tensor, with their layout in the file and on the device.
pub(super) struct Rows<'a> {
    source: &'a TensorBytes,
    format: &'static Format,
    cols: u32,
    /// Bytes of a row in the file.
    pub(super) from: usize,
    /// Bytes of a row on the device.
    pub(super) to: usize,
}

/// A new buffer with the table of the format, followed by these rows of a matrix.
pub(crate) async fn upload(
    device: &Device,
    name: &str,
    format: &'static Format,
    rows: Range<u32>,
    cols: u32,
    source: &TensorBytes,
    flight: &mut Flight,
) -> Result<Buffer, Error> {
    upload_in(SIZES, device, name, &Rows::new(format, cols, source), rows, flight).await
}

async fn upload_in(
    sizes: Sizes,
    device: &Device,
    name: &str,
    all: &Rows<'_>,
    rows: Range<u32>,
    flight: &mut Flight,
) -> Result<Buffer, Error> {
    let count = rows.len();
    let (buffer, table) = target(device, name, all, count as u32).await?;
    let per_chunk = (sizes.chunk / all.to.max(1)).max(1);
    for start in (0..count).step_by(per_chunk) {
        let n = per_chunk.min(count - start);
        let Some(bytes) = NonZeroU64::new(n as u64 * all.to as u64) else { break };
        let offset = table + start as u64 * all.to as u64;
        let staging = flight.take(device, bytes.get(), sizes.in_flight).await?;
        let lost = |e: wgpu::MapRangeError| device.failure(e.to_string(), &format!("the upload of {name}"));
        {
            let mut view = staging.get_mapped_range_mut(..bytes.get()).map_err(lost)?;
            all.write(rows.start as usize + start, sizes.piece, view.slice(..))?;
        }
        flight.copy(device, staging, &buffer, offset, bytes.get());
    }
    device.check(name)?;
    Ok(buffer)
}

/// A new buffer for so many rows of a matrix, with the table of the format at its start. Also
/// returns the bytes of the table.
pub(super) async fn target(device: &Device, name: &str, all: &Rows<'_>, count: u32) -> Result<(Buffer, u64), Error> {
    let bytes = all.format.buffer_words(count, all.cols) * 4;
    if bytes > device.caps().max_binding_bytes {
        return Err(Error::BindingTooLarge {
            what: format!("one row of {name}"),
            bytes,
            limit: device.caps().max_binding_bytes,
        });
    }
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let buffer = device.buffer(name, bytes, usage).await?;
    let table = bytemuck::cast_slice::<u32, u8>(all.format.table());
    if !table.is_empty() {
        device.0.queue.write_buffer(&buffer, 0, table);
    }
    Ok((buffer, table.len() as u64))
}

impl<'a> Rows<'a> {
    pub(super) fn new(format: &'static Format, cols: u32, source: &'a TensorBytes) -> Self {
        let from = format.ty.row_bytes(cols as usize).unwrap_or(0);
        Self { source, format, cols, from, to: format.row_words(cols) as usize * 4 }
    }

    /// Writes rows from `first` on until `into` is full.
    fn write(&self, first: usize, piece_bytes: usize, into: WriteOnly<'_, [u8]>) -> Result<(), Error> {
        let per_piece = (piece_bytes / self.to).max(1);
        let (mut pieces, mut rest, mut row) = (vec![], into, first);
        while !rest.is_empty() {
            let bytes = (per_piece * self.to).min(rest.len());
            let (piece, behind) = rest.split_at(bytes);
            pieces.push(Piece { row, into: piece });
            (rest, row) = (behind, row + per_piece);
        }
        try_each(pieces, |piece| self.write_piece(piece))
    }

    fn write_piece(&self, Piece { row, mut into }: Piece<'_>) -> Result<(), Error> {
        // Each thread reuses two scratch buffers: the piece as in the file, and as on the device.
        thread_local! { static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((vec![], vec![])) } }
        SCRATCH.with_borrow_mut(|(read, relaid)| {
            let count = into.len() / self.to;
            read.resize(count * self.from, 0);
            self.source.read(row as u64 * self.from as u64, read)?;
            into.copy_from_slice(self.relaid(read, relaid));
            Ok(())
        })
    }

    /// Whole rows as they lie on the device: the rows of the file, or these rows relaid in a
    /// scratch buffer.
    pub(super) fn relaid<'b>(&self, read: &'b [u8], scratch: &'b mut Vec<u8>) -> &'b [u8] {
        if self.format.keeps_rows(self.cols) {
            return read;
        }
        scratch.resize(read.len() / self.from * self.to, 0);
        let rows = read.chunks_exact(self.from).zip(scratch.chunks_exact_mut(self.to));
        rows.for_each(|(src, dst)| self.format.relay_row(self.cols, src, dst));
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::device;
    use crate::exec::readback::Pool;
    use crate::kernel::format::format;
    use crate::platform::block_on;
    use gguf::GgmlType;

    /// Chunks of three of the widest rows, pieces from below a row to several, room for two chunks.
    const SMALL: Sizes = Sizes { chunk: 2000, piece: 700, in_flight: 4000 };

    fn bytes_of(buffer: &wgpu::Buffer) -> Vec<u8> {
        let device = device();
        let encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let read = block_on(device.read(&Pool::new(&device, buffer.size()), encoder, buffer)).unwrap();
        bytemuck::cast_slice(&read.wait().unwrap().0[0]).to_vec()
    }

    #[test]
    fn rows_across_chunks_and_pieces_arrive_relaid_and_what_is_under_way_is_bounded() {
        let device = device();
        // Layouts in this order: unchanged, in planes, rows with padding, a table before the rows.
        for (ty, cols) in [(GgmlType::Q4_K, 256), (GgmlType::Q8_0, 160), (GgmlType::F16, 17), (GgmlType::IQ2_XS, 512)] {
            let (format, rows) = (format(ty).unwrap(), 3..29_u32);
            let from = ty.row_bytes(cols as usize).unwrap();
            let file: Vec<u8> = (0..32 * from).map(|n| (n * 7 + n / 251) as u8).collect();
            let source = TensorBytes::Owned(file.as_slice().into());
            let all = Rows::new(format, cols, &source);
            let mut flight = Flight::default();
            let buffer = block_on(upload_in(SMALL, &device, "rows", &all, rows.clone(), &mut flight)).unwrap();
            assert!(
                flight.bytes() > 0 && flight.bytes() <= SMALL.in_flight,
                "{ty}: {} bytes of staging memory",
                flight.bytes()
            );
            let mut expected = bytemuck::cast_slice::<u32, u8>(format.table()).to_vec();
            for row in rows {
                let mut dst = vec![0; all.to];
                format.relay_row(cols, &file[row as usize * from..][..from], &mut dst);
                expected.extend(dst);
            }
            assert!(bytes_of(&buffer)[..expected.len()] == expected, "{ty}");
        }
    }

    #[test]
    fn staging_memory_is_used_again_and_a_chunk_above_the_limit_goes_alone() {
        let device = device();
        let to = block_on(device.buffer("target", 256, wgpu::BufferUsages::COPY_DST)).unwrap();
        let mut flight = Flight::default();
        let mut send = |bytes: u64| {
            let staging = block_on(flight.take(&device, bytes, 64)).unwrap();
            staging.get_mapped_range_mut(..bytes).unwrap().copy_from_slice(&vec![7; bytes as usize]);
            flight.copy(&device, staging, &to, 0, bytes);
            (flight.bytes(), flight.copying.len() + flight.free.len())
        };
        assert_eq!((send(16), send(32), send(16)), ((16, 1), (48, 2), (64, 3)));
        assert_eq!(send(32), (48, 2), "the one of 32 again, and those too small for it are gone");
        assert_eq!(send(200), (208, 1), "alone");
        assert_eq!(send(32), (208, 1), "the large one serves small ones too");
    }

    #[test]
    fn a_source_that_ends_early_is_an_error_that_leaves_the_device_usable() {
        let device = device();
        let source = TensorBytes::At(std::sync::Arc::new(vec![0_u8; 100]), 0);
        let all = Rows::new(format(GgmlType::F32).unwrap(), 16, &source);
        let refused = block_on(upload_in(SMALL, &device, "cut", &all, 0..2, &mut Flight::default()));
        assert!(matches!(refused, Err(Error::Read(_))), "{refused:?}");
        assert_eq!(crate::native::run::scale(&device, &[1.0], 3.0).unwrap(), [3.0]);
    }
}
