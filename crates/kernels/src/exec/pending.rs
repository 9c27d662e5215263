//! A run whose results are on their way.

use crate::error::Error;
use crate::exec::readback::Read;
use crate::exec::watch::Outputs;

/// A run in progress. [`Pending::wait`] returns its outputs.
#[must_use]
pub struct Pending(Results);

/// Where the results are.
enum Results {
    Gpu(Read),
    Cpu(Outputs),
}

impl Pending {
    pub(crate) fn gpu(read: Read) -> Self {
        Self(Results::Gpu(read))
    }

    pub(crate) fn cpu(outputs: Outputs) -> Self {
        Self(Results::Cpu(outputs))
    }

    /// Waits for the outputs.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub async fn wait_async(self) -> Result<Outputs, Error> {
        match self.0 {
            Results::Gpu(read) => read.wait().await,
            Results::Cpu(outputs) => Ok(outputs),
        }
    }
}
