//! Chooses the device that runs a session.

use crate::cache;
use crate::exit::{note, one_line};
use anyhow::Result;
use kernels::Executor;
use kernels::choose::{Because, Chosen, Demand};
use kernels::{Class, Device, Limits, Select, Without};
use model::{ModelFile, SessionOptions};
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::OnceLock;

static WITHOUT: OnceLock<Without> = OnceLock::new();

/// From this call on, devices are opened without these features.
pub fn leave_out(features: Without) {
    WITHOUT.get_or_init(|| features);
}

/// The limits with which every command opens its device.
pub fn limits() -> Limits {
    Limits::from_env().without(WITHOUT.get().copied().unwrap_or_default())
}

/// The value of `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Auto,
    Gpu,
    Cpu,
    /// The first adapter whose name contains this text.
    Name(String),
}

impl FromStr for Choice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.to_lowercase().as_str() {
            "auto" | "" => Self::Auto,
            "gpu" => Self::Gpu,
            "cpu" => Self::Cpu,
            _ => Self::Name(text.to_string()),
        })
    }
}

/// With more weights than this, the CPU executor is slow: about one token per second on a desktop.
const LARGE_FOR_CPU_BYTES: u64 = 500_000_000;

impl Choice {
    /// Opens the chosen device. `auto` compares the cost of a session of this file on the GPU and
    /// on the CPU; without a GPU it takes the CPU.
    ///
    /// # Errors
    /// There is no such adapter, or it cannot be opened. For `auto`: the file cannot run.
    pub fn open(&self, file: &ModelFile, options: &SessionOptions) -> Result<Executor> {
        let select = match self {
            Self::Cpu => return Ok(Executor::Cpu),
            Self::Auto => return auto(file, options),
            Self::Gpu => Select::Best,
            Self::Name(name) => Select::Name(name.clone()),
        };
        let device = Device::open(&select, limits())?;
        let device = cache::attach(&device);
        if device.adapter().class == Class::Software {
            note(&format!("software adapter {}; this is not a GPU", device.adapter().name));
        }
        Ok(Executor::Gpu(device))
    }
}

fn auto(file: &ModelFile, options: &SessionOptions) -> Result<Executor> {
    let checked = file.check(&Executor::Cpu)?;
    let needs = checked.needs(options)?;
    let resident_bytes = needs.weights.0.saturating_add(needs.kv.0);
    let demand = Demand::of(&checked.recording(options, 1), resident_bytes);
    let Chosen { executor, because } = Executor::auto_with(&demand, limits(), cache::rates);
    let executor = match executor {
        Executor::Gpu(device) => Executor::Gpu(cache::attach(&device)),
        Executor::Cpu => Executor::Cpu,
    };
    let surprising = matches!(because, Because::Refused(_) | Because::TooLarge { .. });
    if matches!(executor, Executor::Cpu) && (surprising || needs.weights.0 > LARGE_FOR_CPU_BYTES) {
        let reason = one_line(&because.to_string());
        note(&format!("{reason}; this model runs slowly on the CPU (weights: {})", needs.weights));
    }
    Ok(executor)
}
