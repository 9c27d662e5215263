//! The executor of recordings: a GPU device, or the oracles on the CPU.

use crate::device::Device;

/// Runs recordings, on a GPU or on the CPU.
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
    /// The name of the adapter, or `CPU`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Gpu(device) => device.adapter().name.clone(),
            Self::Cpu => "CPU".to_string(),
        }
    }

    /// Whether the device was lost, so that its weights and states are gone. The CPU never is.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Gpu(device) => device.is_lost(),
            Self::Cpu => false,
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
