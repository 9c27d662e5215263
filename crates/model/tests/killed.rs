//! A process that is killed while it saves a snapshot, compiled pipelines or a tuning table: each
//! file afterwards is the old one or the new one, whole, and loads.
//!
//! `WEFT_ROUNDS` multiplies the number of kills.
#![cfg(unix)]

mod common;

use common::{Tiny, exact, gpu, greedy, ids, rounds, run};
use gguf::atomic_write;
use kernels::testing::kernel::random::Gen;
use kernels::{Device, Executor, Table};
use model::{Model, Session};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names the folder in which a child saves.
const FOLDER: &str = "WEFT_TEST_KILLED";

const SNAPSHOT: &str = "talk.weft";
const PIPELINES: &str = "pipelines.bin";
const TABLE: &str = "table.txt";

/// The two contents that a child saves in turn are marked by these.
const SIDES: [&str; 2] = ["odd", "even"];

/// The session of one side: its tokens and its note.
fn session(model: &Model, side: usize) -> Session {
    let mut session = model.session(exact(64)).unwrap();
    session.feed(&ids(300 + 500 * side, side as u64)).unwrap();
    session.prefill(None).unwrap();
    session.set_note(SIDES[side]);
    session
}

/// What the child saves beside the snapshot is prepared by the parent, in files of these names.
fn source(folder: &Path, name: &str, side: usize) -> PathBuf {
    folder.join(format!("{}-{name}", SIDES[side]))
}

/// Writes the pipelines of a device with few and with more kernels, and two tables of it.
fn prepare(folder: &Path, device: &Device) {
    let keep = |name, side, bytes: &[u8]| std::fs::write(source(folder, name, side), bytes).unwrap();
    assert!(!device.restore_pipelines(None), "nothing is saved yet");
    for side in 0..2 {
        let tiny = [Tiny::qwen3(), Tiny::gemma3()][side].clone();
        let mut session = tiny.on(&Executor::from(device)).session(exact(16)).unwrap();
        session.feed(&ids(20, 1)).unwrap();
        run(&mut session, greedy(2));
        keep(PIPELINES, side, &device.saved_pipelines().expect("a device that keeps pipelines"));
        let table = Table { decode_keys: 64 << side, ..device.caps().table };
        keep(TABLE, side, &table.to_bytes(&device.table_key()));
    }
}

/// Saves all three files again and again, as `weft` does, until it is killed.
fn save_until_killed(folder: &Path) -> ! {
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let sessions = [0, 1].map(|side| session(&model, side));
    let sources =
        [PIPELINES, TABLE].map(|name| (name, [0, 1].map(|side| std::fs::read(source(folder, name, side)).unwrap())));
    println!("\nready");
    for side in [0, 1].into_iter().cycle() {
        let save = |out: &mut dyn std::io::Write| sessions[side].save(out).map_err(std::io::Error::other);
        atomic_write(folder.join(SNAPSHOT), save).unwrap();
        for (name, sides) in &sources {
            atomic_write(folder.join(name), |out| out.write_all(&sides[side])).unwrap();
        }
    }
    unreachable!("a cycle has no end")
}

fn start(folder: &Path) -> Child {
    let name = "a_killed_process_leaves_the_old_file_or_the_new_one";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(FOLDER, folder).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// The files of unfinished writes.
fn unfinished(folder: &Path) -> HashSet<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".tmp")).collect()
}

/// Checks every file: it loads, and is one of the two that the child saves.
fn check(folder: &Path, device: &Device, expected: &[Session; 2]) {
    let mut loaded = expected[0].model().session(exact(64)).unwrap();
    loaded.load(&mut std::fs::File::open(folder.join(SNAPSHOT)).unwrap()).unwrap();
    let side = SIDES.iter().position(|side| side.as_bytes() == loaded.note()).expect("a note of one side");
    assert_eq!((loaded.tokens(), loaded.evaluated()), (expected[side].tokens(), expected[side].evaluated()));
    for name in [PIPELINES, TABLE] {
        let found = std::fs::read(folder.join(name)).unwrap();
        assert!(
            (0..2).any(|side| std::fs::read(source(folder, name, side)).unwrap() == found),
            "{name}: {} bytes",
            found.len()
        );
        match name {
            TABLE => assert!(Table::from_bytes(&device.table_key(), &found).is_some(), "{name}"),
            _ => assert!(device.restore_pipelines(Some(&found)), "{name}"),
        }
    }
}

#[test]
fn a_killed_process_leaves_the_old_file_or_the_new_one() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        save_until_killed(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Executor::Gpu(device) = gpu() else { unreachable!("a GPU") };
    prepare(folder, &device);
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let expected = [0, 1].map(|side| session(&model, side));
    let (mut random, kills, mut within, mut left) = (Gen::new(7), rounds(24), 0, HashSet::new());
    // On a busy machine a child often waits between two writes, so more kills are needed.
    let mut kill = 0;
    while kill < kills || within <= kills / 4 {
        assert!(kill < 8 * kills, "only {within} of {kill} kills came while a file was written");
        let mut child = start(folder);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"), "the child ended");
        // The first child must have written every file once.
        let written = || [SNAPSHOT, PIPELINES, TABLE].iter().all(|name| folder.join(name).exists());
        while kill == 0 && !written() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random.bits() % 30_000));
        child.kill().unwrap();
        child.wait().unwrap();
        // The next writer of a file removes what a killed one left of it.
        let now = unfinished(folder);
        kill += 1;
        assert!(now.len() <= 3, "{now:?} after {kill} kills");
        within += u64::from(!now.is_subset(&left));
        left = now;
        check(folder, &device, &expected);
    }
    // One whole write of each file leaves nothing else.
    for name in [SNAPSHOT, PIPELINES, TABLE] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        atomic_write(folder.join(name), |out| out.write_all(&bytes)).unwrap();
    }
    assert_eq!(unfinished(folder), HashSet::new());
    println!("{kill} kills, {within} while a file was written, nothing lost");
}
