//! `weft logits`, `weft perplexity` and `weft bench`.

use crate::tiny::{self, Model};
use crate::{run, weft};

/// The shape and the values of a NumPy file: version 1.0, `<f4`, C order.
fn npy(bytes: &[u8]) -> (Vec<usize>, Vec<f32>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    assert!(
        end.is_multiple_of(64) && header.contains("'descr': '<f4'") && header.contains("'fortran_order': False"),
        "{header}"
    );
    let shape = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
    let shape = shape.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    (shape, bytes[end..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect())
}

#[test]
fn logits_are_an_array_of_tokens_by_vocabulary() {
    let model = Model::new(&tiny::builder(0.5));
    let out = model.beside("out.npy");
    let make = |words: &[&str]| {
        run(&[&["logits", model.path(), "--device", "cpu", "-o", &out], words].concat()).good();
        npy(&std::fs::read(&out).unwrap())
    };
    let (shape, whole) = make(&["--tokens", "1,2,3,256,0"]);
    assert_eq!((shape, whole.len()), (vec![5, tiny::VOCABULARY], 5 * tiny::VOCABULARY));
    assert!(whole.iter().all(|v| v.is_finite()) && whole.iter().any(|v| *v != whole[0]));
    assert_eq!(make(&["--tokens", "1,2,3,256,0", "--chunk", "2"]).1, whole);
    let list = model.beside("ids.json");
    std::fs::write(&list, "[1, 2,\n 3, 256, 0]").unwrap();
    assert_eq!(make(&["--tokens", &format!("@{list}")]).1, whole);
}

#[test]
fn logits_have_an_f32_cache_unless_a_flag_names_another() {
    let model = Model::new(&tiny::builder(0.5));
    let out = model.beside("out.npy");
    let [usual, f32, f16] = [&[][..], &["--kv", "f32"], &["--kv", "f16"]].map(|kv: &[&str]| {
        run(&[&["logits", model.path(), "--device", "cpu", "--tokens", "1,2,3,4", "-o", &out], kv].concat()).good();
        npy(&std::fs::read(&out).unwrap()).1
    });
    assert!(usual == f32 && usual != f16);
}

#[test]
fn logits_go_to_a_pipe_too() {
    let model = Model::new(&tiny::builder(0.5));
    let output = weft(&["logits", model.path(), "--device", "cpu", "--tokens", "7", "-o", "-"]).output().unwrap();
    assert_eq!(npy(&output.stdout).0, [1, tiny::VOCABULARY]);
}

#[test]
fn a_failure_leaves_no_file_behind() {
    let model = Model::new(&tiny::builder(f32::INFINITY));
    let out = model.beside("out.npy");
    std::fs::write(&out, "precious").unwrap();
    assert!(
        run(&["logits", model.path(), "--device", "cpu", "--tokens", "1,2", "-o", &out])
            .failed(1)
            .contains("not finite")
    );
    assert!(run(&["logits", model.path(), "--device", "cpu", "--tokens", "999", "-o", &out]).failed(1).contains("999"));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(model.folder.path()).unwrap().count(), 2, "the model and the old file");
    let folder = model.folder.path().to_str().unwrap();
    assert!(run(&["logits", model.path(), "--tokens", "1", "-o", folder]).failed(1).contains("directory"));
    assert!(run(&["logits", model.path(), "--tokens", "@no.json", "-o", &out]).failed(1).contains("no.json"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_one_line() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = weft(&["inspect"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("weft: cannot write to stdout: No space left"));
    let model = Model::new(&tiny::builder(0.5));
    // Symbolic links protect the devices: a failing test might replace the path that it is given.
    let (disk, saved) = (model.beside("disk"), model.beside("saved"));
    for link in [&disk, &saved] {
        std::os::unix::fs::symlink("/dev/full", link).unwrap();
    }
    let line = run(&["logits", model.path(), "--device", "cpu", "--tokens", "1,2", "-o", &disk]).failed(1);
    assert!(line.contains("disk") && line.contains("No space left"), "{line}");
    let full = run(&["run", model.path(), "--device", "cpu", "--raw", "-p", "ab", "-n", "2", "--save-session", &saved]);
    assert!(full.code == 1 && full.err.contains("saved") && full.err.contains("No space left"), "{}", full.err);
    assert_eq!(full.err.lines().count(), 1, "{}", full.err);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        weft(&["run", model.path(), "--device", "cpu", "--raw", "-p", "ab", "-n", "2"]).stdout(full).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().lines().count()), (Some(1), 1));
}

#[test]
fn a_model_without_preferences_is_perplexed_by_its_whole_vocabulary() {
    let model = Model::new(&tiny::builder(0.0));
    let text = model.beside("text.txt");
    std::fs::write(&text, "abcdefgh".repeat(12)).unwrap();
    let words = ["perplexity", model.path(), &text, "--device", "cpu", "--ctx", "32"];
    let json = run(&[&words[..], &["--json"]].concat()).json();
    // `ab` is one token, so 8 characters are 7 tokens.
    assert_eq!((json["tokens"].as_u64(), json["scored"].as_u64()), (Some(84), Some(83)));
    assert!((json["perplexity"].as_f64().unwrap() - tiny::VOCABULARY as f64).abs() < 1e-3, "{json}");
    let lines = run(&words).good();
    assert!(lines.lines().count() as u64 == json["windows"].as_u64().unwrap() + 1, "{lines}");
    assert!(lines.lines().last().unwrap().starts_with("perplexity 257.0"), "{lines}");
}

#[test]
fn perplexity_does_not_depend_on_where_the_model_came_from_or_on_empty_texts() {
    let model = Model::new(&tiny::builder(0.5));
    let text = model.beside("text.txt");
    std::fs::write(&text, "a").unwrap();
    assert!(run(&["perplexity", model.path(), &text]).failed(1).contains("at least 2"));
    std::fs::write(&text, b"\xff\xfe").unwrap();
    assert!(run(&["perplexity", model.path(), &text]).failed(1).contains("UTF-8"));
    assert!(run(&["perplexity", model.path(), &model.beside("none.txt")]).failed(1).contains("none.txt"));
}

#[test]
fn bench_reports_every_test_with_median_least_and_most() {
    let model = Model::new(&tiny::builder(0.5));
    let words = ["bench", model.path(), "--device", "cpu", "-p", "8", "-n", "4", "-d", "0,16", "-b", "1,3", "-r", "2"];
    let json = run(&[&words[..], &["--json"]].concat()).json();
    let tests: Vec<&str> = json.as_array().unwrap().iter().map(|t| t["test"].as_str().unwrap()).collect();
    assert_eq!(tests, ["pp8", "tg4", "pp8@d16", "tg4@d16", "tg4@b3", "tg4@d16@b3"]);
    for test in json.as_array().unwrap() {
        let [least, median, most] = ["least", "tokens_per_second", "most"].map(|name| test[name].as_f64().unwrap());
        assert!(0.0 < least && least <= median && median <= most, "{test}");
        assert!(test["model"].as_str().unwrap().starts_with("qwen3 "), "{test}");
        assert!(test["gb_per_second"].as_f64().unwrap() > 0.0 && test.get("roof_share").is_some(), "{test}");
        assert_eq!((test["executor"].as_str(), test["device"].as_str()), (Some("cpu"), Some("CPU")));
    }
    let table = run(&words).good();
    assert_eq!(table.lines().count(), 2 + tests.len());
    assert!(table.lines().skip(2).all(|line| line.contains(" (") && line.contains(" to ")), "{table}");
    assert!(table.lines().all(|line| line.starts_with('|') && line.ends_with('|')), "{table}");
}

#[test]
fn a_device_is_held_against_what_it_was_measured_to_reach() {
    let model = Model::new(&tiny::builder(0.5));
    let json = run(&["bench", model.path(), "--device", "gpu", "-p", "8", "-n", "4", "-r", "1", "--json"]).json();
    for test in json.as_array().unwrap() {
        assert_eq!((test["executor"].as_str(), test["least"].as_f64()), (Some("gpu"), test["most"].as_f64()));
        let share = test["roof_share"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.0, "{test}");
    }
}
