//! Every operation of a session's steps on a GPU, compared with the host.

use crate::common::{Tiny, gpu, ids, open};
use kernels::{Agreement, Class, Executor, Mirror, Precision, Table};
use model::{KvType, Model, SessionOptions};
use std::collections::HashSet;
use std::sync::Arc;

fn mirror(host: &Model) -> Mirror {
    Mirror::new(Arc::clone(host.weights()))
}

/// A prompt in two chunks, and a step of one row.
fn steps(model: &Model, mirror: &mut Mirror, options: SessionOptions) -> Vec<Agreement> {
    let mut session = model.session(options.chunk(20)).unwrap();
    session.feed(&ids(33, 5)).unwrap();
    let mut all = session.agree(mirror, None).unwrap();
    session.feed(&ids(1, 6)).unwrap();
    all.extend(session.agree(mirror, None).unwrap());
    all
}

#[test]
fn every_operation_of_a_session_and_of_a_batch_agrees() {
    let fast = (Precision::Fast, KvType::F16);
    let several = vec![fast, (Precision::F32, KvType::F32), (Precision::Fast, KvType::Q8_0)];
    for (tiny, modes) in
        [(Tiny::qwen3().mixed(), several), (Tiny::gemma4(), vec![fast]), (Tiny::qwen3moe(), vec![fast])]
    {
        let (model, host) = (tiny.on(&gpu()), tiny.on(&Executor::Cpu));
        for (precision, kv) in modes {
            let options = SessionOptions::default().context(64).precision(precision).kv(kv);
            let mut all = steps(&model, &mut mirror(&host), options.clone());
            let mut batch = model.batch(options.sequences(3)).unwrap();
            (0..3).for_each(|n| batch.feed(n, &ids(2 + n as usize, u64::from(n))).unwrap());
            all.extend((0..2).flat_map(|_| batch.agree(&mut mirror(&host)).unwrap()));
            assert!(all.len() > 50, "{} operations", all.len());
            all.iter().for_each(|of| assert!(of.holds(), "{precision:?}, {kv:?}: {of:?}"));
        }
    }
}

/// Plans of a card without cooperative matrices. The table of a software driver chooses other
/// kernels, and a session has only two plans there.
#[test]
fn every_operation_of_the_plans_of_a_card_agrees() {
    let Executor::Gpu(device) = gpu() else { unreachable!() };
    let card = Executor::from(&device.with_table(Table::usual(Class::Discrete, false)));
    let experts = Tiny { feed_forward: 768, ..Tiny::qwen3moe().mixed() };
    let mut ran = HashSet::new();
    for (tiny, prompts) in [(Tiny::qwen3().mixed(), vec![70, 6]), (Tiny::gemma4(), vec![70]), (experts, vec![70])] {
        let (model, host) = (tiny.on(&card), tiny.on(&Executor::Cpu));
        let options = SessionOptions::default().context(256).chunk(128).precision(Precision::Fast).least_rows(2);
        let mut session = model.session(options).unwrap();
        for rows in prompts {
            session.reset();
            session.feed(&ids(rows, 4)).unwrap();
            for of in session.agree(&mut mirror(&host).once(), None).unwrap() {
                assert!(of.holds(), "{} of {rows} rows: {of:?}", tiny.architecture);
                ran.extend(of.kernels);
            }
        }
    }
    assert!(ran.iter().any(|kernel| kernel.starts_with("matmul_rows8_")), "{ran:?}");
}

#[test]
fn the_first_operation_that_does_not_agree_is_the_one_with_the_other_weight() {
    let tiny = Tiny::qwen3();
    let model = tiny.on(&gpu());
    for (named, layer) in [("blk.1.attn_q.weight", 1), ("blk.0.ffn_down.weight", 0)] {
        let other = tiny.edited(tiny.metadata(), |name, spec| {
            if name == named {
                spec.values.iter_mut().for_each(|value| *value *= 1.01);
            }
            true
        });
        let host = open(&other).unwrap().on(&Executor::Cpu).unwrap();
        let all = steps(&model, &mut mirror(&host), SessionOptions::default().context(64));
        let first = all.iter().find(|of| !of.holds()).expect("a weight differs by a hundredth");
        assert_eq!(first.layer, Some(layer), "{named}: {first:?}");
    }
}

#[test]
fn an_operation_is_compared_once_if_asked_and_the_tokens_stay() {
    let tiny = Tiny::qwen3();
    let (model, host) = (tiny.on(&gpu()), tiny.on(&Executor::Cpu));
    let options = SessionOptions::default().context(64);
    let (all, some) =
        (steps(&model, &mut mirror(&host), options.clone()), steps(&model, &mut mirror(&host).once(), options.clone()));
    assert!(2 * some.len() < all.len() && some.iter().all(Agreement::holds), "{} of {}", some.len(), all.len());

    // The compared steps leave the states as other steps do.
    let mut compared = model.session(options.clone()).unwrap();
    compared.feed(&ids(9, 1)).unwrap();
    compared.agree(&mut mirror(&host), None).unwrap();
    assert_eq!((compared.tokens().len(), compared.evaluated()), (9, 9));
    let mut usual = model.session(options).unwrap();
    usual.feed(&ids(9, 1)).unwrap();
    usual.prefill(None).unwrap();
    let next = |session: &mut model::Session| {
        session.feed(&ids(1, 2)).unwrap();
        let mut logits = vec![];
        session.logits(|_, rows, _| logits.extend_from_slice(rows)).unwrap();
        logits
    };
    assert_eq!(next(&mut compared), next(&mut usual));
}
