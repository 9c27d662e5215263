//! The memory that a model needs.

use crate::adapter::Adapted;
use crate::arch::{self, Architecture};
use crate::error::{Error, Size};
use crate::options::SessionOptions;
use crate::plans::sampling_keys;
use crate::recording::{PlanKey, recording};
use kernels::{Executor, Room, StateKind, States};

/// The memory that a model needs on an executor, computed before anything is allocated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The weights of the model and of the adapters.
    pub weights: Size,
    /// The KV cache for the full context. The cache grows up to this size.
    pub kv: Size,
    pub intermediates: Size,
}

impl Needs {
    /// The needs of these weights and one session with these options.
    pub(crate) fn of(
        architecture: &dyn Architecture,
        adapted: &Adapted,
        executor: &Executor,
        options: &SessionOptions,
    ) -> Result<Self, Error> {
        let summary = architecture.summary();
        let context = options.context_for(summary)?;
        let kinds = arch::states(summary, options);
        let intermediates = match executor {
            Executor::Cpu => widened(&kinds, context),
            Executor::Gpu(device) => {
                bindable(device, &kinds, options.sequences, context)?;
                planned(architecture, adapted, &kinds, device, options, sampling_keys(executor, options))?
            }
        };
        let kv = States::bytes_for(&kinds, options.sequences, context);
        Ok(Self { weights: Size(adapted.weights.bytes()), kv: Size(kv), intermediates: Size(intermediates) })
    }

    /// The sum.
    #[must_use]
    pub fn total(&self) -> Size {
        Size(self.weights.0.saturating_add(self.kv.0).saturating_add(self.intermediates.0))
    }

    /// Returns an error if the total exceeds `available` bytes, which include memory that is
    /// already in use for these needs.
    pub(crate) fn fit(&self, executor: &Executor, context: u32, available: u64) -> Result<(), Error> {
        let Self { weights, kv, intermediates } = *self;
        if self.total().0 <= available {
            return Ok(());
        }
        let (device, available) = (executor.name(), Size(available));
        Err(Error::TooLarge { device, available, needed: self.total(), weights, kv, intermediates, context })
    }
}

/// Bytes of the keys and values that the oracles convert to f32, one cache at a time. Their other
/// rows are small in comparison.
fn widened(kinds: &[StateKind], context: u32) -> u64 {
    let bytes = |kind: &StateKind| match *kind {
        StateKind::Kv { width, .. } => 2 * 4 * u64::from(width) * u64::from(kind.rows(context)),
        StateKind::Tokens | StateKind::Words(_) => 0,
    };
    kinds.iter().map(bytes).max().unwrap_or(0)
}

/// Refuses a context if one layer's keys do not fit into a binding.
fn bindable(device: &kernels::Device, kinds: &[StateKind], sequences: u32, context: u32) -> Result<(), Error> {
    States::fit(device, kinds, sequences, context).map_err(|error| match error {
        kernels::Error::BindingTooLarge { bytes, limit, .. } => {
            Error::CacheTooLarge { context, bytes: Size(bytes), limit: Size(limit) }
        }
        other => other.into(),
    })
}

/// Bytes of the buffers of all plans with these keys, which share a room.
fn planned(
    architecture: &dyn Architecture,
    adapted: &Adapted,
    kinds: &[StateKind],
    device: &kernels::Device,
    options: &SessionOptions,
    keys: Vec<PlanKey>,
) -> Result<u64, Error> {
    let mut plans = vec![];
    for key in keys {
        plans.push(kernels::plan::plan(
            &recording(architecture, adapted, kinds, key),
            device.caps(),
            &options.planning(),
        )?);
    }
    let inputs: u64 = plans.iter().map(|plan| plan.placement.input_bytes).sum();
    Ok(Room::sizes(&plans).iter().sum::<u64>() + inputs)
}
