//! `weft devices`: what could run a model here.

use anyhow::Result;
use kernels::device::{self, AdapterSummary, Class, Device, Limits, Select};
use serde_json::{Map, Value, json};
use std::io::Write;

/// List the GPUs of this machine, with features, limits and speed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft devices
  weft devices --limits             every limit of every adapter
  weft devices --json | jq '.[].name'
  weft run --device 'RTX 4090' -p 'Hello'")]
pub struct Args {
    /// Print every limit too
    #[arg(long)]
    limits: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let adapters = device::list();
    let mut out = std::io::stdout();
    if args.json {
        let all: Vec<Value> = adapters.iter().map(adapter_json).collect();
        writeln!(out, "{}", Value::Array(all))?;
        return Ok(());
    }
    if adapters.is_empty() {
        writeln!(out, "no graphics adapter answers; the CPU runs models (is a Vulkan, Metal or DX12 driver installed?)")?;
    }
    for (n, adapter) in adapters.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        let AdapterSummary { name, backend, driver, .. } = adapter;
        writeln!(out, "{name}\n  {}, {backend}, driver {driver}", class(adapter.class))?;
        match Device::open(&Select::Name(name.clone()), Limits::from_env()) {
            Err(error) => writeln!(out, "  cannot be used: {error}")?,
            Ok(device) => print(&mut out, &device, args.limits)?,
        }
    }
    Ok(())
}

fn print(out: &mut impl Write, device: &Device, all: bool) -> Result<()> {
    let (features, limits) = device.describe();
    let caps = device.caps();
    let features = if features.is_empty() { "none".to_string() } else { features.join(", ") };
    writeln!(out, "  features: {features}")?;
    let (binding, buffer) = (model::Size(caps.max_binding_bytes), model::Size(caps.max_buffer_bytes));
    writeln!(out, "  largest binding {binding}, largest buffer {buffer}, {} threads per workgroup", caps.max_workgroup)?;
    if all {
        for (name, value) in pairs(&limits) {
            writeln!(out, "  {name}: {value}")?;
        }
    }
    Ok(())
}

fn adapter_json(adapter: &AdapterSummary) -> Value {
    let mut object = json!({
        "name": adapter.name, "class": kind(adapter.class), "backend": adapter.backend, "driver": adapter.driver,
    });
    match Device::open(&Select::Name(adapter.name.clone()), Limits::from_env()) {
        Err(error) => object["error"] = json!(error.to_string()),
        Ok(device) => {
            let (features, limits) = device.describe();
            object["features"] = json!(features);
            object["limits"] = Value::Object(pairs(&limits).map(|(name, value)| (name.to_string(), number(value))).collect::<Map<_, _>>());
        }
    }
    object
}

/// The `name: value,` lines of a printed structure.
fn pairs(limits: &str) -> impl Iterator<Item = (&str, &str)> {
    limits.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "))
}

fn number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), |n| json!(n))
}

/// The word that scripts read.
fn kind(class: Class) -> &'static str {
    match class {
        Class::Discrete => "discrete",
        Class::Integrated => "integrated",
        Class::Virtual => "virtual",
        Class::Unknown => "unknown",
        Class::Software => "software",
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Discrete => "discrete GPU",
        Class::Integrated => "integrated GPU",
        Class::Virtual => "virtual GPU",
        Class::Unknown => "unknown kind",
        Class::Software => "software, not a GPU",
    }
}
