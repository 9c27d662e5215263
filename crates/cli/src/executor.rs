//! Which device runs a session.

use crate::exit::note;
use anyhow::Result;
use kernels::device::{Class, Device, Limits, Select};
use kernels::{Error, Executor};
use model::Size;
use std::convert::Infallible;
use std::str::FromStr;

/// What `--device` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Auto,
    Gpu,
    Cpu,
    /// The first adapter whose name contains this.
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

/// Weights beyond which the CPU executor is a poor choice: about a token per second on a desktop.
const LARGE_FOR_CPU_BYTES: u64 = 500_000_000;

impl Choice {
    /// Opens what was asked for; `auto` falls back to the CPU.
    ///
    /// # Errors
    /// No such adapter, or one that cannot be opened.
    pub fn open(&self) -> Result<Executor> {
        let select = match self {
            Self::Cpu => return Ok(Executor::Cpu),
            Self::Auto => return Ok(auto()),
            Self::Gpu => Select::Best,
            Self::Name(name) => Select::Name(name.clone()),
        };
        let device = Device::open(&select, Limits::from_env())?;
        if device.adapter().class == Class::Software {
            note(&format!("software adapter {}; this is not a GPU", device.adapter().name));
        }
        Ok(Executor::Gpu(device))
    }

    /// Says so when the CPU was not asked for and the model is large for it.
    pub fn advise(&self, executor: &Executor, weight_bytes: u64) {
        if *self == Self::Auto && matches!(executor, Executor::Cpu) && weight_bytes > LARGE_FOR_CPU_BYTES {
            let size = Size(weight_bytes);
            note(&format!("no GPU found; the CPU runs this model of {size} slowly (`weft devices` lists what answers)"));
        }
    }
}

fn auto() -> Executor {
    match Device::open(&Select::Best, Limits::from_env()) {
        Ok(device) if device.adapter().class != Class::Software => Executor::Gpu(device),
        Ok(_) | Err(Error::NoAdapter { .. }) => Executor::Cpu,
        Err(error) => {
            note(&format!("{}; using the CPU", crate::exit::one_line(&error.to_string())));
            Executor::Cpu
        }
    }
}
