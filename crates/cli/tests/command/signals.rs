//! Signals while something runs.

use crate::tiny::{self, Model};
use crate::weft;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Sends Ctrl-C and waits for the end; returns the exit code and the time it took.
fn interrupt(child: &mut Child) -> (Option<i32>, Duration) {
    end(child, Signal::SIGINT)
}

/// Sends the signal and waits for the end; returns the exit code and the time it took.
fn end(child: &mut Child, signal: Signal) -> (Option<i32>, Duration) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), began.elapsed());
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{signal} does not end it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_ends_an_answer_and_the_program_with_130() {
    let model = Model::new(&tiny::builder(0.5));
    let words = ["run", model.path(), "--device", "cpu", "--raw", "-p", "ab", "--ctx", "200000", "--temp", "0"];
    let mut child = weft(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first byte of the answer shows that generation runs.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let mut rest = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || rest.read_to_end(&mut vec![]));
    let (code, took) = interrupt(&mut child);
    assert_eq!(code, Some(130));
    assert!(took < Duration::from_secs(1), "{took:?}");
    reader.join().unwrap().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err, "");
}

#[test]
fn a_signal_while_logits_are_written_leaves_no_file() {
    let model = Model::new(&tiny::builder(0.5));
    let ids = model.beside("ids.json");
    std::fs::write(&ids, serde_json::to_string(&vec![1; 50_000]).unwrap()).unwrap();
    let out = model.beside("out.npy");
    let words = ["logits", model.path(), "--device", "cpu", "--tokens", &format!("@{ids}"), "-o", &out];
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let mut child = weft(&words).spawn().unwrap();
        let files = || std::fs::read_dir(model.folder.path()).unwrap().count();
        let began = Instant::now();
        while files() < 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "the file was never begun");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(end(&mut child, signal).0, Some(code));
        assert_eq!(files(), 2, "the model and the ids");
    }
}

#[test]
fn ctrl_c_ends_the_tuning_and_tells_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = weft(&["tune", "--device", "gpu", "--seconds", "600", "--json"]);
    let mut child =
        command.env("WEFT_CACHE_DIR", folder.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(interrupt(&mut child).0, Some(130));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["whole"] == false && json["measured"].as_array().unwrap().len() == kernels::THRESHOLDS.len(), "{out}");
}

#[test]
fn ctrl_c_ends_a_benchmark() {
    let model = Model::new(&tiny::builder(0.5));
    let words = ["bench", model.path(), "--device", "cpu", "-p", "0", "-n", "100000", "--json"];
    let mut child = weft(&words).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(interrupt(&mut child).0, Some(130));
}
