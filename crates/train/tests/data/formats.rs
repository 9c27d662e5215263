//! Forms of files: lists of JSON, packed files, and those that are refused with a way out.

use crate::common::{data, options, qwen2, refused, shown, stream};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write;
use train::{Data, DataOptions};

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(vec![], Compression::best());
    out.write_all(bytes).expect("packed");
    out.finish().expect("packed")
}

/// The examples of a file as text, by random access from the last to the first, and as a stream.
fn both(name: &str, bytes: &[u8], options: &DataOptions) -> Vec<String> {
    let texts = qwen2();
    let data = data(name, bytes, texts.clone(), options).expect("a good file");
    let mut found: Vec<_> = (0..data.len()).rev().map(|n| data.documents(n).expect("read")).collect();
    found.reverse();
    let streamed = stream(name, bytes, texts.clone(), options).next(u32::MAX).expect("a good stream");
    assert_eq!(found.concat(), streamed);
    streamed.iter().map(|document| shown(document, &texts)).collect()
}

/// The reasons against a file and against a stream, which are the same.
fn against(name: &str, bytes: &[u8]) -> String {
    let by_index = data(name, bytes, qwen2(), &options()).map(|_| ()).expect_err("refused").to_string();
    let streamed = stream(name, bytes, qwen2(), &options()).next(u32::MAX).expect_err("refused").to_string();
    assert_eq!(by_index, streamed);
    by_index
}

const TWO: [&str; 2] = ["a⟦b<|im_end|>⟧", "c⟦d<|im_end|>⟧"];

#[test]
fn a_list_over_many_lines_is_found_by_its_first_byte() {
    let lists = [
        "[{\"text\": \"ab\"}, {\"text\": \"cd\"}]",
        "\n [\n  {\n    \"text\": \"ab\"\n  },\n\n  {\"text\":\n\"cd\"}\n]\n",
        "[{\"text\":\"ab\"},{\"text\":\"cd\"}]",
    ];
    for list in lists {
        for name in ["a.json", "a.jsonl", "a", "a.txt"] {
            assert_eq!(both(name, list.as_bytes(), &options()), TWO, "{name}: {list}");
        }
        assert_eq!(both("a.json", &[b"\xef\xbb\xbf", list.as_bytes()].concat(), &options()), TWO);
    }
    let tricky = r#"[{"text": "],{\"[\\", "x": [[], {"y": "}"}]}]"#;
    assert_eq!(both("a.json", tricky.as_bytes(), &options()), ["]⟦,{\"[\\<|im_end|>⟧"]);
    // A text may begin with a bracket.
    assert_eq!(both("song.txt", b"[1]", &options()), ["[⟦1]<|im_end|>⟧"]);
}

#[test]
fn a_bad_element_is_named_by_its_line() {
    let ends = "the list does not end: its last byte is no ]";
    for (list, line, reason) in [
        ("[\n{\"text\": \"ab\"},\n{\"text\": ab}]", 3, "no JSON: expected value at column 10"),
        ("[\n{\"text\": \"ab\"}\n,]", 3, "no JSON: EOF while parsing a value"),
        ("[\n{\"text\": \"ab\"}\n", 3, ends),
        ("[\n{\"text\": \"ab\"},\n", 3, ends),
        ("[\n", 2, ends),
        ("[\n{\"text\": \"ab\"}]\n[]", 3, "more text follows the end of the list"),
        ("[7]", 1, "7 is no object"),
    ] {
        assert_eq!(against("a.json", list.as_bytes()), format!("a.json, line {line}: {reason}"), "{list}");
    }
    let skipped = both("a.json", b"[{}, {\"text\": \"ab\"}, 7, {\"text\": \"cd\"}", &options().skip_bad(true));
    assert_eq!(skipped, TWO);
    let long = format!("[{{\"text\": \"{}\"}}, {{\"text\": \"ab\"}}, {{\"text\": \"cd\"}}]", "a".repeat(16 << 20));
    assert_eq!(against("a.json", long.as_bytes()), "a.json, line 1: the element has more than 16 MiB");
    assert_eq!(both("a.json", long.as_bytes(), &options().skip_bad(true)), TWO);
}

