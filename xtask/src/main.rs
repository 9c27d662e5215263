//! Checks and recipes of the workspace.

mod browser;
mod compiled;
mod contracts;
mod curve;
mod dist;
mod dump;
mod faults;
mod files;
mod golden;
mod lanes;
mod map;
mod mutate;
mod npm;
mod npy;
mod packages;
mod peers;
mod planted;
mod races;
mod records;
mod registers;
mod shaders;
mod tidy;
mod turns;
mod verify;
mod web;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Checks and recipes of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Validate every composed shader, then compare each with its oracle on a GPU
    VerifyShaders(verify::Args),
    /// Write every composed kernel and its SPIR-V, to compare two commits
    Shaders(dump::Args),
    /// Check file layout, dependencies and the other rules of this project
    Tidy {
        /// Add a field to `Attend` in a copy, and check that the compiler names every place that
        /// must handle the field; this takes a minute
        #[arg(long)]
        fields: bool,
        /// Write the names that each kernel needs and gives into the head of its file
        #[arg(long, conflicts_with = "fields")]
        heads: bool,
    },
    /// Write docs/contracts.md from the kernels
    Contracts {
        /// Write nothing; fail if the file is not up to date
        #[arg(long)]
        check: bool,
    },
    /// Write docs/kernels.md, the table of which kernels run when, from plans
    Map {
        /// Write nothing; fail if the file is not up to date
        #[arg(long)]
        check: bool,
    },
    /// Package the crates, and run the examples of each README with the package of its crate alone
    Packages,
    Dist(dist::Args),
    Web(web::Args),
    /// Compare training with torch, PEFT, TRL and llama.cpp, by tests/peers/run.py
    Peers(peers::Args),
    /// Time `weft bench` of two binaries alternately and compare the medians
    Turns(turns::Args),
    /// Measure the speed of models over lengths of prompts, depths and batches, beside a peer
    Curve(curve::Args),
    /// Compile every kernel for an AMD card that need not be there, and print its registers
    Registers(registers::Args),
    /// Compare the results of small models with the results of other implementations
    Golden(golden::Args),
    DoctorFaults(planted::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    let holds = match Args::parse().command {
        Command::VerifyShaders(args) => verify::run(&args)?,
        Command::Shaders(args) => dump::run(&args).map(|()| true)?,
        Command::Tidy { heads: true, .. } => tidy::heads::run()?,
        Command::Tidy { fields: false, .. } => tidy::run()?,
        Command::Tidy { fields: true, .. } => tidy::fields::run()?,
        Command::Contracts { check } => contracts::run(check)?,
        Command::Map { check } => map::run(check)?,
        Command::Packages => packages::run().map(|()| true)?,
        Command::Dist(args) => dist::run(&args).map(|()| true)?,
        Command::Web(args) => web::run(&args).map(|()| true)?,
        Command::Peers(args) => peers::run(&args)?,
        Command::Turns(args) => turns::run(&args)?,
        Command::Curve(args) => curve::run(&args).map(|()| true)?,
        Command::Registers(args) => registers::run(&args)?,
        Command::Golden(args) => golden::run(&args).map(|()| true)?,
        Command::DoctorFaults(args) => planted::run(&args)?,
    };
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
