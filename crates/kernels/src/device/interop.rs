//! A device shared with another program's own wgpu code, behind the feature `interop`.
//!
//! [`crate::wgpu`] is the version of wgpu whose types these functions take.

use super::Device;

impl Device {
    /// A device that the caller opened, with the features and limits that it was opened with.
    ///
    /// Kernels for subgroups, f16 and cooperative matrices are used only where the device has these
    /// features. The caller's error and device-lost callbacks stay in force: an error that no scope
    /// catches goes to them, and a lost device is reported here as a failed wait.
    #[must_use]
    pub fn from_wgpu(adapter: &wgpu::Adapter, device: wgpu::Device, queue: wgpu::Queue) -> Self {
        Self::of(adapter, device, queue)
    }

    /// The device below, for passes of the caller's own.
    #[must_use]
    pub fn wgpu_device(&self) -> &wgpu::Device {
        &self.0.device
    }

    /// The queue below. What is submitted to it runs in order with the steps of plans.
    #[must_use]
    pub fn wgpu_queue(&self) -> &wgpu::Queue {
        &self.0.queue
    }
}
