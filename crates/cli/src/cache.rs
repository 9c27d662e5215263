//! The user's cache folder: compiled pipelines, measured rates and tables of thresholds. Each has
//! one file per adapter, driver and version.

use crate::exit::{debug, note};
use anyhow::Result;
use kernels::choose::Rates;
use kernels::{Device, Table};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The environment variable that names the folder, instead of the system's cache folder.
const FOLDER: &str = "WEFT_CACHE_DIR";

static OFF: AtomicBool = AtomicBool::new(false);
/// Whether the measured table is ignored and the table of the device class is used.
static USUAL: AtomicBool = AtomicBool::new(false);
/// Opened devices with the files of their pipelines.
static ATTACHED: Mutex<Vec<(Device, PathBuf)>> = Mutex::new(vec![]);

/// From this call on, the cache is neither read nor written.
pub fn switch_off() {
    OFF.store(true, Ordering::Relaxed);
}

/// From this call on, tables that `weft tune` measured are ignored.
pub fn choose_as_usual() {
    USUAL.store(true, Ordering::Relaxed);
}

/// The cache folder, which [`try_write`] creates. `None` if the cache is switched off or the system
/// has no cache folder.
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = |rest: &str| variable("HOME").map(|home| home.join(rest));
    let system = || match () {
        () if cfg!(windows) => variable("LOCALAPPDATA").map(|local| local.join("weft").join("cache")),
        () if cfg!(target_os = "macos") => home("Library/Caches/weft"),
        () => variable("XDG_CACHE_HOME").or_else(|| home(".cache")).map(|caches| caches.join("weft")),
    };
    if OFF.load(Ordering::Relaxed) { None } else { variable(FOLDER).or_else(system) }
}

/// Gives a device its saved pipelines and its measured table. [`save`] will write the pipelines
/// that this run adds.
pub fn attach(device: &Device) -> Device {
    attach_pipelines(device);
    table(device).map_or_else(|| device.clone(), |table| device.with_table(table))
}

fn attach_pipelines(device: &Device) {
    let Some(folder) = folder() else { return };
    let path = folder.join(format!("pipelines-{}.bin", device.key_name()));
    let saved = read(&path);
    if !device.restore_pipelines(saved.as_deref()) && saved.is_some() {
        debug(&format!("{} is damaged or of another driver; it will be replaced", path.display()));
    }
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    attached.retain(|(device, _)| !device.is_lost());
    attached.push((device.clone(), path));
}

/// Saves new pipelines of all devices. A failure is ignored: it only makes the next start slower.
pub fn save() {
    for (device, path) in std::mem::take(&mut *ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)) {
        if let Some(bytes) = device.saved_pipelines() {
            write(&path, &bytes);
        }
    }
}

fn rates_file(device: &Device) -> Option<PathBuf> {
    Some(folder()?.join(format!("rates-{}.txt", device.key_name())))
}

/// The rates that `weft devices` measured of this device, if there are any.
pub fn rates(device: &Device) -> Option<Rates> {
    let path = rates_file(device)?;
    let rates = Rates::from_bytes(&device.key(), &read(&path)?);
    if rates.is_none() {
        debug(&format!("{} is damaged or of another driver; weft devices will replace it", path.display()));
    }
    rates
}

/// Stores measured rates for the next `--device auto`.
pub fn keep_rates(device: &Device, rates: &Rates) {
    if let Some(path) = rates_file(device) {
        write(&path, &rates.to_bytes(&device.key()));
    }
}

/// The file of a device's table.
pub fn table_file(device: &Device) -> Option<PathBuf> {
    Some(folder()?.join(format!("table-{}.txt", device.table_name())))
}

/// The table that `weft tune` measured of this device, if there is one and it is not ignored.
pub fn table(device: &Device) -> Option<Table> {
    let path = table_file(device).filter(|_| !USUAL.load(Ordering::Relaxed))?;
    let table = Table::from_bytes(&device.table_key(), &read(&path)?);
    if table.is_none() {
        note(&format!("{} is damaged and ignored; run weft tune to write it again", path.display()));
    }
    table
}

/// Reads a file of the cache. `None` if it does not exist or cannot be read.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let error = match std::fs::read(path) {
        Ok(bytes) => return Some(bytes),
        Err(error) => error,
    };
    if error.kind() != ErrorKind::NotFound {
        debug(&format!("cannot read {}: {error}", path.display()));
    }
    None
}

/// Writes a file of the cache, completely or not at all; returns whether this succeeded.
pub fn write(path: &Path, bytes: &[u8]) -> bool {
    let written = try_write(path, bytes);
    if let Err(error) = &written {
        debug(&format!("cannot keep {}: {error}", path.display()));
    }
    written.is_ok()
}

/// Writes a file completely or not at all. It returns the error, for writes that the user asked
/// for.
pub fn try_write(path: &Path, bytes: &[u8]) -> Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    Ok(gguf::atomic_write(path, |out| out.write_all(bytes))?)
}