proptest! {
    #[test]
    fn a_list_is_what_its_elements_are_as_lines(texts in vec("[a-c\"\\\\\\[\\]{},\n]{1,8}", 1..20), blanks in vec("[ \n\t]{0,3}", 20)) {
        let objects: Vec<String> = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string()).collect();
        let list: String = objects.iter().zip(&blanks).map(|(object, blank)| format!("{blank}{object}{blank}")).collect::<Vec<_>>().join(",");
        prop_assert_eq!(both("a.json", format!("[{list}]").as_bytes(), &options()), both("a.jsonl", objects.join("\n").as_bytes(), &options()));
    }

    #[test]
    fn no_list_hangs_or_panics(bytes in "[\\[\\]{}\",a\\\\ \n]{0,40}") {
        let bytes = format!("[{bytes}");
        let mut streamed = stream("a.json", bytes.as_bytes(), qwen2(), &options().skip_bad(true));
        streamed.next(u32::MAX).expect("bad elements are skipped");
        match data("a.json", bytes.as_bytes(), qwen2(), &options().skip_bad(true)) {
            Ok(data) => prop_assert_eq!(data.counts(), streamed.counts()),
            Err(_) => prop_assert_eq!(streamed.counts().examples, 0),
        }
    }
}

#[test]
fn what_gzip_has_packed_is_read_as_what_it_holds() {
    let lines = "{\"text\": \"ab\"}\n{\"text\": \"cd\"}\n";
    for name in ["a.jsonl.gz", "a.gz", "a.jsonl"] {
        assert_eq!(both(name, &packed(lines.as_bytes()), &options()), TWO);
    }
    assert_eq!(both("a.json.gz", &packed(b"[{\"text\": \"ab\"}, {\"text\": \"cd\"}]"), &options()), TWO);
    // Several streams in one file, as `cat` makes them.
    let [first, second] = ["{\"text\": \"ab\"}\n", "{\"text\": \"cd\"}\n"].map(|line| packed(line.as_bytes()));
    assert_eq!(both("a.gz", &[first, second].concat(), &options()), TWO);
    let [plain, from_gzip] = [lines.as_bytes().to_vec(), packed(lines.as_bytes())]
        .map(|bytes| data("a", &bytes, qwen2(), &options()).expect("good"));
    assert_eq!(plain.digest(), from_gzip.digest());
}

#[test]
fn packed_files_that_are_damaged_are_told() {
    let good = packed("{\"text\": \"ab\"}\n".repeat(99).as_bytes());
    assert_eq!(against("a.gz", &good[..good.len() - 9]), "a.gz: the packed bytes end early");
    let mut damaged = good.clone();
    let end = damaged.len() - 5;
    damaged[end] ^= 1;
    assert!(against("a.gz", &damaged).starts_with("a.gz: the packed bytes are damaged: "));
    assert_eq!(against("a.gz", &packed(&good)), "a.gz: it is packed twice; unpack it once (gunzip)");
    let tar = against("a.tar.gz", &packed(&[&[b'a'; 257][..], b"ustar"].concat()));
    assert!(
        tar.starts_with("a.tar.gz: unpack it (gunzip); it is a tar archive; ") && tar.ends_with(": tar -xOf a.tar > a"),
        "{tar}"
    );
    assert!(
        against("a.csv.gz", &packed(b"q;r\n"))
            .starts_with("a.csv.gz: unpack it (gunzip); it is a table of comma-separated values; ")
    );
}

#[test]
fn a_few_bytes_that_unpack_to_very_many_are_refused() {
    let bomb = packed(&vec![b' '; 100 << 20]);
    let reason = "a.jsonl.gz: it unpacks to more than 256 times its size; unpack it yourself (gunzip) if it is good";
    assert!(bomb.len() < 1 << 20);
    assert_eq!(against("a.jsonl.gz", &bomb), reason);
}

