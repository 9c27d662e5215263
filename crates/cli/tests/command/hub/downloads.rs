//! Downloads that are cut, that lie, and that two programs want.

use super::server::{Answer, content};
use super::{MODEL, World};
use std::time::Duration;

const PULL: [&str; 2] = ["pull", "hf:me/M-GGUF"];

#[test]
fn a_download_that_is_cut_at_any_byte_goes_on_there() {
    let last = MODEL.len() - 1;
    for at in [0, 1, 7, 4096, MODEL.len() / 2, last] {
        let world = World::one();
        world.server.plan(move |request, before| {
            let is_first = request.path.starts_with("/content/") && before == 0;
            is_first.then(|| Answer { cut: Some(at), ..content(&MODEL, request) })
        });
        world.good(&PULL);
        assert_eq!(std::fs::read(world.blob(&MODEL)).unwrap(), *MODEL, "cut at {at}");
        let ranges: Vec<_> = world.server.asked("/content/").into_iter().map(|request| request.range).collect();
        let second = (at > 0).then(|| format!("bytes={at}-"));
        assert_eq!(ranges, [None, second], "cut at {at}");
    }
}

#[test]
fn what_an_ended_program_left_is_used_and_what_is_wrong_in_it_is_mended() {
    let half = MODEL.len() / 2;
    let mut wrong = MODEL[..half].to_vec();
    wrong[3] ^= 1;
    let (right, longer) = (MODEL[..half].to_vec(), [&MODEL[..], b"more"].concat());
    for (left, requests) in [(right, 1), (wrong, 2), (longer, 1), (MODEL.to_vec(), 0)] {
        let world = World::one();
        std::fs::create_dir_all(world.repo("blobs")).unwrap();
        std::fs::write(world.partial(&MODEL), left).unwrap();
        world.good(&PULL);
        assert_eq!(std::fs::read(world.blob(&MODEL)).unwrap(), *MODEL);
        assert_eq!(world.server.asked("/content/").len(), requests);
    }
}

#[test]
fn a_server_without_ranges_starts_anew() {
    for status in [200, 206, 416] {
        let world = World::one();
        world.server.plan(move |request, before| {
            let whole = match (request.path.starts_with("/content/"), before) {
                (true, 0) => Answer { cut: Some(1000), ..Answer::new(200, &MODEL[..]) },
                // 206 with another range than the one that was asked for.
                (true, 1) if status == 206 => {
                    Answer::new(206, &MODEL[..]).with("Content-Range", &format!("bytes 0-9/{}", MODEL.len()))
                }
                (true, 1) if status == 416 => Answer::new(416, ""),
                (true, _) => Answer::new(200, &MODEL[..]),
                _ => return None,
            };
            Some(whole)
        });
        world.good(&PULL);
        assert_eq!(std::fs::read(world.blob(&MODEL)).unwrap(), *MODEL, "status {status}");
    }
}

#[test]
fn content_with_another_hash_or_length_is_refused() {
    let mut other = MODEL.to_vec();
    other[100] ^= 1;
    let short = content_of(&MODEL[..10]);
    let long = content_of(&[&MODEL[..], b"x"].concat());
    let mut endless = long.clone();
    endless.headers.clear();
    for (answer, error) in [
        (content_of(&other), "arrived with the SHA-256"),
        (short, "sends another number"),
        (long, "sends another number"),
        (endless, "sends another number"),
    ] {
        let world = World::one();
        world.server.plan(move |request, _| request.path.starts_with("/content/").then(|| answer.clone()));
        let run = world.run(&PULL);
        assert!(run.code == 1 && run.err.contains(error), "{}", run.err);
        assert!(!world.blob(&MODEL).exists() && !world.repo("snapshots").exists() && !world.repo("refs").exists());
        world.server.plan(|_, _| None);
        world.good(&PULL);
    }
}

fn content_of(bytes: &[u8]) -> Answer {
    Answer::new(200, bytes)
}

