//! The device of this page: one, which all its models share, so that kernels are compiled once.

use crate::error::Failure;
use crate::json;
use kernels::{Class, Device, Executor, Limits, Select};
use serde_json::json;
use std::cell::RefCell;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

thread_local! {
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// The open device, or a new one if there is none or it was lost.
async fn device(select: &Select) -> Result<Device, Failure> {
    if let Some(open) = DEVICE.with_borrow(|device| device.clone().filter(|device| !device.is_lost())) {
        return Ok(open);
    }
    let device = Device::open_async(select, Limits::Adapter).await?;
    DEVICE.set(Some(device.clone()));
    Ok(device)
}

/// The executor that a page asks for: `gpu`, `cpu`, or `auto`, which is the CPU where the GPU is
/// emulated.
pub async fn executor(choice: &str) -> Result<Executor, Failure> {
    match choice {
        "cpu" => Ok(Executor::Cpu),
        "gpu" => Ok(Executor::from(&device(&Select::Best).await?)),
        "auto" => {
            let device = device(&Select::Best).await.ok().filter(|device| device.adapter().class != Class::Software);
            Ok(device.as_ref().map_or(Executor::Cpu, Executor::from))
        }
        other => Err(Failure::unknown("device", other, &["auto", "gpu", "cpu"])),
    }
}

/// The executors of this page, `DeviceInfo` each.
#[wasm_bindgen]
pub async fn devices() -> Result<JsValue, Failure> {
    let mut all = vec![];
    if let Ok(device) = device(&Select::Best).await {
        all.push(json!({
            "name": device.adapter().name,
            "kind": "gpu",
            "fallback": device.adapter().class == Class::Software,
            "maxBufferBytes": device.caps().max_buffer_bytes,
        }));
    }
    all.push(json!({ "name": "CPU", "kind": "cpu", "fallback": false, "maxBufferBytes": u32::MAX }));
    Ok(json::write(&all))
}

/// The memory in use, `MemoryUse`.
#[wasm_bindgen(js_name = memoryUse)]
pub fn memory_use() -> JsValue {
    let pages = core::arch::wasm32::memory_size::<0>() as u64;
    let (gpu, buffers) =
        DEVICE.with_borrow(|device| device.as_ref().map_or((0, 0), |d| (d.buffer_bytes(), d.buffer_count())));
    json::write(&json!({ "wasm": pages << 16, "gpu": gpu, "buffers": buffers }))
}
