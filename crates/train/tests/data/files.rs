//! Files: random access, several files, texts, splits, digests.

use crate::common::{data, gemma3, options, qwen2, shown, stream};
use gguf::Source;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::RefCell;
use train::{Data, DataOptions, Document, Texts};

/// All documents, by random access from the last example to the first.
fn backwards(data: &Data) -> Vec<Document> {
    let mut all: Vec<Vec<Document>> = (0..data.len()).rev().map(|n| data.documents(n).expect("read")).collect();
    all.reverse();
    all.concat()
}

fn several(files: &[(&str, &[u8])], texts: Texts, options: &DataOptions) -> Data {
    let files =
        files.iter().map(|(name, bytes)| (name.to_string(), Box::new(bytes.to_vec()) as Box<dyn Source>)).collect();
    Data::new(files, texts, options, &|_| ()).expect("good files")
}

#[test]
fn files_follow_each_other_and_blank_lines_do_not_count() {
    let texts = qwen2();
    let files: [(&str, &[u8]); 4] = [
        ("a.jsonl", b"\xef\xbb\xbf{\"text\": \"a\"}\r\n\r\n  \n{\"text\": \"b\"}"),
        ("empty.jsonl", b""),
        ("unnamed", b"\n {\"text\": \"c\"}\n"),
        ("text.txt", b"some text"),
    ];
    let data = several(&files, texts.clone(), &options());
    let found: Vec<String> = backwards(&data).iter().map(|document| shown(document, &texts)).collect();
    assert_eq!(found, ["a⟦<|im_end|>⟧", "b⟦<|im_end|>⟧", "c⟦<|im_end|>⟧", "s⟦ome text<|im_end|>⟧"]);
}

#[test]
fn files_are_read_from_disk_with_progress() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("facts.jsonl");
    std::fs::write(&path, "{\"text\": \"ab\"}\n".repeat(10_000)).expect("written");
    let seen = RefCell::new(vec![]);
    let data = Data::open(std::slice::from_ref(&path), qwen2(), &options(), &|progress| {
        seen.borrow_mut().push((progress.done, progress.total));
    });
    assert_eq!(data.expect("a good file").len(), 10_000);
    let seen = seen.into_inner();
    assert!(seen.len() > 1 && seen.windows(2).all(|two| two[0].0 <= two[1].0), "{seen:?}");
    assert_eq!(seen.last(), Some(&(150_000, 150_000)));
    let missing = folder.path().join("no.jsonl");
    let error =
        Data::open(std::slice::from_ref(&missing), qwen2(), &options(), &|_| ()).map(|_| ()).expect_err("no file");
    assert!(error.to_string().starts_with(&format!("{}: ", missing.display())), "{error}");
}

#[test]
fn a_file_that_changes_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("facts.jsonl");
    std::fs::write(&path, "{\"text\": \"ab\"}\n".repeat(3)).expect("written");
    let data = Data::open(std::slice::from_ref(&path), qwen2(), &options(), &|_| ()).expect("a good file");
    std::fs::write(&path, "{\"text\": \"ab\"}\n{\"text\": \"ab\"]\n{\"text\": \"ab\"}\n").expect("written");
    let error = data.documents(1).expect_err("another line").to_string();
    assert_eq!(error, format!("{}: the file has changed since it was checked", path.display()));
    assert_eq!(data.documents(0).expect("as before").len(), 1);
    std::fs::write(&path, "{\"text\": \"ab\"}\n").expect("written");
    let error = data.documents(2).expect_err("a shorter file").to_string();
    assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
}

#[test]
fn the_digest_and_the_facts_tell_data_apart() {
    let of = |files: &[(&str, &[u8])], texts: Texts, options: &DataOptions| several(files, texts, options).facts();
    let base = of(&[("a", b"one two")], qwen2(), &options());
    for (what, other) in [
        ("bytes", of(&[("a", b"one twu")], qwen2(), &options())),
        ("files", of(&[("a", b"one"), ("b", b" two")], qwen2(), &options())),
        ("length", of(&[("a", b"one two")], qwen2(), &options().length(5))),
        ("template", of(&[("a", b"one two")], qwen2().raw(), &options())),
    ] {
        assert_ne!(base, other, "{what}");
    }
    assert_eq!(base, of(&[("another name", b"one two")], qwen2(), &options()));
    let data = several(&[("a.jsonl", "{\"text\": \"ab\"}\n".repeat(9).as_bytes())], qwen2(), &options());
    let (training, validation) = data.split(0.3, 1).expect("nine examples");
    assert_eq!((training.len(), validation.len()), (6, 3));
    assert!(training.facts() != validation.facts() && training.facts() != data.facts());
}

