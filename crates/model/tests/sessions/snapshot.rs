//! Snapshots: a loaded session continues like the saved one, and invalid bytes are refused.

use crate::common::{self, Tiny, both, drawn, exact, gpu, greedy, ids, run};
use crate::lora::Lora;
use gguf::GgmlType;
use kernels::Executor;
use kernels::testing::kernel::random::Gen;
use model::{Applied, Error, GenerateOptions, KvType, Model, Sampling, Session, SessionOptions, SnapshotError};
use sha2::{Digest, Sha256};

fn varied(tokens: usize) -> GenerateOptions {
    let sampling = Sampling { temperature: 1.0, repetition_penalty: 1.2, seed: 9, ..Sampling::default() };
    greedy(tokens).sampling(sampling)
}

fn saved(session: &Session) -> Vec<u8> {
    let mut bytes = vec![];
    session.save(&mut bytes).unwrap();
    bytes
}

/// A session with fed tokens, an answer, and some fed tokens that are not evaluated.
fn talked(model: &Model, options: SessionOptions) -> Session {
    let mut session = model.session(options).unwrap();
    session.feed(&ids(30, 1)).unwrap();
    run(&mut session, varied(10));
    session.feed(&ids(3, 2)).unwrap();
    session.set_note("a note");
    session
}

#[test]
fn a_loaded_session_goes_on_as_the_saved_one_does_on_both_executors_and_across_them() {
    for kv in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let options = || exact(16).kv(kv);
        for from in both() {
            let model = Tiny::qwen3().on(&from);
            let mut session = talked(&model, options());
            let bytes = saved(&session);
            let (tokens, evaluated) = (session.tokens().to_vec(), session.evaluated());
            let rest = drawn(&run(&mut session, varied(12)));
            for to in both() {
                let model = Tiny::qwen3().on(&to);
                // The loading session has another chunk size and earlier content.
                let mut loaded = model.session(options().chunk(5)).unwrap();
                loaded.feed(&ids(50, 7)).unwrap();
                run(&mut loaded, greedy(2));
                let mut input = &bytes[..];
                loaded.load(&mut input).unwrap();
                let way = format!("{kv:?} from {} to {}", from.kind(), to.kind());
                assert!(input.is_empty(), "{way}");
                assert_eq!(
                    (loaded.tokens(), loaded.evaluated(), loaded.note()),
                    (&tokens[..], evaluated, &b"a note"[..]),
                    "{way}"
                );
                assert_eq!(loaded.sampling(), Some(&varied(0).sampling));
                assert_eq!(saved(&loaded), bytes, "{way}: saved again");
                assert_eq!(drawn(&run(&mut loaded, varied(12))), rest, "{way}");
            }
        }
    }
}

#[test]
fn a_cache_grows_to_what_was_saved() {
    let (model, options) = (Tiny::narrow().on(&gpu()), || exact(256).context(4000));
    let mut session = model.session(options()).unwrap();
    session.feed(&ids(1500, 1)).unwrap();
    session.prefill(None).unwrap();
    let bytes = saved(&session);
    let mut small = model.session(options()).unwrap();
    let before = small.state_bytes();
    small.load(&mut &bytes[..]).unwrap();
    assert!(small.state_bytes() > before && small.evaluated() == 1500);
    assert_eq!(drawn(&run(&mut small, greedy(6))), drawn(&run(&mut session, greedy(6))));
}

/// Loads bytes that must be refused, and checks that nothing changed.
fn refused(session: &mut Session, bytes: &[u8]) -> Error {
    let before = saved(session);
    let error = session.load(&mut &bytes[..]).expect_err("refused");
    assert_eq!(saved(session), before, "{error}");
    error
}

