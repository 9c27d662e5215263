//! Builds pipelines, once per shader and device, on several threads. They can be built before
//! their first use.

pub mod clock;
mod saved;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::error::Error;
use crate::kernel::Access;
use crate::kernel::compose::Shader;
pub(crate) use saved::Kept;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A pipeline and its bind group layout.
pub(crate) struct Pipeline {
    pub layout: wgpu::BindGroupLayout,
    pub pipeline: wgpu::ComputePipeline,
}

/// The place of a shader's pipeline. The first caller builds it; concurrent callers block until it
/// is ready.
type Slot = Arc<OnceLock<Arc<Pipeline>>>;

/// The pipelines of a device.
#[derive(Default)]
pub(crate) struct Pipelines(Mutex<HashMap<Shader, Slot>>);

impl Pipelines {
    fn slot(&self, shader: &Shader) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(shader.clone()).or_default())
    }

    fn forget(&self, shader: &Shader) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(shader);
    }

    /// The same pipelines, except the pipeline of one shader.
    pub fn without(&self, shader: &Shader) -> Self {
        let others = Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()));
        others.forget(shader);
        others
    }
}

/// Pipelines that are being built in the background. Dropping it waits for the pipelines that were
/// begun and skips the others.
#[must_use]
#[derive(Debug, Default)]
pub struct Preparing {
    stop: Arc<AtomicBool>,
    #[cfg(not(target_arch = "wasm32"))]
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Preparing {
    /// Waits until all pipelines are built.
    pub fn finish(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}

impl Device {
    /// Starts to build the pipelines of these shaders in the background, in this order. A plan that
    /// needs some of them waits only for those. In a browser this does nothing.
    pub fn prepare(&self, shaders: Vec<Shader>) -> Preparing {
        let preparing = Preparing::default();
        #[cfg(not(target_arch = "wasm32"))]
        let preparing = {
            let (device, stop) = (self.clone(), Arc::clone(&preparing.stop));
            let work = move || device.build_missing(&device.missing(shaders.iter()), &stop);
            // If no thread can be started, plans build their pipelines themselves.
            let thread = std::thread::Builder::new().name("pipelines".to_string()).spawn(work).ok();
            let mut preparing = preparing;
            preparing.thread = thread;
            preparing
        };
        #[cfg(target_arch = "wasm32")]
        let _ = shaders;
        preparing
    }

    /// The pipelines of these shaders. Missing ones are built.
    pub(crate) fn pipelines<'a>(&self, shaders: impl Iterator<Item = &'a Shader>) -> Result<Vec<Arc<Pipeline>>, Error> {
        let shaders: Vec<&Shader> = shaders.collect();
        let slots: Vec<Slot> = shaders.iter().map(|shader| self.0.pipelines.slot(shader)).collect();
        let missing = self.missing(shaders.into_iter());
        let waiting = self.0.clock.waiting();
        self.build_missing(&missing, &AtomicBool::new(false));
        drop(waiting);
        if let Err(error) = self.check("building pipelines") {
            missing.iter().for_each(|(shader, _)| self.0.pipelines.forget(shader));
            return Err(error);
        }
        Ok(slots.iter().map(|slot| Arc::clone(slot.get().expect("just built"))).collect())
    }

    /// The shaders without a built pipeline, each once.
    fn missing<'a>(&self, shaders: impl Iterator<Item = &'a Shader>) -> Vec<(&'a Shader, Slot)> {
        let mut missing: Vec<(&Shader, Slot)> = vec![];
        for shader in shaders {
            let slot = self.0.pipelines.slot(shader);
            if slot.get().is_none() && !missing.iter().any(|(known, _)| *known == shader) {
                missing.push((shader, slot));
            }
        }
        missing
    }

    fn build_missing(&self, missing: &[(&Shader, Slot)], stop: &AtomicBool) {
        in_parallel(missing, |(shader, slot)| {
            if !stop.load(Ordering::Relaxed) {
                slot.get_or_init(|| Arc::new(self.build(shader)));
            }
        });
    }

    fn build(&self, shader: &Shader) -> Pipeline {
        let _building = self.0.clock.building();
        self.count();
        let device = &self.0.device;
        let label = shader.label();
        let planted = self.0.source.as_ref().filter(|(of, _)| of == shader);
        let source = planted.map_or_else(|| shader.source(), |(_, text)| text.clone());
        let source = wgpu::ShaderSource::Wgsl(source.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: Some(&label), source };
        let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
        // SAFETY: buffer accesses stay checked. Only the counter that naga adds to every loop is
        // off: it prevents unrolling and made products five times slower on an H200. Our loops end,
        // because parameters and lengths bound them. Replaced source (`planted`) keeps the counter.
        let module = match planted {
            Some(_) => device.create_shader_module(descriptor),
            None => unsafe { device.create_shader_module_trusted(descriptor, checks) },
        };
        let layout = self.layout(shader, &label);
        let groups = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(&label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|kept| kept.cache.clone());
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&label),
            layout: Some(&groups),
            module: &module,
            entry_point: Some(shader.variant.kernel.entry),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: cache.as_ref(),
        });
        Pipeline { layout, pipeline }
    }

    /// Binding 0 has the params; the kernel's own bindings follow.
    fn layout(&self, shader: &Shader, label: &str) -> wgpu::BindGroupLayout {
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let storage = |access: &Access| wgpu::BufferBindingType::Storage { read_only: !access.writes() };
        let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform)];
        entries.extend(shader.variant.kernel.bindings.iter().zip(1..).map(|((_, access), n)| entry(n, storage(access))));
        self.0.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(label), entries: &entries })
    }
}

/// Runs `work` for all items on new threads. It does not use the shared thread pool, because a
/// driver's compiler is slow and would block other tasks. This thread takes part, so the work is
/// done even if no thread can be started.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    #[cfg(not(target_arch = "wasm32"))]
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get).min(items.len());
        for _ in 1..threads {
            let _ = std::thread::Builder::new().spawn_scoped(scope, take);
        }
        take();
    });
    #[cfg(target_arch = "wasm32")]
    take();
}
