//! Measures products through cooperative matrices (tensor cores), without reading memory.

use super::{SAMPLE_SECONDS, least, seconds};
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::pipelines::Pipeline;
use crate::error::Error;
use crate::kernel::compose::Shader;
use crate::kernel::{Access, Kernel, Needs, Only, PEAK, Part, Scalar, Variant};
use crate::platform::block_on;
use std::sync::Arc;

/// This kernel is not an operation. Only this measurement runs it.
static BENCH_PRODUCTS: Kernel = Kernel {
    name: "bench_products",
    entry: "bench_products",
    wgsl: &[Part::Piece(("matmul/bench_products.wgsl", wgsl!("matmul/bench_products.wgsl")))],
    params: &[("steps", Scalar::U32)],
    constants: &[],
    bindings: &[("sums", Access::Write)],
    oracle: "the sums of the same products, repeated",
    nmse: 0.0,
    file: file!(),
    variants: &[&Variant {
        kernel: &BENCH_PRODUCTS,
        name: "bench_products",
        fill: &[],
        needs: Needs { threads: THREADS, workgroup_bytes: 6144 },
        peak: PEAK,
        only: Only::Every,
    }],
};

/// Threads of a workgroup, in subgroups of 32.
const THREADS: u32 = 128;

/// Workgroups of a dispatch: several times as many as a large GPU runs at once.
const WORKGROUPS: u32 = 4096;

/// Operations of a workgroup in a step: each of its four subgroups multiplies 16 pairs of matrices
/// 16 x 16.
const FLOPS: f64 = 4.0 * 16.0 * 2.0 * 16.0 * 16.0 * 16.0;

/// Steps of the first try. Its time decides the steps of the samples.
const FEW_STEPS: u32 = 64;

/// Steps up to which every sum is exact in f32.
const MOST_STEPS: u32 = 1 << 16;

/// 10^12 operations per second through cooperative matrices, whose operands stay in registers.
/// `None` on a device without such matrices.
pub fn cooperative(device: &Device) -> Result<Option<f64>, Error> {
    if !BENCH_PRODUCTS.fits(device.caps()) {
        return Ok(None);
    }
    let few = Repeated::new(device, FEW_STEPS)?;
    few.seconds()?;
    let one = least(|| few.seconds())?;
    let steps = (f64::from(FEW_STEPS) * SAMPLE_SECONDS / one) as u32;
    let steps = steps.clamp(2 * FEW_STEPS, MOST_STEPS);
    let many = Repeated::new(device, steps)?;
    // The clocks of the device rise under this load.
    many.seconds()?;
    let (one, many) = (least(|| few.seconds())?, least(|| many.seconds())?);
    let flops = FLOPS * f64::from(WORKGROUPS) * f64::from(steps - FEW_STEPS);
    Ok(Some(flops / (many - one).max(1e-9) / 1e12))
}

/// The kernel with its number of steps.
struct Repeated {
    device: Device,
    pipeline: Arc<Pipeline>,
    group: wgpu::BindGroup,
    /// The buffers that the bind group names: a buffer is destroyed with its last handle.
    _params: Buffer,
    #[cfg_attr(not(test), expect(dead_code, reason = "held for the bind group"))]
    sums: Buffer,
}

fn shader() -> Shader {
    Shader { variant: BENCH_PRODUCTS.only(), pieces: vec![None], subgroups: false, wide: false, given: vec![] }
}

impl Repeated {
    fn new(device: &Device, steps: u32) -> Result<Self, Error> {
        let shader = shader();
        let pipeline = block_on(device.pipelines(std::iter::once(&shader)))?.remove(0);
        let params = block_on(device.buffer("params", 16, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST))?;
        device.0.queue.write_buffer(&params, 0, bytemuck::bytes_of(&steps));
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let sums = block_on(device.buffer("sums", 4 * u64::from(WORKGROUPS * THREADS), usage))?;
        let entries = [(0, &params), (1, &sums)]
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() });
        let group = device.bind_group("products", &pipeline.layout, &entries);
        Ok(Self { device: device.clone(), pipeline, group, _params: params, sums })
    }

    fn commands(&self) -> wgpu::CommandEncoder {
        let mut encoder = self.device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(WORKGROUPS, 1, 1);
        drop(pass);
        encoder
    }

    fn seconds(&self) -> Result<f64, Error> {
        seconds(&self.device, self.commands().finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::readback::Pool;
    use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};

    #[test]
    fn the_shader_is_valid_where_matrices_cooperate() {
        let source = shader().source();
        let module =
            wgpu::naga::front::wgsl::parse_str(&source).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&source)));
        let capabilities = Capabilities::SHADER_FLOAT16
            | Capabilities::SHADER_FLOAT16_IN_FLOAT32
            | Capabilities::SUBGROUP
            | Capabilities::SUBGROUP_BARRIER
            | Capabilities::COOPERATIVE_MATRIX;
        let checked = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
        checked.unwrap_or_else(|e| panic!("{}", e.emit_to_string(&source)));
    }

    /// x[row, k], which is also w[row, k].
    fn value(row: u32, k: u32) -> f32 {
        ((k * 3 + row * 5) % 7) as f32 / 8.0 - 0.375
    }

    #[test]
    fn every_product_is_made_in_every_step_or_nothing_is_measured() {
        let device = crate::device::tests::device();
        if !device.caps().cooperative {
            return assert_eq!(cooperative(&device).expect("nothing to run"), None);
        }
        let steps = 5;
        let repeated = Repeated::new(&device, steps).expect("little memory");
        let pool = Pool::new(&device, 4 * u64::from(WORKGROUPS * THREADS));
        let read = block_on(device.read(&pool, repeated.commands(), &repeated.sums)).expect("a submission");
        let found = read.wait().expect("sums").0.remove(0);
        // The sum over all results of a subgroup: its 32 lanes together.
        let product = |row: u32, column: u32| (0..16).map(|k| value(row, k) * value(column, k)).sum::<f32>();
        let whole: f32 = (0..64).flat_map(|row| (0..64).map(move |column| product(row, column))).sum();
        for lanes in found.chunks(32) {
            let sum: f32 = lanes.iter().map(|&word| f32::from_bits(word)).sum();
            assert_eq!(sum, whole * steps as f32);
        }
        assert!(cooperative(&device).expect("a device that works").is_some_and(|rate| rate > 1.0));
    }
}
