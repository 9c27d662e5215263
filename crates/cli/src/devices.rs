//! `weft devices`: the adapters of this machine.

use crate::cache;
use crate::executor::limits;
use crate::exit::note;
use crate::progress::Bar;
use crate::tune;
use anyhow::Result;
use kernels::Class;
use kernels::choose::{Crossover, Rates};
use kernels::measure::{Measured, Transfer, measure};
use kernels::{AdapterSummary, Device, Select};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};

/// List the GPUs of this machine, with features, limits and speed
///
/// The measured speeds are saved. `--device auto` uses them to decide between the GPU and the CPU.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft devices
  weft devices --limits             show every limit of every adapter
  weft devices --json | jq '.[].name'
  weft run --device 'RTX 4090' -p 'Hello'")]
pub struct Args {
    /// Do not measure speeds, which takes one or two seconds per adapter
    #[arg(long)]
    no_measure: bool,

    /// Print every limit too
    #[arg(long)]
    limits: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let adapters = Device::list();
    let mut out = std::io::stdout();
    // At a terminal a line of progress tells what takes long. In a pipe, nothing else would.
    if !(args.no_measure || adapters.is_empty() || out.is_terminal() && std::io::stderr().is_terminal()) {
        note("measuring every adapter, software drivers for some seconds; --no-measure leaves it out");
    }
    if args.json {
        let all: Vec<Value> = adapters.iter().map(|adapter| adapter_json(args, adapter)).collect();
        writeln!(out, "{}", Value::Array(all))?;
        return Ok(());
    }
    if adapters.is_empty() {
        writeln!(
            out,
            "no graphics adapter found; models run on the CPU (is a Vulkan, Metal or DX12 driver installed?)"
        )?;
    }
    for (n, adapter) in adapters.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        let AdapterSummary { name, backend, driver, .. } = adapter;
        writeln!(out, "{name}\n  {}, {backend}, driver {driver}", class(adapter.class))?;
        match Device::open(&Select::Name(name.clone()), limits()) {
            Err(error) => writeln!(out, "  cannot be used: {error}")?,
            Ok(device) => print(&mut out, &device, args)?,
        }
    }
    Ok(())
}

fn print(out: &mut impl Write, device: &Device, args: &Args) -> Result<()> {
    let (features, limits) = device.describe();
    let caps = device.caps();
    let features = if features.is_empty() { "none".to_string() } else { features.join(", ") };
    writeln!(out, "  features: {features}")?;
    let (binding, buffer) = (model::Size(caps.max_binding_bytes), model::Size(caps.max_buffer_bytes));
    writeln!(
        out,
        "  largest binding {binding}, largest buffer {buffer}, {} threads per workgroup",
        caps.max_workgroup
    )?;
    if let Some(memory) = device.memory() {
        let (total, free) = (model::Size(memory.total_bytes), model::Size(memory.available_bytes));
        writeln!(out, "  memory {total}, of which {free} can be allocated")?;
    }
    match measured(args, device) {
        None => {}
        Some(Err(error)) => writeln!(out, "  cannot be measured: {error}")?,
        Some(Ok((
            Measured { read_gb_per_s, matrix_tflop_per_s, cooperative_tflop_per_s, dispatch_us, transfer },
            crossover,
        ))) => {
            let Transfer { write_gb_per_s: to, read_gb_per_s: from, round_trip_us } = transfer;
            writeln!(out, "  reads {read_gb_per_s:.1} GB/s, multiplies matrices at {matrix_tflop_per_s:.3} TFLOP/s")?;
            if let Some(rate) = cooperative_tflop_per_s {
                writeln!(out, "  multiplies f16 matrices through tensor cores at up to {rate:.1} TFLOP/s")?;
            }
            writeln!(out, "  takes {dispatch_us:.1} us for a dispatch, {round_trip_us:.1} us for a round trip")?;
            writeln!(out, "  {}", worth(crossover.elements()))?;
            writeln!(out, "  copies {to:.2} GB/s from the host, {from:.2} GB/s to the host")?;
        }
    }
    writeln!(out, "  chooses kernels by {}", if cache::table(device).is_some() { MEASURED } else { USUAL })?;
    if args.limits {
        for (name, value) in pairs(&limits) {
            writeln!(out, "  {name}: {value}")?;
        }
    }
    Ok(())
}

/// The table by which kernels are chosen.
const MEASURED: &str = "the table that weft tune measured here";
const USUAL: &str = "the defaults of its class (run weft tune to measure this device)";

fn adapter_json(args: &Args, adapter: &AdapterSummary) -> Value {
    let mut object = json!({
        "name": adapter.name, "class": kind(adapter.class), "backend": adapter.backend, "driver": adapter.driver,
    });
    match Device::open(&Select::Name(adapter.name.clone()), limits()) {
        Err(error) => object["error"] = json!(error.to_string()),
        Ok(device) => {
            let (features, limits) = device.describe();
            match measured(args, &device) {
                None => {}
                Some(Err(error)) => object["error"] = json!(error.to_string()),
                Some(Ok((m, crossover))) => {
                    object["measured"] = json!({
                        "read_gb_per_second": m.read_gb_per_s,
                        "matrix_tflop_per_second": m.matrix_tflop_per_s,
                        "cooperative_tflop_per_second": m.cooperative_tflop_per_s,
                        "dispatch_us": m.dispatch_us,
                        "host_to_device_gb_per_second": m.transfer.write_gb_per_s,
                        "device_to_host_gb_per_second": m.transfer.read_gb_per_s,
                        "round_trip_us": m.transfer.round_trip_us,
                        "gpu_min_size": Some(crossover.elements()).filter(|n| *n < usize::MAX),
                    });
                }
            }
            let tuned = cache::table(&device);
            object["table"] = tune::numbers(tuned.unwrap_or(device.caps().table));
            object["tuned"] = json!(tuned.is_some());
            object["features"] = json!(features);
            object["memory_bytes"] = json!(device.memory().map(|m| m.total_bytes));
            object["available_bytes"] = json!(device.memory().map(|m| m.available_bytes));
            object["limits"] = Value::Object(
                pairs(&limits).map(|(name, value)| (name.to_string(), number(value))).collect::<Map<_, _>>(),
            );
        }
    }
    object
}

fn worth(elements: usize) -> String {
    match elements {
        usize::MAX => {
            "single operations on host data: slower than the CPU, so run them there (models: use --device auto)"
                .to_string()
        }
        n => format!("single operations on host data: faster than the CPU from {n} elements on, transfers included"),
    }
}

/// Measures and saves the rates of a device, except with `--no-measure`.
fn measured(args: &Args, device: &Device) -> Option<Result<(Measured, Crossover), kernels::Error>> {
    let _bar = Bar::count(format!("measuring {}", device.adapter().name));
    (!args.no_measure).then(|| {
        let (measured, crossover) = (measure(device)?, Crossover::measure(device)?);
        cache::keep_rates(device, &Rates::of(&measured, crossover));
        Ok((measured, crossover))
    })
}

/// Splits the `name: value,` lines of a printed struct.
fn pairs(limits: &str) -> impl Iterator<Item = (&str, &str)> {
    limits.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "))
}

fn number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), |n| json!(n))
}

/// The name of a class in JSON.
pub fn kind(class: Class) -> &'static str {
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
