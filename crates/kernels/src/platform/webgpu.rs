//! The browser's own WebGPU, for the functions that wgpu does not have.

use crate::device::buffer::caught;
use crate::platform::PipelineParts;
use js_sys::{Array, Object, Promise, Reflect};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = GPUDevice)]
    type GpuDevice;

    #[wasm_bindgen(method, catch, js_name = createShaderModule)]
    fn create_shader_module(this: &GpuDevice, descriptor: &JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch, js_name = createBindGroupLayout)]
    fn create_bind_group_layout(this: &GpuDevice, descriptor: &JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch, js_name = createPipelineLayout)]
    fn create_pipeline_layout(this: &GpuDevice, descriptor: &JsValue) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch, js_name = createComputePipelineAsync)]
    fn create_compute_pipeline_async(this: &GpuDevice, descriptor: &JsValue) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, getter, js_name = adapterInfo)]
    fn adapter_info(this: &GpuDevice) -> Option<GpuAdapterInfo>;

    #[wasm_bindgen(js_name = GPUAdapterInfo)]
    type GpuAdapterInfo;

    #[wasm_bindgen(method, getter)]
    fn vendor(this: &GpuAdapterInfo) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    fn architecture(this: &GpuAdapterInfo) -> Option<String>;
}

/// The device behind wgpu's.
fn raw(device: &wgpu::Device) -> Option<&GpuDevice> {
    device.as_webgpu().map(JsCast::unchecked_ref)
}

fn object<const N: usize>(fields: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields {
        Reflect::set(&object, &name.into(), &value).expect("a new object takes every field");
    }
    JsValue::from(object)
}

/// A compiled pipeline. While it lives, an equal pipeline of the device is ready at once: the
/// browser shares them.
pub(crate) struct Compiled {
    _pipeline: Option<JsValue>,
}

/// Compiles a pipeline in the background. Its parts are equal to the parts that wgpu gives to the
/// browser. An error is left to the pipeline that wgpu makes.
pub(crate) async fn compile(device: &wgpu::Device, parts: &PipelineParts) -> Compiled {
    let filters = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory];
    let scopes = filters.map(|filter| device.push_error_scope(filter));
    let begun = raw(device).and_then(|device| begin(device, parts).ok());
    drop(caught(scopes));
    let pipeline = match begun {
        Some(promise) => JsFuture::from(promise).await.ok(),
        None => None,
    };
    Compiled { _pipeline: pipeline }
}

fn begin(device: &GpuDevice, parts: &PipelineParts) -> Result<Promise, JsValue> {
    let module = device.create_shader_module(&object([("code", parts.text.as_str().into())]))?;
    let entry = |(binding, ty): (u32, &wgpu::BufferBindingType)| {
        let ty = match ty {
            wgpu::BufferBindingType::Uniform => "uniform",
            wgpu::BufferBindingType::Storage { read_only: true } => "read-only-storage",
            wgpu::BufferBindingType::Storage { read_only: false } => "storage",
        };
        let visibility = wgpu::ShaderStages::COMPUTE.bits();
        object([
            ("binding", binding.into()),
            ("visibility", visibility.into()),
            ("buffer", object([("type", ty.into())])),
        ])
    };
    let entries: Array = (0..).zip(&parts.buffers).map(entry).collect();
    let group = device.create_bind_group_layout(&object([("entries", entries.into())]))?;
    let groups: Array = std::iter::once(group).collect();
    let layout = device.create_pipeline_layout(&object([("bindGroupLayouts", groups.into())]))?;
    let compute = object([("module", module), ("entryPoint", parts.entry.into())]);
    device.create_compute_pipeline_async(&object([("layout", layout), ("compute", compute)]))
}

/// What is known of an adapter. wgpu gives its description alone, which most browsers leave empty.
/// The open device tells more.
pub(crate) fn adapter_info(adapter: &wgpu::Adapter, device: Option<&wgpu::Device>) -> wgpu::AdapterInfo {
    let mut info = adapter.get_info();
    let told = device.and_then(raw).and_then(GpuDevice::adapter_info);
    let [vendor, architecture] =
        told.map_or_else(Default::default, |told| [told.vendor(), told.architecture()].map(Option::unwrap_or_default));
    if info.name.is_empty() {
        info.name = format!("{vendor} {architecture}").trim().to_string();
    }
    if info.name.is_empty() {
        info.name = "WebGPU".to_string();
    }
    if info.device_type == wgpu::DeviceType::Other {
        info.device_type = device_type(&vendor);
    }
    info
}

/// The kind of a vendor's hardware, where it decides how long a submit may take. AMD's is not
/// known: its integrated adapters have the architectures of its cards.
fn device_type(vendor: &str) -> wgpu::DeviceType {
    match vendor {
        "nvidia" => wgpu::DeviceType::DiscreteGpu,
        "apple" | "arm" | "img-tec" | "intel" | "qualcomm" | "samsung" => wgpu::DeviceType::IntegratedGpu,
        _ => wgpu::DeviceType::Other,
    }
}
