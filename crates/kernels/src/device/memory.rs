//! The memory sizes that the driver reports. The `unsafe` code reads numbers through wgpu's native
//! handles.

use crate::device::Device;
use crate::device::executor::Executor;

/// The memory that a device uses: its own, or its part of the host's memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub total_bytes: u64,
    /// Bytes that this process can still allocate, or the total if the driver does not tell.
    pub available_bytes: u64,
}

impl Device {
    /// Memory as reported by Vulkan (VK_EXT_memory_budget), DXGI or Metal; `None` in a browser.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        native(&self.0.device)
    }
}

impl Executor {
    /// Bytes that can still be allocated on a GPU; `None` if the driver does not tell, and on the
    /// CPU.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        match self {
            Self::Gpu(device) => device.memory().map(|m| m.available_bytes),
            Self::Cpu => None,
        }
    }
}

#[cfg(any(windows, target_os = "linux", target_os = "android"))]
mod vulkan {
    use super::Memory;
    use ash::{ext::memory_budget, vk};

    /// The largest device-local heap. A smaller one is only the part that the host can access.
    pub fn memory(device: &wgpu::Device) -> Option<Memory> {
        // SAFETY: the guard keeps the device alive, and nothing is destroyed through it.
        let hal = unsafe { device.as_hal::<wgpu::hal::api::Vulkan>() }?;
        let (instance, physical) = (hal.shared_instance(), hal.raw_physical_device());
        let raw = instance.raw_instance();
        // SAFETY: the instance and its physical device are alive; the function takes no pointer.
        let version =
            unsafe { raw.get_physical_device_properties(physical) }.api_version.min(instance.instance_api_version());
        // SAFETY: as above.
        let plain = unsafe { raw.get_physical_device_memory_properties(physical) };
        let heaps = plain.memory_heaps[..plain.memory_heap_count as usize].iter().enumerate();
        let local = heaps.filter(|(_, heap)| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
        let (n, heap) = local.max_by_key(|(_, heap)| heap.size)?;
        let mut memory = Memory { total_bytes: heap.size, available_bytes: heap.size };
        if version >= vk::API_VERSION_1_1 && hal.enabled_device_extensions().contains(&memory_budget::NAME) {
            let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
            let mut extended = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
            // SAFETY: the function is core since 1.1, which instance and device both have. The
            // enabled extension defines the chained structure.
            unsafe { raw.get_physical_device_memory_properties2(physical, &mut extended) };
            memory.available_bytes = budget.heap_budget[n].saturating_sub(budget.heap_usage[n]);
        }
        Some(memory)
    }
}

#[cfg(windows)]
mod dxgi {
    use super::Memory;
    use windows::Win32::Graphics::Dxgi;

    /// The adapter's local segment: the budget of this process and its current usage.
    pub fn memory(device: &wgpu::Device) -> Option<Memory> {
        // SAFETY: the guard keeps the device alive, and nothing is released through it.
        let hal = unsafe { device.as_hal::<wgpu::hal::api::Dx12>() }?;
        let mut info = Dxgi::DXGI_QUERY_VIDEO_MEMORY_INFO::default();
        // SAFETY: calls on live COM objects; `info` outlives the call that fills it.
        unsafe {
            let factory: Dxgi::IDXGIFactory4 = Dxgi::CreateDXGIFactory2(Dxgi::DXGI_CREATE_FACTORY_FLAGS(0)).ok()?;
            let adapter: Dxgi::IDXGIAdapter3 = factory.EnumAdapterByLuid(hal.raw_device().GetAdapterLuid()).ok()?;
            adapter.QueryVideoMemoryInfo(0, Dxgi::DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &mut info).ok()?;
        }
        Some(Memory { total_bytes: info.Budget, available_bytes: info.Budget.saturating_sub(info.CurrentUsage) })
    }
}

#[cfg(target_vendor = "apple")]
mod metal {
    use super::Memory;
    use objc2_metal::MTLDevice as _;

    /// The working set that Metal recommends, less the bytes that this process has allocated.
    pub fn memory(device: &wgpu::Device) -> Option<Memory> {
        // SAFETY: the guard keeps the device alive, and nothing is released through it.
        let hal = unsafe { device.as_hal::<wgpu::hal::api::Metal>() }?;
        let total_bytes = hal.raw_device().recommendedMaxWorkingSetSize();
        let used = hal.raw_device().currentAllocatedSize() as u64;
        Some(Memory { total_bytes, available_bytes: total_bytes.saturating_sub(used) })
    }
}

#[cfg(windows)]
fn native(device: &wgpu::Device) -> Option<Memory> {
    vulkan::memory(device).or_else(|| dxgi::memory(device))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn native(device: &wgpu::Device) -> Option<Memory> {
    vulkan::memory(device)
}

#[cfg(target_vendor = "apple")]
fn native(device: &wgpu::Device) -> Option<Memory> {
    metal::memory(device)
}

#[cfg(not(any(windows, target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn native(_: &wgpu::Device) -> Option<Memory> {
    None
}

#[cfg(all(test, any(target_os = "linux", windows)))]
mod tests {
    use super::*;

    #[test]
    fn a_vulkan_device_tells_its_memory() {
        let device = crate::device::tests::device();
        let memory = device.memory().expect("heaps");
        assert!(memory.total_bytes >= 64 << 20, "{memory:?}");
        assert!(memory.available_bytes > 0 && memory.available_bytes <= memory.total_bytes, "{memory:?}");
        assert!(Executor::Gpu(device).available_bytes().is_some());
        assert_eq!(Executor::Cpu.available_bytes(), None);
    }
}