#[test]
fn what_is_cut_short_altered_foreign_or_newer_is_refused_and_changes_nothing() {
    let tiny = Tiny::qwen3();
    for executor in both() {
        let model = tiny.on(&executor);
        let bytes = saved(&talked(&model, exact(16)));
        let mut session = model.session(exact(16)).unwrap();
        session.feed(&ids(9, 4)).unwrap();
        run(&mut session, greedy(3));
        for len in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
            let error = refused(&mut session, &bytes[..len]);
            assert!(matches!(error, Error::Snapshot(SnapshotError::Truncated { .. })), "{len} bytes: {error}");
        }
        for at in (0..bytes.len()).step_by(101).chain([bytes.len() - 1]) {
            let mut altered = bytes.clone();
            altered[at] ^= 0x10;
            let error = refused(&mut session, &altered);
            assert!(matches!(error, Error::Snapshot(_)), "byte {at}: {error}");
        }
        let mut newer = bytes.clone();
        newer[8] = 3;
        assert!(matches!(
            refused(&mut session, &newer),
            Error::Snapshot(SnapshotError::Version { found: 3, known: 2 })
        ));
        for foreign in [&[b'x'; 200][..], b"hi"] {
            assert!(matches!(refused(&mut session, foreign), Error::Snapshot(SnapshotError::Magic)));
        }
        let other = |tiny: Tiny| saved(&talked(&tiny.on(&executor), exact(16)));
        let foreign = refused(&mut session, &other(Tiny { seed: 5, ..tiny.clone() }));
        assert!(matches!(foreign, Error::Snapshot(SnapshotError::Model)), "{foreign}");
        let foreign = refused(&mut session, &other(Tiny::qwen2()));
        assert!(matches!(foreign, Error::Snapshot(SnapshotError::Architecture { expected: "qwen3", .. })), "{foreign}");
        let wide = saved(&talked(&model, exact(16).kv(KvType::Q8_0)));
        let error = refused(&mut session, &wide);
        assert!(error.to_string().contains("KV type q8_0"), "{error}");
        let mut short = model.session(exact(16).context(42)).unwrap();
        assert!(matches!(refused(&mut short, &bytes), Error::ContextOverflow { needed: 43, limit: 42 }));
        session.load(&mut &bytes[..]).unwrap();
    }
}

/// A header and the following bytes, with valid checksums.
fn sealed(header: &[u8], rows: &[u8]) -> Vec<u8> {
    let mut bytes = [&b"weft-kv\n"[..], &2_u32.to_le_bytes(), &(header.len() as u32).to_le_bytes(), header].concat();
    bytes.extend_from_slice(&Sha256::digest(&bytes));
    bytes.extend_from_slice(rows);
    bytes.extend_from_slice(&Sha256::digest(&bytes));
    bytes
}

/// The fuzz body: for any bytes, a session loads them completely or stays unchanged, and can
/// continue.
fn load_any(session: &mut Session, bytes: &[u8]) -> bool {
    let before = (session.tokens().to_vec(), session.evaluated());
    let loaded = session.load(&mut &bytes[..]).is_ok();
    if loaded {
        assert!(session.evaluated() <= session.tokens().len() && session.tokens().len() <= session.context());
    } else {
        assert_eq!((session.tokens(), session.evaluated()), (&before.0[..], before.1));
    }
    loaded
}

#[test]
fn mutated_snapshots_with_good_checksums_never_break_a_session() {
    let model = Tiny { context: 64, ..Tiny::qwen3() }.on(&Executor::Cpu);
    let bytes = saved(&talked(&model, exact(16)));
    let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let (header, rows) = (&bytes[16..16 + header], &bytes[48 + header..bytes.len() - 32]);
    assert_eq!(sealed(header, rows), bytes, "the format is the one that this test knows");
    let mut session = model.session(exact(16)).unwrap();
    let (mut g, mut taken) = (Gen::new(99), 0);
    for round in 0..common::rounds(4000) {
        let (mut header, mut rows) = (header.to_vec(), rows.to_vec());
        for _ in 0..g.pick(&[1, 1, 2, 8]) {
            let at = g.bits() as usize % header.len();
            match g.pick(&[0, 1, 2, 3]) {
                0 => header[at] ^= 1 << (g.bits() % 8),
                1 => header[at] = g.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                2 => header.truncate(at + 1),
                _ => drop(header.splice(at..at, g.bits().to_le_bytes())),
            }
        }
        let len = rows.len();
        match g.pick(&[0, 0, 1, 2]) {
            0 => {}
            1 => rows.truncate(g.bits() as usize % len),
            _ => rows[g.bits() as usize % len] ^= 0x80,
        }
        taken += u32::from(load_any(&mut session, &sealed(&header, &rows)));
        if round % 500 == 0 {
            session.load(&mut &bytes[..]).unwrap();
            assert_eq!(run(&mut session, greedy(2)).len(), 2);
        }
    }
    assert!(taken > 0, "the mutations reach past the checks");
}