#[test]
fn a_full_disk_is_seen_before_the_download() {
    let world = World::one();
    let run = world.with(&PULL, &[("WEFT_HUB_TEST", "free=1000")]);
    let line = run.failed(1);
    assert!(line.contains("the download needs ") && line.contains("1.0 kB free"), "{line}");
    assert!(world.server.asked("/content/").is_empty());
    let needed = MODEL.len().to_string();
    assert_eq!(world.with(&PULL, &[("WEFT_HUB_TEST", &format!("free={needed}"))]).code, 0);
}

#[test]
fn a_connection_that_falls_silent_is_cut_and_the_download_goes_on() {
    let world = World::one();
    world.server.plan(|request, before| {
        let stall = Duration::from_secs(60);
        (request.path.starts_with("/content/") && before == 0).then(|| Answer { stall, ..content(&MODEL, request) })
    });
    let run = world.with(&PULL, &[("WEFT_HUB_TEST", "pause_ms=1,silence_ms=200")]);
    assert_eq!(run.code, 0, "{}", run.err);
    let half = Some(format!("bytes={}-", MODEL.len() / 2));
    assert_eq!(world.server.asked("/content/")[1].range, half);
}

#[test]
fn lengths_beyond_any_disk_are_refused_and_add_up_to_no_panic() {
    let world = World::one();
    let part = |n: u8| {
        let lfs = serde_json::json!({ "sha256": n.to_string().repeat(64), "size": u64::MAX });
        serde_json::json!({ "rfilename": format!("M-Q8_0-0000{n}-of-00002.gguf"), "lfs": lfs })
    };
    let listing = serde_json::json!({ "sha": "1".repeat(40), "siblings": [part(1), part(2)] }).to_string();
    world.server.plan(move |request, _| request.path.contains("/api/").then(|| Answer::new(200, listing.clone())));
    assert!(world.run(&PULL).failed(1).contains("the download needs "));
}

#[test]
fn a_model_runs_whatever_becomes_of_its_projector() {
    let world = World::new(&[("M-Q8_0.gguf", &MODEL), ("mmproj-M-F16.gguf", b"eyes")]);
    world.server.plan(|request, _| request.path.ends_with("mmproj-M-F16.gguf").then(|| Answer::new(403, "")));
    assert_eq!(world.run(&PULL).code, 1);
    world.run(&["inspect", "hf:me/M-GGUF"]).good();
}

#[test]
fn of_two_programs_one_downloads_and_the_other_waits() {
    let world = World::one();
    world.server.plan(|request, _| {
        let stall = Duration::from_millis(800);
        request.path.starts_with("/content/").then(|| Answer { stall, ..content(&MODEL, request) })
    });
    let start = || {
        let mut command = world.command(&PULL);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let runs = [start(), start()].map(|child| child.wait_with_output().unwrap());
    assert!(runs.iter().all(|run| run.status.success()), "{runs:?}");
    assert_eq!(world.server.asked("/content/").len(), 1);
    let said = runs.iter().filter(|run| String::from_utf8_lossy(&run.stderr).contains("another program downloads"));
    assert_eq!(said.count(), 1, "{runs:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_stalled_download_at_once_and_keeps_what_is_here() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let world = World::one();
    world.server.plan(|request, before| {
        let is_first = request.path.starts_with("/content/") && before == 0;
        is_first.then(|| Answer { stall: Duration::from_secs(60), ..content(&MODEL, request) })
    });
    let mut child = world.command(&PULL).spawn().unwrap();
    let half = MODEL.len() as u64 / 2;
    let length = || std::fs::metadata(world.partial(&MODEL)).map_or(0, |metadata| metadata.len());
    let began = std::time::Instant::now();
    while length() < half && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let began = std::time::Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(5) && length() == half);
    world.good(&PULL);
    assert_eq!(world.server.asked("/content/")[1].range, Some(format!("bytes={half}-")));
}
