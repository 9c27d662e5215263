//! Builds pipelines, once per shader and device, several at once. They can be built before their
//! first use.

pub mod clock;
mod once;
mod saved;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::caught;
use crate::error::Error;
use crate::kernel::Access;
use crate::kernel::compose::Shader;
use crate::platform::{Background, PipelineParts, compile, each};
use gguf::Progress;
use once::Once;
pub(crate) use saved::Kept;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A pipeline and its bind group layout.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub layout: wgpu::BindGroupLayout,
    pub pipeline: wgpu::ComputePipeline,
}

/// The pipeline of a shader, or the reason why the device refused it. The first caller builds the
/// pipeline. Concurrent callers wait until it is ready.
type Slot = Arc<Once<Result<Arc<Pipeline>, String>>>;

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

    /// Drops all pipelines if there are more than `most`. Plans keep the pipelines that they use.
    #[cfg(feature = "testing")]
    pub fn drop_beyond(&self, most: usize) {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() > most {
            slots.clear();
        }
    }

    /// These pipelines, except the pipelines of the shaders for which `left_out` is true.
    pub fn without(&self, left_out: impl Fn(&Shader) -> bool) -> Self {
        let mut others = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        others.retain(|shader, _| !left_out(shader));
        Self(Mutex::new(others))
    }
}

/// Pipelines that are being built in the background. Dropping it skips the pipelines that were not
/// begun. Natively it waits for the others; in a browser they are completed later.
#[must_use]
#[derive(Debug, Default)]
pub struct Preparing {
    stop: Arc<AtomicBool>,
    slots: Vec<Slot>,
    work: Background,
}

impl Preparing {
    /// The number of pipelines that are built, and of all that were missing at the start.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let done = self.slots.iter().filter(|slot| slot.get().is_some()).count();
        Progress { done: done as u64, total: self.slots.len() as u64 }
    }

    /// Waits for the background, where the host may wait.
    pub(crate) fn wait(&mut self) {
        self.work.wait();
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}

impl Device {
    /// The number of pipelines that are built, and of all that were asked for.
    #[must_use]
    pub fn compiled(&self) -> Progress {
        let slots = self.0.pipelines.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = slots.values().filter(|slot| slot.get().is_some()).count();
        Progress { done: done as u64, total: slots.len() as u64 }
    }

    /// Starts to build the pipelines of these shaders in the background, in this order. A plan that
    /// needs some of them waits only for those.
    pub fn prepare(&self, shaders: Vec<Shader>) -> Preparing {
        let stop = Arc::<AtomicBool>::default();
        let missing = self.missing(shaders.iter());
        let slots = missing.iter().map(|(_, slot)| Arc::clone(slot)).collect();
        let (device, stopped) = (self.clone(), Arc::clone(&stop));
        // The plan that needs a refused pipeline reports it.
        let work = async move { device.build_missing(&missing, &stopped).await };
        Preparing { stop, slots, work: Background::start("pipelines", work) }
    }

    /// The pipelines of these shaders. Missing ones are built.
    pub(crate) async fn pipelines<'a>(
        &self,
        shaders: impl Iterator<Item = &'a Shader>,
    ) -> Result<Vec<Arc<Pipeline>>, Error> {
        let shaders: Vec<&Shader> = shaders.collect();
        let slots: Vec<Slot> = shaders.iter().map(|shader| self.0.pipelines.slot(shader)).collect();
        let waiting = self.0.clock.waiting();
        self.build_missing(&self.missing(shaders.iter().copied()), &AtomicBool::new(false)).await;
        drop(waiting);
        self.check("building pipelines")?;
        let built = |(slot, shader): (&Slot, &Shader)| match slot.get().expect("just built") {
            Ok(pipeline) => Ok(Arc::clone(pipeline)),
            Err(reason) => {
                self.0.pipelines.forget(shader);
                Err(Error::Pipeline { kernel: shader.label(), reason: reason.clone() })
            }
        };
        slots.iter().zip(shaders).map(built).collect()
    }

    /// The shaders without a built pipeline, each once.
    fn missing<'a>(&self, shaders: impl Iterator<Item = &'a Shader>) -> Vec<(Shader, Slot)> {
        let mut missing: Vec<(Shader, Slot)> = vec![];
        for shader in shaders {
            let slot = self.0.pipelines.slot(shader);
            if slot.get().is_none() && !missing.iter().any(|(known, _)| known == shader) {
                missing.push((shader.clone(), slot));
            }
        }
        missing
    }

    /// Builds pipelines, several at once, until `stop` is set.
    async fn build_missing(&self, missing: &[(Shader, Slot)], stop: &AtomicBool) {
        each(missing, async |(shader, slot)| {
            if !stop.load(Ordering::Relaxed) {
                slot.get_or_make(|| self.build(shader)).await;
            }
        })
        .await;
    }

    /// Builds a pipeline, or gives the reason why the device refuses it.
    async fn build(&self, shader: &Shader) -> Result<Arc<Pipeline>, String> {
        let _building = self.0.clock.building();
        self.count();
        let planted = self.0.source.as_ref().and_then(|sources| sources(shader));
        let trusted = planted.is_none();
        let parts = parts(shader, planted);
        let _compiled = compile(&self.0.device, &parts).await;
        let filters = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory];
        let scopes = self.scopes(filters);
        let pipeline = self.make(&shader.label(), parts, trusted);
        let [validation, internal, memory] = caught(scopes);
        let (validation, internal, memory) = (validation.await, internal.await, memory.await);
        match validation.or(internal).or(memory) {
            Some(error) => Err(error.to_string()),
            None => Ok(Arc::new(pipeline)),
        }
    }

    fn make(&self, label: &str, parts: PipelineParts, trusted: bool) -> Pipeline {
        let device = &self.0.device;
        let layout = self.layout(label, &parts.buffers);
        let source = wgpu::ShaderSource::Wgsl(parts.text.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: Some(label), source };
        let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
        // SAFETY: buffer accesses stay checked. Only the counter that naga adds to every loop is
        // off: it prevents unrolling and made products five times slower. Our loops end,
        // because parameters and lengths bound them. Replaced source keeps the counter.
        let module = match trusted {
            true => unsafe { device.create_shader_module_trusted(descriptor, checks) },
            false => device.create_shader_module(descriptor),
        };
        let groups = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let cache = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|kept| kept.cache.clone());
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(&groups),
            module: &module,
            entry_point: Some(parts.entry),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: cache.as_ref(),
        });
        Pipeline { layout, pipeline }
    }

    fn layout(&self, label: &str, buffers: &[wgpu::BufferBindingType]) -> wgpu::BindGroupLayout {
        let entry = |(binding, &ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let entries: Vec<_> = (0..).zip(buffers).map(entry).collect();
        self.0
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(label), entries: &entries })
    }
}

/// The parts of the pipeline of a shader, with the text `planted` if there is one. Binding 0 has
/// the params; the kernel's own bindings follow.
fn parts(shader: &Shader, planted: Option<String>) -> PipelineParts {
    let kernel = &shader.variant.kernel;
    let storage = |access: &Access| wgpu::BufferBindingType::Storage { read_only: !access.writes() };
    let own = kernel.bindings.iter().map(|(_, access)| storage(access));
    PipelineParts {
        text: planted.unwrap_or_else(|| shader.source()),
        entry: kernel.entry,
        buffers: std::iter::once(wgpu::BufferBindingType::Uniform).chain(own).collect(),
    }
}