#[test]
fn a_header_that_announces_more_than_there_is_takes_no_memory() {
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let mut session = model.session(exact(16)).unwrap();
    let with = |size: u32| [&b"weft-kv\n"[..], &2_u32.to_le_bytes(), &size.to_le_bytes(), &[0; 100]].concat();
    assert!(matches!(
        refused(&mut session, &with(u32::MAX)),
        Error::Snapshot(SnapshotError::Size { part: "header", .. })
    ));
    assert!(matches!(
        refused(&mut session, &with(1 << 20)),
        Error::Snapshot(SnapshotError::Truncated { needed: 1_048_576, found: 100, .. })
    ));
}

#[test]
fn a_session_under_adapters_is_restored_under_the_same_and_no_others() {
    let tiny = Tiny::qwen3();
    for executor in both() {
        let model = tiny.on(&executor);
        let [a, b] = [1, 2].map(|seed| Lora::whole(&tiny, 4, seed));
        let load =
            |lora: &Lora, scale: f32| Applied { adapter: model.adapter(&lora.peft(GgmlType::F32, "")).unwrap(), scale };
        let under = |adapters: Vec<Applied>| {
            let mut session = model.session(exact(16)).unwrap();
            session.set_adapters(adapters).unwrap();
            session
        };
        let mut session = under(vec![load(&a, 0.5), load(&b, 1.0), load(&b, 0.0)]);
        session.feed(&ids(30, 1)).unwrap();
        run(&mut session, varied(10));
        let bytes = saved(&session);
        // The same factors in the other form, without the adapters of scale 0.
        let other = model.adapter(&a.gguf("qwen3", GgmlType::F32)).unwrap();
        let mut loaded = under(vec![Applied { adapter: other, scale: 0.5 }, load(&b, 1.0)]);
        loaded.load(&mut &bytes[..]).unwrap();
        assert_eq!(loaded.evaluated(), session.evaluated());
        assert_eq!(drawn(&run(&mut loaded, varied(8))), drawn(&run(&mut session, varied(8))), "{}", executor.kind());
        let others =
            [vec![], vec![load(&a, 0.5)], vec![load(&b, 1.0), load(&a, 0.5)], vec![load(&a, 0.25), load(&b, 1.0)]];
        for adapters in others {
            let error = refused(&mut under(adapters), &bytes);
            assert!(
                matches!(error, Error::Snapshot(SnapshotError::Adapters { .. }))
                    && error.to_string().contains("same order"),
                "{error}"
            );
        }
        let changed = Lora { over: [&b.over[..13], &a.over[13..]].concat(), ..b.clone() };
        let error = refused(&mut under(vec![load(&a, 0.5), load(&changed, 1.0)]), &bytes).to_string();
        assert!(error.contains("of other contents"), "{error}");
        let plain = saved(&talked(&model, exact(16)));
        assert!(refused(&mut under(vec![load(&a, 1.0)]), &plain).to_string().contains("no adapters"));
    }
}

#[test]
fn a_fork_goes_on_alone() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut session = talked(&model, exact(16));
        let mut fork = session.fork().unwrap();
        assert_eq!(
            (fork.tokens(), fork.evaluated(), fork.note()),
            (session.tokens(), session.evaluated(), session.note())
        );
        fork.feed(&ids(20, 8)).unwrap();
        let forked = drawn(&run(&mut fork, varied(10)));
        let rest = drawn(&run(&mut session, varied(10)));
        let mut again = talked(&model, exact(16));
        assert_eq!(drawn(&run(&mut again, varied(10))), rest, "{}: the fork took nothing", executor.kind());
        let mut again = talked(&model, exact(16));
        again.feed(&ids(20, 8)).unwrap();
        assert_eq!(drawn(&run(&mut again, varied(10))), forked, "{}", executor.kind());
    }
}
