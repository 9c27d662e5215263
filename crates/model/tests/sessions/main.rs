//! Models from files and stores, with sessions, batches, adapters and snapshots, on both executors.

mod adapters;
mod adapters_hostile;
mod agree;
mod base;
mod batch;
mod executors;
mod far;
mod forms;
mod interrupted;
mod long;
mod long_windows;
mod lost;
mod nonfinite;
mod ollama;
mod ollama_files;
mod planted;
mod prepared;
mod references;
mod remote;
mod rings;
mod session;
mod shift;
mod snapshot;
mod stops;
mod waiting;
mod walk;
mod widths;

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/lora.rs"]
mod lora;
#[path = "../common/nf4.rs"]
mod nf4;
