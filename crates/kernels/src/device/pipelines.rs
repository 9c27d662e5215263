//! Builds pipelines, once per shader and device, on several threads. They can be built before
//! their first use.

pub mod clock;
mod saved;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::caught;
use crate::error::Error;
use crate::kernel::Access;
use crate::kernel::compose::Shader;
use crate::platform::{Background, at_once, on_new_threads};
pub(crate) use saved::Kept;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A pipeline and its bind group layout.
pub(crate) struct Pipeline {
    pub layout: wgpu::BindGroupLayout,
    pub pipeline: wgpu::ComputePipeline,
}

/// The pipeline of a shader, or the reason why the device refused it. The first caller builds the
/// pipeline. Concurrent callers block until it is ready.
type Slot = Arc<OnceLock<Result<Arc<Pipeline>, String>>>;

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

/// Pipelines that are being built in the background. Dropping it waits for the pipelines that were
/// begun and skips the other pipelines.
#[must_use]
#[derive(Debug, Default)]
pub struct Preparing {
    stop: Arc<AtomicBool>,
    work: Background,
}

impl Preparing {
    /// Waits until all pipelines are built.
    pub fn finish(mut self) {
        self.work.wait();
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.work.wait();
    }
}

/// A shader whose pipeline is made, with the future of the reason why the device refuses it.
type Undecided<F> = (Shader, F);

impl Device {
    /// Starts to build the pipelines of these shaders in the background, in this order. A plan that
    /// needs some of them waits only for those. In a browser this does nothing.
    pub fn prepare(&self, shaders: Vec<Shader>) -> Preparing {
        let stop = Arc::<AtomicBool>::default();
        let (device, stopped) = (self.clone(), Arc::clone(&stop));
        // The plan that needs a refused pipeline reports it.
        let work = move || drop(device.build_missing(&device.missing(shaders.iter()), &stopped));
        Preparing { stop, work: Background::start("pipelines", work) }
    }

    /// The pipelines of these shaders. Missing ones are built.
    pub(crate) async fn pipelines<'a>(
        &self,
        shaders: impl Iterator<Item = &'a Shader>,
    ) -> Result<Vec<Arc<Pipeline>>, Error> {
        let shaders: Vec<&Shader> = shaders.collect();
        let slots: Vec<Slot> = shaders.iter().map(|shader| self.0.pipelines.slot(shader)).collect();
        let waiting = self.0.clock.waiting();
        let undecided = self.build_missing(&self.missing(shaders.iter().copied()), &AtomicBool::new(false));
        drop(waiting);
        let refused = |shader: &Shader, reason: String| {
            self.0.pipelines.forget(shader);
            Error::Pipeline { kernel: shader.label(), reason }
        };
        for (shader, reason) in undecided {
            if let Some(reason) = reason.await {
                return Err(refused(&shader, reason));
            }
        }
        self.check("building pipelines")?;
        let built = |(slot, shader): (&Slot, &Shader)| match slot.get().expect("just built") {
            Ok(pipeline) => Ok(Arc::clone(pipeline)),
            Err(reason) => Err(refused(shader, reason.clone())),
        };
        slots.iter().zip(shaders).map(built).collect()
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

    /// Builds pipelines on several threads, until `stop` is set. Returns the shaders whose errors
    /// have to be awaited: none natively.
    fn build_missing(
        &self,
        missing: &[(&Shader, Slot)],
        stop: &AtomicBool,
    ) -> Vec<Undecided<impl Future<Output = Option<String>> + use<>>> {
        let undecided = Mutex::new(vec![]);
        on_new_threads(missing, |(shader, slot)| {
            if !stop.load(Ordering::Relaxed) {
                slot.get_or_init(|| {
                    let (pipeline, refused) = self.build(shader);
                    match at_once(refused) {
                        Ok(None) => Ok(Arc::new(pipeline)),
                        Ok(Some(reason)) => Err(reason),
                        Err(later) => {
                            undecided.lock().unwrap_or_else(PoisonError::into_inner).push(((*shader).clone(), later));
                            Ok(Arc::new(pipeline))
                        }
                    }
                });
            }
        });
        undecided.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds a pipeline. The future gives the reason why the device refuses it, if it does.
    fn build(&self, shader: &Shader) -> (Pipeline, Pin<Box<impl Future<Output = Option<String>> + use<>>>) {
        let _building = self.0.clock.building();
        self.count();
        let filters = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory];
        let scopes = self.scopes(filters);
        let pipeline = self.make(shader);
        let [validation, internal, memory] = caught(scopes);
        let refused = async move {
            let (validation, internal, memory) = (validation.await, internal.await, memory.await);
            validation.or(internal).or(memory).map(|error| error.to_string())
        };
        (pipeline, Box::pin(refused))
    }

    fn make(&self, shader: &Shader) -> Pipeline {
        let device = &self.0.device;
        let label = shader.label();
        let planted = self.0.source.as_ref().and_then(|sources| sources(shader));
        let is_planted = planted.is_some();
        let source = wgpu::ShaderSource::Wgsl(planted.unwrap_or_else(|| shader.source()).into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: Some(&label), source };
        let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..wgpu::ShaderRuntimeChecks::checked() };
        // SAFETY: buffer accesses stay checked. Only the counter that naga adds to every loop is
        // off: it prevents unrolling and made products five times slower. Our loops end,
        // because parameters and lengths bound them. Replaced source (`planted`) keeps the counter.
        let module = match is_planted {
            true => device.create_shader_module(descriptor),
            false => unsafe { device.create_shader_module_trusted(descriptor, checks) },
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
        entries
            .extend(shader.variant.kernel.bindings.iter().zip(1..).map(|((_, access), n)| entry(n, storage(access))));
        self.0
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(label), entries: &entries })
    }
}
