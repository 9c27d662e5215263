//! A GPU device: choice of the adapter, limits, capabilities and pipelines.

pub(crate) mod buffer;
pub mod executor;
#[cfg(feature = "interop")]
mod interop;
#[cfg(feature = "testing")]
mod lose;
pub mod memory;
pub mod pipelines;
#[cfg(test)]
pub(crate) mod tests;
mod without;

use crate::caps::table::Table;
use crate::caps::{Caps, Class};
use crate::device::pipelines::clock::{Clock, Spent};
use crate::device::pipelines::{Kept, Pipelines};
use crate::error::Error;
use crate::kernel::compose::{FEWEST, Shader};
use crate::platform::{self, Moment, Waiter};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
pub use without::Without;

/// Which adapter to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// Discrete before integrated before virtual before software.
    #[default]
    Best,
    /// As [`Select::Best`], but no software adapter: it is found and not opened.
    Hardware,
    /// The first adapter whose name contains this text, ignoring case.
    Name(String),
}

/// The limits and features to request from the adapter.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Limits {
    /// Every limit and every useful feature of the adapter.
    #[default]
    Adapter,
    /// Every limit of the adapter, and every useful feature except these
    /// (`WEFT_WITHOUT=coop,subgroups,f16`).
    Without(Without),
    /// WebGPU's default limits and no optional feature, as in a browser (`WEFT_LIMITS=webgpu`).
    WebGpu,
}

impl Limits {
    /// Reads the environment variables `WEFT_LIMITS` and `WEFT_WITHOUT`. Any value of the first
    /// except `webgpu` means all limits. If the second has an unknown name, no feature is left out.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var("WEFT_LIMITS") {
            Ok(v) if v.eq_ignore_ascii_case("webgpu") => Self::WebGpu,
            _ => Self::Adapter
                .without(std::env::var("WEFT_WITHOUT").ok().and_then(|names| names.parse().ok()).unwrap_or_default()),
        }
    }

    /// These limits without the features `features` too. WebGPU's defaults have none of these
    /// features.
    #[must_use]
    pub fn without(self, features: Without) -> Self {
        match self {
            Self::Adapter if features == Without::default() => Self::Adapter,
            Self::Adapter => Self::Without(features),
            Self::Without(before) => Self::Without(before.and(features)),
            Self::WebGpu => Self::WebGpu,
        }
    }
}

/// The description of one adapter.
#[derive(Clone, Debug)]
pub struct AdapterSummary {
    pub name: String,
    pub class: Class,
    pub backend: String,
    pub driver: String,
}

/// Size of the memory blocks that small buffers share. A larger buffer gets its own allocation of
/// its exact size. Blocks of 64 MB would waste 655 MB with the weights of Qwen3-8B, because few of
/// its matrices fit into the rest of a block.
const BLOCK_BYTES: Range<u64> = 8 << 20..8 << 20;

pub(crate) struct Inner {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub summary: AdapterSummary,
    pub caps: Caps,
    pub limits: wgpu::Limits,
    pub features: wgpu::Features,
    pub lost: Arc<OnceLock<String>>,
    pub failed: Arc<Mutex<Option<String>>>,
    /// PCI ids of vendor and device.
    pub ids: (u32, u32),
    pub pipelines: Arc<Pipelines>,
    /// The driver's pipeline cache, if it was asked for.
    pub cache: Arc<Mutex<Option<Kept>>>,
    pub clock: Arc<Clock>,
    pub waiter: Arc<Waiter>,
    /// Buffers, bind groups and pipelines made so far.
    pub created: Arc<AtomicU64>,
    /// Submits of commands so far.
    pub submitted: Arc<AtomicU64>,
    /// Reads that are neither waited for nor dropped.
    pub running: Arc<AtomicU64>,
    /// The buffers that exist.
    pub live: Arc<buffer::Live>,
    /// Gives the WGSL text that replaces the source of a shader (for tests).
    pub source: Option<Sources>,
}

/// Gives the text that replaces the source of a shader; `None` leaves the shader as it is.
pub(crate) type Sources = Arc<dyn Fn(&Shader) -> Option<String> + Send + Sync>;