#[test]
fn shares_that_cannot_be_are_refused() {
    let of =
        |lines: usize| several(&[("a.jsonl", "{\"text\": \"ab\"}\n".repeat(lines).as_bytes())], qwen2(), &options());
    let refused = |lines: usize, share: f64| of(lines).split(share, 0).map(|_| ()).expect_err("refused").to_string();
    assert_eq!(refused(9, 0.6), "9 examples cannot give a share of 0.6 for validation: it is above 0 and at most 0.5");
    assert_eq!(
        refused(9, f64::NAN),
        "9 examples cannot give a share of NaN for validation: it is above 0 and at most 0.5"
    );
    assert_eq!(refused(1, 0.5), "1 examples cannot give a share of 0.5 for validation: two examples are needed");
    let (training, _) = of(9).split(0.01, 0).expect("at least one");
    assert_eq!(training.len(), 8);
    let again = training.split(0.1, 0).map(|_| ()).expect_err("refused").to_string();
    assert_eq!(again, "8 examples cannot give a share of 0.1 for validation: they are a share already");
}

#[test]
fn bytes_that_are_no_text_are_told_and_skipped() {
    let bytes = b"good\nbad \xff line\nalso good";
    let error = data("a.txt", bytes, qwen2(), &options()).map(|_| ()).expect_err("no text").to_string();
    assert_eq!(error, "a.txt, line 2: not UTF-8");
    let texts = qwen2();
    let skipped = data("a.txt", bytes, texts.clone(), &options().skip_bad(true)).expect("text too");
    let found: Vec<String> = backwards(&skipped).iter().map(|document| shown(document, &texts)).collect();
    assert_eq!(found, ["g⟦ood\nbad ⟧", "a⟦lso good<|im_end|>⟧"]);
    assert_eq!(skipped.counts().bad, 1);
}

#[test]
fn a_text_is_cut_at_lines() {
    let texts = gemma3();
    let data = data("a.txt", b"one two three\nfour five\nsix", texts.clone(), &options().length(20)).expect("a text");
    let found: Vec<String> = backwards(&data).iter().map(|document| shown(document, &texts)).collect();
    assert_eq!(found, ["<bos>⟦one two three\n⟧", "<bos>⟦four five\nsix<end_of_turn>⟧"]);
}

proptest! {
    #[test]
    fn a_text_is_cut_into_documents_without_loss(parts in vec("[a-zé世\u{301} ]{0,12}\n{0,3}", 0..60), length in 1..40u32) {
        let (text, texts) = (parts.concat(), gemma3());
        let options = options().length(length);
        let mut stream = stream("a.txt", text.as_bytes(), texts.clone(), &options);
        let documents = stream.next(u32::MAX).expect("a text");
        prop_assert!(documents.iter().all(|document| document.ids.len() <= length as usize));
        // A character of several bytes does not fit into one token.
        if length >= 8 {
            let tokenizer = texts.tokenizer();
            let texts: Vec<String> = documents.iter().map(|document| {
                let ids: Vec<u32> = document.targets.iter().copied().filter(|id| !tokenizer.is_end(*id)).collect();
                tokenizer.decode(&ids)
            }).collect();
            // A mark may be cut off from its letter.
            let whole = texts.concat();
            prop_assert_eq!(tokenizer.normalize(&whole), tokenizer.normalize(&text));
            prop_assert_eq!(stream.counts().cut, 0);
        }
        if !documents.is_empty() {
            prop_assert_eq!(backwards(&data("a.txt", text.as_bytes(), texts, &options).expect("a text")), documents);
        }
    }

    #[test]
    fn an_index_gives_what_a_stream_gives(kinds in vec(0..5u8, 1..40), length in 3..9u32) {
        let line = |kind: &u8| ["", "bad", "{\"text\": \"ab\"}", "{\"text\": \"longer text\"}", "{\"ids\": [1, 2]}"][usize::from(*kind)];
        let lines = kinds.iter().map(line).collect::<Vec<_>>().join("\n");
        let options = options().length(length).longer(train::Longer::Drop).skip_bad(true);
        let mut stream = stream("a.jsonl", lines.as_bytes(), qwen2(), &options);
        let documents = stream.next(u32::MAX).expect("bad lines are skipped");
        match data("a.jsonl", lines.as_bytes(), qwen2(), &options) {
            Ok(data) => {
                prop_assert_eq!(backwards(&data), documents);
                prop_assert_eq!(data.counts(), stream.counts());
            }
            Err(_) => prop_assert!(documents.is_empty()),
        }
    }
}
