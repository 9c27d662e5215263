//! Weight formats on the GPU: every piece reads the same values as `gguf` reads on the CPU.

use gguf::GgmlType;
use kernels::testing::kernel::compose::instantiate;
use kernels::testing::kernel::format::{FORMATS, Format, set_scales};
use wgpu::util::DeviceExt as _;

/// A small generator with a fixed seed per case (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Zero, extremes, subnormals, or an ordinary scale of either sign.
    fn scale(&mut self) -> f32 {
        const EDGES: [u16; 8] = [0x0000, 0x8000, 0x7bff, 0xfbff, 0x0001, 0x83ff, 0x0400, 0x3c00];
        match self.next() % 3 {
            0 => half::f16::from_bits(EDGES[self.next() as usize % EDGES.len()]).to_f32(),
            _ => (self.next() % 20001) as f32 * 1e-5 - 0.1,
        }
    }

    /// A row of random blocks whose scales are finite and, as f32, normal or zero.
    fn row(&mut self, ty: GgmlType, cols: usize) -> Vec<u8> {
        let mut row: Vec<u8> = (0..ty.row_bytes(cols).expect("whole blocks")).map(|_| self.next() as u8).collect();
        for block in row.chunks_exact_mut(ty.block_bytes()) {
            match ty {
                GgmlType::F32 => block.copy_from_slice(&self.scale().to_le_bytes()),
                GgmlType::F16 => block.copy_from_slice(&half::f16::from_f32(self.scale()).to_le_bytes()),
                GgmlType::BF16 => block.copy_from_slice(&half::bf16::from_f32(self.scale()).to_le_bytes()),
                // Every scale byte that is defined; above 240 the piece saturates.
                GgmlType::MXFP4 => block[0] %= 241,
                GgmlType::NVFP4 => {}
                _ => set_scales(ty, block, || self.scale()),
            }
        }
        row
    }
}

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Gpu {
    fn open() -> Self {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        let instance = wgpu::Instance::new(descriptor);
        let adapter =
            pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).expect("an adapter");
        let (device, queue) =
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("a device");
        Self { device, queue }
    }

    fn pipeline(&self, format: &Format) -> wgpu::ComputePipeline {
        let kernel = "
            @group(0) @binding(0) var<uniform> shape: vec2<u32>;
            @group(0) @binding(1) var<storage, read> w: array<vec4<u32>>;
            @group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
            @compute @workgroup_size(32)
            fn dequantize(@builtin(global_invocation_id) id: vec3<u32>) {
                if id.x < shape.y {
                    y[id.y * shape.y + id.x] = w_load4(w_row(id.y, shape.x), shape.x, id.x);
                }
            }";
        let source = wgpu::ShaderSource::Wgsl(format!("{kernel}\n{}", instantiate(format.elements, "W", "w")).into());
        let module =
            self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(format.ty.name()), source });
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(format.ty.name()),
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    }

    /// Every quad of every row of a weight buffer, as read by the piece.
    fn dequantize(&self, pipeline: &wgpu::ComputePipeline, weights: &[u8], rows: u32, cols: u32) -> Vec<f32> {
        let quads = cols.div_ceil(4);
        let size = u64::from(rows * quads) * 16;
        let init = |contents: &[u8], usage| {
            self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
        };
        let shape = init(bytemuck::bytes_of(&[cols, quads, 0, 0]), wgpu::BufferUsages::UNIFORM);
        let w = init(weights, wgpu::BufferUsages::STORAGE);
        let nan = vec![0xff; size as usize];
        let y = init(&nan, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let back = init(&nan, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let buffers = [&shape, &w, &y];
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, b)| wgpu::BindGroupEntry { binding, resource: b.as_entire_binding() })
            .collect();
        let layout = pipeline.get_bind_group_layout(0);
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(quads.div_ceil(32), rows, 1);
        }
        encoder.copy_buffer_to_buffer(&y, 0, &back, 0, size);
        self.queue.submit([encoder.finish()]);
        back.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("a mapped buffer"));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("a finished submission");
        let mapped = back.get_mapped_range(..).expect("a mapped range");
        bytemuck::pod_collect_to_vec(&mapped)
    }
}

/// A weight buffer of these rows, and the values that `gguf` reads from them. Each row is padded
/// with zeros to quads.
fn upload(format: &Format, rows: &[Vec<u8>], cols: usize) -> (Vec<u8>, Vec<f32>) {
    let mut buffer: Vec<u8> = format.table().iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut values = Vec::new();
    for row in rows {
        let start = buffer.len();
        buffer.resize(start + format.row_words(cols as u32) as usize * 4, 0xee);
        format.relay_row(cols as u32, row, &mut buffer[start..]);
        let mut read = vec![0.0; cols];
        gguf::dequantize(format.ty, row, &mut read).expect("whole blocks");
        read.resize(cols.next_multiple_of(4), 0.0);
        values.append(&mut read);
    }
    assert_eq!(buffer.len() as u64, format.buffer_words(rows.len() as u32, cols as u32) * 4);
    (buffer, values)
}

/// Scales times codes are exact in f32, and a minimum adds one rounding whether or not it is fused.
/// Values must therefore be equal. Only MXFP4 has values below the normal range of f32, which a GPU
/// may flush to zero.
#[test]
fn pieces_read_exactly_what_gguf_reads() {
    let gpu = Gpu::open();
    for format in FORMATS {
        let pipeline = gpu.pipeline(format);
        for units in [1, 2, 3, 5, 7, 8, 13, 16] {
            let (rows, cols) = (5, units * format.ty.block_size());
            let mut random = Random(units as u64);
            let blocks: Vec<_> = (0..rows).map(|_| random.row(format.ty, cols)).collect();
            let (buffer, expected) = upload(format, &blocks, cols);
            let found = gpu.dequantize(&pipeline, &buffer, rows as u32, cols as u32);
            assert_eq!(found.len(), expected.len());
            for (i, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
                let flushed = found == 0.0 && expected.is_subnormal();
                assert!(found == expected || flushed, "{} of {cols}, element {i}: {found} for {expected}", format.ty);
            }
        }
    }
}