/// An open GPU device. It is cheap to clone and can be shared between threads.
#[derive(Clone)]
pub struct Device(pub(crate) Arc<Inner>);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("adapter", &self.0.summary).field("caps", &self.0.caps).finish()
    }
}

fn instance(limits: Limits) -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    // Without the GL backend: it writes to stderr on machines without a display, and it has no
    // advantage over the other backends.
    descriptor.backends =
        wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12 | wgpu::Backends::BROWSER_WEBGPU;
    if limits == Limits::WebGpu {
        descriptor.flags |= wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL;
        descriptor.flags.remove(wgpu::InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER);
    }
    wgpu::Instance::new(descriptor)
}

fn class(info: &wgpu::AdapterInfo) -> Class {
    let software =
        ["llvmpipe", "lavapipe", "swiftshader", "basic render"].iter().any(|s| info.name.to_lowercase().contains(s));
    match info.device_type {
        _ if software => Class::Software,
        wgpu::DeviceType::DiscreteGpu => Class::Discrete,
        wgpu::DeviceType::IntegratedGpu => Class::Integrated,
        wgpu::DeviceType::VirtualGpu => Class::Virtual,
        wgpu::DeviceType::Cpu => Class::Software,
        wgpu::DeviceType::Other => Class::Unknown,
    }
}

