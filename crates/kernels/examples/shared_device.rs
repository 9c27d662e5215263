//! Reads a tap in a pass of the caller's own, on a device that the caller opened.
//!
//! `cargo run -p kernels --features interop --example shared_device`

use kernels::wgpu::{self, BufferUsages};
use kernels::{Counts, Device, Executor, Lead, PlanOptions, Recorder, Shape, States, StepInput, Watch, Weights, ops};
use std::error::Error;
use std::sync::Arc;

const COLUMNS: u32 = 64;

/// Adds up the squares of a row, in one thread.
const SUM: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;
@compute @workgroup_size(1) fn main() {
    var s = 0.0;
    for (var i = 0u; i < 64u; i += 1u) { s += x[i] * x[i]; }
    sum[0] = s;
}";

fn main() -> Result<(), Box<dyn Error>> {
    // The device of the caller.
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default()))?;

    // A recording with a tap on it, planned and run on that device.
    let executor = Executor::from(&Device::from_wgpu(&adapter, device.clone(), queue.clone()));
    let mut rec = Recorder::new(Counts { step: 1, out: 0 }, &[]);
    let x = rec.host_input(0, Shape::new(Lead::Step, 1, COLUMNS));
    let normed = ops::rms_norm(&mut rec, x, None, 1e-6);
    rec.tap("normed", 0, normed);
    let y = ops::scale(&mut rec, normed, 2.0);
    rec.output(y);
    let options = PlanOptions::default().taps(vec!["normed".into()]);
    let mut plan = executor.plan(rec, &Arc::new(Weights::new(&executor)), &options)?;
    let mut states = States::new(&executor, &[], 1, 1)?;
    let host = vec![(0..COLUMNS).map(|i| i as f32).collect()];
    let input = StepInput { positions: vec![0], sequences: vec![0], host, ..StepInput::default() };
    let pending = plan.run(&mut states, &input, Watch::default())?;

    // The caller's pass behind it: output 0 is y, 1 is the tap.
    let tap = plan.wgpu_buffer(1).ok_or("the plan runs on a GPU")?;
    let sum = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let back = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4,
        usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(SUM.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let layout = pipeline.get_bind_group_layout(0);
    let entries = [
        wgpu::BindGroupEntry { binding: 0, resource: tap.as_entire_binding() },
        wgpu::BindGroupEntry { binding: 1, resource: sum.as_entire_binding() },
    ];
    let group =
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(1, 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&sum, 0, &back, 0, Some(4));
    queue.submit([encoder.finish()]);
    back.map_async(wgpu::MapMode::Read, .., |mapped| mapped.expect("memory of the host"));
    device.poll(wgpu::PollType::wait_indefinitely())?;
    let bytes: [u8; 4] = back.get_mapped_range(..)?[..].try_into()?;

    let squares = f32::from_le_bytes(bytes);
    println!("mean square of the tap: {:.4}, first of y: {:.4}", squares / COLUMNS as f32, pending.wait()?.f32(0)[1]);
    assert!((squares / COLUMNS as f32 - 1.0).abs() < 1e-4);
    Ok(())
}
