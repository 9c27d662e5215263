//! Runs that are killed, and runs that a signal ends.

use super::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

/// A run that is killed again and again, some of it while it saves, ends with the bits of one
/// that was not. `WEFT_ROUNDS` multiplies the number of kills.
#[test]
fn a_killed_run_ends_with_the_bits_of_one_that_was_not() {
    let rounds = std::env::var("WEFT_ROUNDS").map_or(1, |times| times.parse().expect("WEFT_ROUNDS is a number"));
    for (device, steps) in [("cpu", 60 * rounds), ("gpu", 12 * rounds)] {
        let steps = steps.to_string();
        let long = ["--steps", &steps, "--save-every", "1", "--dropout", "0.1"];
        let model = model();
        let [whole, killed] = ["whole", "killed"].map(|name| model.beside(name));
        let began = std::time::Instant::now();
        let first = run(&words(&model, &whole, device, &long));
        assert_eq!(first.code, 0, "{}", first.err);
        let took = began.elapsed();
        let (mut kills, mut state) = (0, 7u32);
        let part = took.div_f64(rounds.into());
        loop {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let more = [&long[..], &["--resume"]].concat();
            let mut child = weft(&words(&model, &killed, device, &more))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("weft");
            // The start of a process takes a part of the time; kills are spread over all of it.
            std::thread::sleep(part.mul_f64(f64::from(state >> 8) / f64::from(1 << 26)));
            if kills == 4 * rounds || child.try_wait().expect("a state").is_some() {
                assert!(child.wait().expect("an end").success());
                break;
            }
            kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("a process");
            child.wait().expect("an end");
            kills += 1;
        }
        assert!(kills >= 3 * rounds, "{device}: only {kills} kills before the run ended");
        for name in ["adapter_model.safetensors", "log.jsonl"] {
            assert!(bytes(&whole, name) == bytes(&killed, name), "{device}: {name} differs after {kills} kills");
        }
    }
}

/// Starts a run, and sends it the signals after its first step.
fn signalled(model: &Model, output: &str, more: &[&str], prefix: &str, signals: &[Signal]) -> Run {
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", &format!("{prefix} exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_weft")])
        .args(words(model, output, "cpu", more));
    let child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
    while !Path::new(output).join("log.jsonl").metadata().is_ok_and(|log| log.len() > 0) {
        std::thread::sleep(Duration::from_millis(2));
    }
    for signal in signals {
        kill(Pid::from_raw(child.id() as i32), *signal).expect("a process");
    }
    child.wait_with_output().expect("an end").into()
}

#[test]
fn every_signal_that_ends_a_program_saves_and_the_run_goes_on() {
    let model = model();
    let whole = model.beside("whole");
    let steps = ["--steps", "100", "--schedule", "constant"];
    train(&model, &whole, &steps).good();
    // A terminal that is closed may send its signal twice.
    let cases = [
        (&[Signal::SIGINT][..], 130),
        (&[Signal::SIGTERM], 143),
        (&[Signal::SIGHUP], 129),
        (&[Signal::SIGHUP, Signal::SIGHUP, Signal::SIGHUP], 129),
    ];
    for (n, (signals, code)) in cases.into_iter().enumerate() {
        let stopped = model.beside(&format!("stopped {n}"));
        let ended = signalled(&model, &stopped, &steps, "", signals);
        assert_eq!(ended.code, code, "{signals:?}: {}", ended.err);
        assert!(ended.err.contains("stopped after step ") && ended.err.contains("goes on\n"), "{}", ended.err);
        assert!(Path::new(&stopped).join("adapter.gguf").exists());
        let on = train(&model, &stopped, &[&steps[..], &["--resume"]].concat());
        assert_eq!(on.code, 0, "{}", on.err);
        assert!(
            bytes(&whole, "adapter_model.safetensors") == bytes(&stopped, "adapter_model.safetensors"),
            "{signals:?}"
        );
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let (model, steps) = (model(), ["--steps", "60"]);
    let output = model.beside("out");
    let ended = signalled(&model, &output, &steps, "trap '' HUP;", &[Signal::SIGHUP]);
    assert_eq!(ended.code, 0, "{}", ended.err);
}

/// Files that may not grow over 40 kB stand for a disk that is full.
#[test]
fn a_full_disk_loses_no_checkpoint() {
    let model = model();
    let [whole, full] = ["whole", "full"].map(|name| model.beside(name));
    let steps = ["--steps", "6", "--save-every", "1", "--keep", "9"];
    train(&model, &whole, &steps).good();
    train(&model, &full, &steps).good();
    for n in 3..7 {
        std::fs::remove_file(format!("{full}/checkpoint-{n:08}.safetensors")).expect("a checkpoint");
    }
    let resumed = words(&model, &full, "cpu", &[&steps[..], &["--resume"]].concat())
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 20; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_weft")])
        .args(&resumed)
        .process_group(0);
    let run = Run::from(shell.output().expect("a shell"));
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("the run goes on without this checkpoint"), "{}", run.err);
    assert!(Path::new(&full).join("checkpoint-00000002.safetensors").exists());
    let on = train(&model, &full, &[&steps[..], &["--resume"]].concat());
    assert_eq!(on.code, 0, "{}", on.err);
    assert!(bytes(&whole, "adapter_model.safetensors") == bytes(&full, "adapter_model.safetensors"));
}

#[test]
fn a_lost_device_is_opened_again() {
    let model = model();
    let [whole, lost] = ["whole", "lost"].map(|name| model.beside(name));
    let steps = ["--steps", "8", "--save-every", "2"];
    let first = run(&words(&model, &whole, "gpu", &steps));
    assert_eq!(first.code, 0, "{}", first.err);
    let run = Run::from(
        weft(&words(&model, &lost, "gpu", &steps)).env("WEFT_TEST_LOSE_AT_STEP", "9").output().expect("weft"),
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("the device is opened again"), "{}", run.err);
    assert!(bytes(&whole, "adapter_model.safetensors") == bytes(&lost, "adapter_model.safetensors"));
}