fn summary(info: &wgpu::AdapterInfo) -> AdapterSummary {
    AdapterSummary {
        name: info.name.clone(),
        class: class(info),
        backend: info.backend.to_string(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
    }
}

/// What is known of an adapter before it is open.
fn info(adapter: &wgpu::Adapter) -> wgpu::AdapterInfo {
    platform::adapter_info(adapter, None)
}

async fn adapters(limits: Limits) -> Vec<wgpu::Adapter> {
    let mut found = instance(limits).enumerate_adapters(wgpu::Backends::all()).await;
    found.sort_by_key(|a| class(&info(a)));
    found
}

/// The feature flag of cooperative matrices, if the adapter has the matrix shape and the subgroup
/// size that the kernels need.
fn cooperative(adapter: &wgpu::Adapter) -> wgpu::Features {
    let info = adapter.get_info();
    let ours = |p: &wgpu::CooperativeMatrixProperties| {
        (p.m_size, p.n_size, p.k_size) == (16, 16, 16)
            && p.ab_type == wgpu::CooperativeScalarType::F16
            && p.cr_type == wgpu::CooperativeScalarType::F32
    };
    let fits = (info.subgroup_min_size, info.subgroup_max_size) == (32, 32)
        && adapter
            .features()
            .contains(wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP | wgpu::Features::SUBGROUP_BARRIER)
        && adapter.cooperative_matrix_properties().iter().any(ours);
    if fits { wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX } else { wgpu::Features::empty() }
}

impl Device {
    /// The adapters of this machine, best first.
    pub async fn list_async() -> Vec<AdapterSummary> {
        adapters(Limits::Adapter).await.iter().map(|a| summary(&info(a))).collect()
    }

    /// Opens the adapter that `select` names.
    ///
    /// # Errors
    /// [`Error::NoAdapter`] if no adapter matches, [`Error::NoDevice`] if the driver refuses.
    pub async fn open_async(select: &Select, limits: Limits) -> Result<Self, Error> {
        let began = Moment::now();
        let found = adapters(limits).await;
        let chosen = match select {
            Select::Best => found.first(),
            Select::Hardware => found.first().filter(|adapter| class(&info(adapter)) != Class::Software),
            Select::Name(name) => found.iter().find(|&a| info(a).name.to_lowercase().contains(&name.to_lowercase())),
        };
        let Some(adapter) = chosen else {
            let wanted = match select {
                Select::Best | Select::Hardware => platform::NO_ADAPTER.to_string(),
                Select::Name(name) => format!("adapter named \"{name}\""),
            };
            return Err(Error::NoAdapter { wanted, found: found.iter().map(|a| info(a).name).collect() });
        };
        let device = Self::request(adapter, limits).await?;
        device.0.clock.opened(began.elapsed());
        Ok(device)
    }

    async fn request(adapter: &wgpu::Adapter, limits: Limits) -> Result<Self, Error> {
        let summary = summary(&info(adapter));
        let useful = wgpu::Features::SUBGROUP
            | wgpu::Features::SUBGROUP_BARRIER
            | wgpu::Features::SHADER_F16
            | wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES
            | wgpu::Features::PIPELINE_CACHE
            | cooperative(adapter);
        let (features, limits) = match limits {
            Limits::Adapter => (adapter.features() & useful, adapter.limits()),
            Limits::Without(left_out) => {
                ((adapter.features() & useful).difference(left_out.features()), adapter.limits())
            }
            Limits::WebGpu => (wgpu::Features::empty(), wgpu::Limits::default()),
        };
        let experimental_features = match features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
            // SAFETY: cooperative matrices are the only experimental feature requested. On each
            // device, `verify-shaders` compares every kernel that uses them with its oracle and
            // checks that it stays within its buffers.
            true => unsafe { wgpu::ExperimentalFeatures::enabled() },
            false => wgpu::ExperimentalFeatures::disabled(),
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("weft"),
            required_features: features,
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::Manual { suballocated_device_memory_block_size: BLOCK_BYTES },
            experimental_features,
            ..Default::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|e| Error::NoDevice { adapter: summary.name.clone(), reason: e.to_string() })?;
        let made = Self::of(adapter, device, queue);
        made.listen();
        Ok(made)
    }

    /// What this crate knows of a device that is open.
    pub(crate) fn of(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let summary = summary(&platform::adapter_info(adapter, Some(&device)));
        let (features, limits) = (device.features(), device.limits());
        let (lost, failed) = (Arc::default(), Arc::default());
        let subgroups = features.contains(wgpu::Features::SUBGROUP) && adapter.get_info().subgroup_min_size >= FEWEST;
        let cooperative = features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
        let caps = Caps {
            subgroups,
            subgroup_size: if subgroups { adapter.get_info().subgroup_min_size } else { 0 },
            cooperative,
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            max_binding_bytes: limits.max_storage_buffer_binding_size & !255,
            max_buffer_bytes: limits.max_buffer_size & !255,
            max_workgroup: limits.max_compute_invocations_per_workgroup,
            max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
            max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
            max_grid: limits.max_compute_workgroups_per_dimension,
            uniform_align: limits.min_uniform_buffer_offset_alignment,
            storage_align: limits.min_storage_buffer_offset_alignment,
            table: Table::usual(summary.class, cooperative),
        };
        let ids = (adapter.get_info().vendor, adapter.get_info().device);
        let (pipelines, cache, created, source) = (Arc::default(), Arc::default(), Arc::default(), None);
        let (clock, waiter) = (Arc::default(), Arc::default());
        let inner = Inner {
            device,
            queue,
            summary,
            caps,
            limits,
            features,
            lost,
            failed,
            ids,
            pipelines,
            cache,
            clock,
            waiter,
            created,
            submitted: Arc::default(),
            running: Arc::default(),
            live: Arc::default(),
            source,
        };
        Self(Arc::new(inner))
    }

    /// Keeps the reason of a lost device and the first error that no scope catches.
    fn listen(&self) {
        let lost = Arc::clone(&self.0.lost);
        self.0.device.set_device_lost_callback(move |reason, message| {
            let reason = match reason {
                wgpu::DeviceLostReason::Destroyed => "it was destroyed: ",
                _ => "",
            };
            let _ = lost.set(format!("{reason}{message}"));
        });
        let failed = Arc::clone(&self.0.failed);
        self.0.device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| {
            failed.lock().unwrap_or_else(|p| p.into_inner()).get_or_insert(e.to_string());
        }));
    }

    /// This device with lower capabilities or another table. Tests force splits and fallbacks.
    #[must_use]
    pub fn with_caps(&self, caps: Caps) -> Self {
        self.altered(caps, self.0.source.clone(), Arc::clone(&self.0.pipelines))
    }

    /// This device with one shader built from other text. Tests insert faults with this text.
    #[must_use]
    pub fn with_source(&self, shader: &Shader, text: String) -> Self {
        let shader = shader.clone();
        self.with_sources(move |of| (*of == shader).then(|| text.clone()))
    }

    /// This device with some shaders built from other text: the text that `sources` gives.
    #[must_use]
    pub fn with_sources(&self, sources: impl Fn(&Shader) -> Option<String> + Send + Sync + 'static) -> Self {
        let pipelines = Arc::new(self.0.pipelines.without(|shader| sources(shader).is_some()));
        self.altered(self.0.caps.clone(), Some(Arc::new(sources)), pipelines)
    }

    fn altered(&self, caps: Caps, source: Option<Sources>, pipelines: Arc<Pipelines>) -> Self {
        let Inner {
            device,
            queue,
            summary,
            limits,
            features,
            lost,
            failed,
            ids,
            cache,
            clock,
            waiter,
            created,
            submitted,
            running,
            live,
            ..
        } = &*self.0;
        Self(Arc::new(Inner {
            device: device.clone(),
            queue: queue.clone(),
            summary: summary.clone(),
            caps,
            limits: limits.clone(),
            features: *features,
            lost: Arc::clone(lost),
            failed: Arc::clone(failed),
            ids: *ids,
            pipelines,
            cache: Arc::clone(cache),
            clock: Arc::clone(clock),
            waiter: Arc::clone(waiter),
            created: Arc::clone(created),
            submitted: Arc::clone(submitted),
            running: Arc::clone(running),
            live: Arc::clone(live),
            source,
        }))
    }

    /// Number of buffers, bind groups and pipelines created so far. A plan creates objects when it
    /// is made or bound to states, never per run.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.0.created.load(Ordering::Relaxed)
    }

    /// Number of submits of commands so far. A run submits once, and once more at each cut of its
    /// plan.
    #[must_use]
    pub fn submitted(&self) -> u64 {
        self.0.submitted.load(Ordering::Relaxed)
    }

    /// Submits these commands.
    pub(crate) fn submit(&self, encoder: wgpu::CommandEncoder) -> wgpu::SubmissionIndex {
        self.0.submitted.fetch_add(1, Ordering::Relaxed);
        self.0.queue.submit([encoder.finish()])
    }

    /// The time spent so far on opening, planning and building.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.0.clock.spent()
    }

    /// Counts an object that is about to be created.
    pub(crate) fn count(&self) {
        self.0.created.fetch_add(1, Ordering::Relaxed);
    }

    /// The capabilities of this device.
    #[must_use]
    pub fn caps(&self) -> &Caps {
        &self.0.caps
    }

    /// The adapter behind this device.
    #[must_use]
    pub fn adapter(&self) -> &AdapterSummary {
        &self.0.summary
    }

    /// The names of the granted optional features, and the limits as text.
    #[must_use]
    pub fn describe(&self) -> (Vec<String>, String) {
        (self.0.features.iter_names().map(|(n, _)| n.to_lowercase()).collect(), format!("{:#?}", self.0.limits))
    }
}

impl Device {
    /// This device with kernels chosen by this table.
    #[must_use]
    pub fn with_table(&self, table: Table) -> Self {
        self.with_caps(Caps { table, ..self.caps().clone() })
    }

    /// [`Device::key`] with the capabilities that decide which kernels are available. A table is
    /// valid for one such key only.
    #[must_use]
    pub fn table_key(&self) -> String {
        let caps = self.caps();
        let of = |has: bool, name: &str| if has { format!(", {name}") } else { String::new() };
        let (cooperative, subgroups) = (of(caps.cooperative, "cooperative"), of(caps.subgroups, "subgroups"));
        format!(
            "{}{cooperative}{subgroups}, {} threads, {} buffers",
            self.key(),
            caps.max_workgroup,
            caps.max_storage_buffers
        )
    }

    /// [`Device::table_key`] as a short file name.
    #[must_use]
    pub fn table_name(&self) -> String {
        self.short_name(&self.table_key())
    }
}
