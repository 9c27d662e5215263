//! Batches over epochs, and going on in the middle of one.

use crate::common::{data, options, qwen2};
use proptest::prelude::*;
use train::{Batches, Data, Document, Position};

/// `len` examples that all differ.
fn examples(len: u32) -> Data {
    let lines: String = (0..len).map(|n| format!("{{\"ids\": [{}, {}]}}\n", n / 200, n % 200)).collect();
    data("facts.jsonl", lines.as_bytes(), qwen2(), &options()).expect("good lines")
}

fn batches(data: &Data, size: u32, seed: Option<u64>) -> Batches {
    let batches = Batches::new(data.clone(), size, seed.unwrap_or(0));
    if seed.is_none() { batches.in_order() } else { batches }
}

fn next(batches: &mut Batches, count: u32) -> Vec<Vec<Document>> {
    (0..count).map(|_| batches.next().expect("a batch")).collect()
}

proptest! {
    #[test]
    fn what_goes_on_has_the_batches_of_what_never_stopped(
        len in 1..40u32,
        size in 1..9u32,
        seed: Option<u64>,
        before in 0..20u32,
        whole: bool,
    ) {
        let data = examples(len);
        let data = if whole || len < 2 { data } else { data.split(0.25, 7).expect("examples").0 };
        let mut first = batches(&data, size, seed);
        next(&mut first, before);
        let place = first.position().to_string();
        let mut second = batches(&data, size, seed);
        next(&mut second, 3);
        second.seek(place.parse().expect("a position")).expect("a place between batches");
        prop_assert_eq!(second.facts(), first.facts());
        prop_assert_eq!(next(&mut second, 12), next(&mut first, 12));
    }

    #[test]
    fn an_epoch_has_every_example_once(len in 1..60u32, size in 1..9u32, seed: Option<u64>) {
        let data = examples(len);
        let mut batches = batches(&data, size, seed);
        prop_assert_eq!(batches.per_epoch(), u64::from(len.div_ceil(size)));
        for epoch in 0..2 {
            prop_assert_eq!(batches.position(), Position { epoch, example: 0 });
            let per_epoch = batches.per_epoch() as u32;
            let all = next(&mut batches, per_epoch);
            prop_assert!(all[..all.len() - 1].iter().all(|batch| batch.len() == size as usize));
            let mut found: Vec<_> = all.concat().into_iter().map(|document| document.ids).collect();
            if seed.is_some() {
                found.sort_unstable();
            }
            prop_assert_eq!(found, (0..len).map(|n| vec![n / 200, n % 200]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn epochs_have_different_orders() {
    let data = examples(50);
    let mut batches = batches(&data, 50, Some(1));
    let [first, second] = &next(&mut batches, 2)[..] else { panic!("two epochs") };
    assert_ne!(first, second);
    let mut other = Batches::new(data, 50, 2);
    assert_ne!(&other.next().expect("a batch"), first);
}

#[test]
fn places_that_batches_do_not_have_are_refused() {
    let mut batches = batches(&examples(10), 4, None);
    let mut refused = |epoch, example| batches.seek(Position { epoch, example }).expect_err("refused").to_string();
    assert_eq!(refused(1, 10), "no batch begins at \"epoch 1, example 10\": an epoch has fewer examples");
    assert_eq!(refused(1, 6), "no batch begins at \"epoch 1, example 6\": batches have another size");
    let refused = |text: &str| text.parse::<Position>().expect_err("no position").to_string();
    for text in ["", "epoch 1", "epoch 1, example -1", "epoch 1, example 2 ", "1 2"] {
        assert_eq!(refused(text), format!("no batch begins at {text:?}: it is no text like \"epoch 2, example 48\""));
    }
    assert_eq!("epoch 3, example 8".parse::<Position>().expect("a position"), Position { epoch: 3, example: 8 });
}
