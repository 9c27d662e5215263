//! Measures the read bandwidth of device memory.

use super::{SAMPLE_SECONDS, Sizes, WARM_UP, sampled, seconds};
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::pipelines::Pipeline;
use crate::error::Error;
use crate::kernel::compose::Shader;
use crate::kernel::{Access, Kernel, Needs, Only, PEAK, Part, Scalar, Variant};
use crate::platform::block_on;
use std::sync::Arc;
use std::time::Instant;

/// 10^9 bytes per second, with the fastest grid.
pub fn read(device: &Device, sizes: &Sizes) -> Result<f64, Error> {
    let reader = Reader::new(device, sizes.read_bytes, sizes.grids)?;
    let (began, mut once) = (Instant::now(), f64::INFINITY);
    while once.is_infinite() || began.elapsed() < WARM_UP {
        once = seconds(device, reader.commands(0, 1).finish())?.min(once);
    }
    let times = (SAMPLE_SECONDS / once).clamp(1.0, 64.0) as usize;
    let mut best = f64::INFINITY;
    for grid in 0..sizes.grids.len() {
        best = sampled(|| seconds(device, reader.commands(grid, times).finish()))?.min(best);
    }
    Ok(times as f64 * reader.bytes as f64 / best / 1e9)
}

/// This kernel is not an operation. Only this measurement runs it.
static BENCH_READ: Kernel = Kernel {
    name: "bench_read",
    entry: "bench_read",
    wgsl: &[Part::Piece(("elementwise/bench_read.wgsl", wgsl!("elementwise/bench_read.wgsl")))],
    params: &[("passes", Scalar::U32), ("threads", Scalar::U32)],
    constants: &[],
    bindings: &[("source", Access::Read), ("sums", Access::Write)],
    oracle: "the exclusive or of the source",
    nmse: 0.0,
    file: file!(),
    variants: &[&Variant {
        kernel: &BENCH_READ,
        name: "bench_read",
        fill: &[],
        needs: Needs { threads: 256, workgroup_bytes: 0 },
        peak: PEAK,
        only: Only::Every,
    }],
};

/// Buffers to read, each small enough for one binding, and the sums that the kernel writes.
struct Reader {
    device: Device,
    pipeline: Arc<Pipeline>,
    /// For each grid, its number of workgroups and the bind groups of the buffers.
    grids: Vec<(u32, Vec<wgpu::BindGroup>)>,
    bytes: u64,
    /// The buffers that the bind groups name: a buffer is destroyed with its last handle.
    _held: Vec<Buffer>,
    #[cfg_attr(not(test), expect(dead_code, reason = "held for the bind groups"))]
    sums: Buffer,
}

impl Reader {
    /// Fills buffers of `bytes` in total with noise. The total is rounded down to whole passes of
    /// the last and largest grid, but is at least one pass. The number of workgroups of every grid
    /// must divide the last.
    fn new(device: &Device, bytes: u64, workgroups: &[u32]) -> Result<Self, Error> {
        let threads = workgroups.last().expect("a grid") * 256;
        let per_pass = u64::from(threads) * 64;
        let passes = bytes / per_pass;
        let per_piece = (device.caps().max_binding_bytes / per_pass).clamp(1, passes.max(1));
        let noisy = per_pass.min(NOISE_BYTES);
        let noise =
            block_on(device.buffer("noise", noisy, wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST))?;
        device.0.queue.write_buffer(&noise, 0, bytemuck::cast_slice(&self::noise(noisy / 4)));
        let shader = Shader {
            variant: BENCH_READ.only(),
            pieces: vec![None, None],
            subgroups: false,
            wide: false,
            given: vec![],
        };
        let pipeline = block_on(device.pipelines(std::iter::once(&shader)))?.remove(0);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let sums = block_on(device.buffer("sums", u64::from(threads) * 4, usage))?;
        let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pieces = vec![];
        for _ in 0..(passes / per_piece).max(1) {
            let piece = block_on(device.buffer("a stream", per_piece * per_pass, usage))?;
            let copies = per_piece * per_pass / noisy;
            (0..copies).for_each(|n| encoder.copy_buffer_to_buffer(&noise, 0, &piece, n * noisy, Some(noisy)));
            pieces.push(piece);
        }
        device.0.queue.submit([encoder.finish()]);
        let (mut grids, mut held) = (vec![], vec![]);
        for &count in workgroups {
            let params =
                block_on(device.buffer("params", 16, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST))?;
            let longer = threads / (count * 256);
            device.0.queue.write_buffer(&params, 0, bytemuck::bytes_of(&[per_piece as u32 * longer, count * 256]));
            let group = |piece: &Buffer| {
                let entries = [(0, &params), (1, piece), (2, &sums)]
                    .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() });
                device.bind_group("a stream", &pipeline.layout, &entries)
            };
            grids.push((count, pieces.iter().map(group).collect()));
            held.push(params);
        }
        let bytes = pieces.len() as u64 * per_piece * per_pass;
        held.append(&mut pieces);
        Ok(Self { device: device.clone(), pipeline, grids, bytes, _held: held, sums })
    }

    /// Commands that read all buffers `times` times with one of the grids.
    fn commands(&self, grid: usize, times: usize) -> wgpu::CommandEncoder {
        let mut encoder = self.device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline.pipeline);
        let (workgroups, groups) = &self.grids[grid];
        for group in groups.iter().cycle().take(times * groups.len()) {
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(*workgroups, 1, 1);
        }
        drop(pass);
        encoder
    }
}

/// Bytes of noise made on the host, which are then repeated. A power of two, like a pass.
const NOISE_BYTES: u64 = 16 << 20;

/// Pseudo-random words, which memory compression cannot shrink.
fn noise(count: u64) -> Vec<u32> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::readback::Pool;

    #[test]
    fn every_word_of_every_piece_is_read() {
        let device = crate::device::tests::device();
        let per_pass = 2 * 256 * 64;
        // Each buffer has three passes, so the sums of the last buffer show what each thread read.
        let caps = crate::caps::Caps { max_binding_bytes: 3 * per_pass, ..device.caps().clone() };
        let reader = Reader::new(&device.with_caps(caps), 7 * per_pass, &[1, 2]).expect("little memory");
        assert_eq!((reader.grids[0].1.len(), reader.bytes), (2, 6 * per_pass));
        let words = noise(per_pass / 4);
        for (grid, threads) in [256, 512].into_iter().enumerate() {
            let pool = Pool::new(&device, threads as u64 * 4);
            let sums = block_on(device.read(&pool, reader.commands(grid, 1), &reader.sums))
                .expect("a submission")
                .wait()
                .expect("sums");
            let sum = |t| words.chunks(4).skip(t).step_by(threads).flatten().fold(0, |sum, word| sum ^ word);
            assert_eq!(sums.0[0], (0..threads).map(sum).collect::<Vec<_>>(), "{threads} threads");
        }
    }
}
