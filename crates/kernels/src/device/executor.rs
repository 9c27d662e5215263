//! Where recordings run: a device, or the oracles.

use crate::device::Device;

/// Where recordings run.
#[derive(Clone, Debug)]
pub enum Executor {
    Gpu(Device),
    Cpu,
}

impl From<&Device> for Executor {
    fn from(device: &Device) -> Self {
        Self::Gpu(device.clone())
    }
}

impl From<&Self> for Executor {
    fn from(executor: &Self) -> Self {
        executor.clone()
    }
}

impl Executor {
    /// The name people know it by.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Gpu(device) => device.adapter().name.clone(),
            Self::Cpu => "CPU".to_string(),
        }
    }

    /// `gpu` or `cpu`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Gpu(_) => "gpu",
            Self::Cpu => "cpu",
        }
    }
}