#[test]
fn forms_that_are_not_read_are_refused_with_a_command() {
    for (name, bytes, begins, command) in [
        ("TRAIN.parquet", &b"PAR1\x15\x04"[..], "it is Parquet; ", "IN TRAIN.parquet TRAIN.jsonl"),
        ("data/train-00000", b"PAR1\x15\x04", "it is Parquet; ", "IN data/train-00000 data/train-00000.jsonl"),
        ("a.arrow", b"\xff\xff\xff\xff\x10\0\0\0", "it is Arrow; ", "IN a.arrow a.jsonl"),
        ("a.arrow", b"ARROW1\0\0", "it is Arrow; ", "IN a.arrow a.jsonl"),
        (
            "a b.csv",
            b"prompt,completion\na,b\n",
            "it is a table of comma-separated values; ",
            "IN 'a b.csv' 'a b.jsonl'",
        ),
        ("a.csv", b"q;r\n", "it is a table of comma-separated values; ", "IN a.csv a.jsonl"),
        (
            "table",
            b"\"instruction\",\"input\",\"output\"\n",
            "it is a table of comma-separated values; ",
            "IN table table.jsonl",
        ),
        ("a.TSV", b"prompt\tcompletion\n", "it is a table of tab-separated values; ", "IN a.TSV a.jsonl"),
        ("a.zip", b"PK\x03\x04\x14\0", "it is a zip archive; ", "unzip -p a.zip > a"),
        ("a.jsonl.zst", b"\x28\xb5\x2f\xfd\x04", "it is packed by zstd; ", "zstd -d a.jsonl.zst -o a.jsonl"),
        ("a.jsonl.xz", b"\xfd7zXZ\0\0", "it is packed by xz; ", "xz -dc a.jsonl.xz > a.jsonl"),
        ("a.jsonl.bz2", b"BZh91AY", "it is packed by bzip2; ", "bzip2 -dc a.jsonl.bz2 > a.jsonl"),
        ("a.jsonl", b"\xff\xfe{\0\"\0", "it is text in UTF-16; ", "IN a.jsonl a.utf8.jsonl"),
        ("a.txt", b"{\0\"\0a\0", "it is text in UTF-16-LE; ", "IN a.txt a.utf8.txt"),
        ("a.txt", b"\xfe\xff\0{", "it is text in UTF-16; ", "IN a.txt a.utf8.txt"),
    ] {
        let reason = against(name, bytes);
        assert!(reason.starts_with(&format!("{name}: {begins}this makes a file that can be read: ")), "{reason}");
        // The program itself is tested where it runs.
        assert!(reason.ends_with(command.trim_start_matches("IN")), "{reason}");
    }
    assert_eq!(against("a.jsonl", b"GGUF\x03\0\0\0"), "a.jsonl: it is a model (GGUF), not a file of examples");
    assert_eq!(
        against("a.bin", b"ab\0\0c"),
        "a.bin: it holds bytes of zero, so it is no text; give JSON lines or text in UTF-8"
    );
    let stdin = stream("stdin", b"PAR1", qwen2(), &options()).next(1).expect_err("refused").to_string();
    assert!(stdin.starts_with("stdin: it is Parquet; ") && stdin.ends_with(" FILE FILE.jsonl"), "{stdin}");
    // The bytes tell, whatever the name says.
    assert_eq!(both("a.csv", b"{\"text\": \"ab\"}\n{\"text\": \"cd\"}", &options()), TWO);
}

#[test]
fn files_without_bytes_pipes_and_folders_are_told() {
    assert_eq!(refused("", &qwen2(), &options()), "facts.jsonl: the file is empty");
    assert_eq!(refused(" \n\n", &qwen2(), &options()), "facts.jsonl: the file is empty");
    for (name, bytes) in [("a.txt", vec![]), ("a.gz", packed(b"")), ("a.json", b"[]".to_vec())] {
        let refused = data(name, &bytes, qwen2(), &options()).map(|_| ()).expect_err("refused").to_string();
        assert_eq!(refused, format!("{name}: the file is empty"));
        assert!(stream(name, &bytes, qwen2(), &options()).next(9).expect("nothing").is_empty());
    }
    let open = |path: &std::path::Path| {
        Data::open(&[path.to_path_buf()], qwen2(), &options(), &|_| ()).map(|_| ()).expect_err("refused").to_string()
    };
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(open(folder.path()), format!("{}: it is a folder; name the files in it", folder.path().display()));
    #[cfg(unix)]
    {
        use std::os::fd::AsRawFd;
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let reason = "it is a pipe or a device, but a file of examples is read many times; write it to a file, or read it as a stream";
        assert_eq!(open(&pipe), format!("{}: {reason}", pipe.display()));
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let number = format!("/dev/fd/{}", reader.as_raw_fd());
        assert_eq!(open(number.as_ref()), format!("{number}: {reason}"));
    }
}
