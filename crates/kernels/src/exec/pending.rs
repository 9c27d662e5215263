//! A run whose results are on their way.

use crate::error::Error;
use crate::exec::readback::Read;
use crate::exec::watch::Outputs;

/// A run in progress. [`Pending::wait`] returns its outputs.
#[must_use]
pub enum Pending {
    Gpu(Read),
    Cpu(Outputs),
}

impl Pending {
    /// Waits for the outputs.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub async fn wait_async(self) -> Result<Outputs, Error> {
        match self {
            Self::Gpu(read) => read.wait().await,
            Self::Cpu(outputs) => Ok(outputs),
        }
    }
}
