//! Positions near the end of a context of 131,072. A snapshot fills the cache, so only the last
//! rows are computed.

use crate::common::{Tiny, drawn, exact, gpu, greedy, ids, run, webgpu, worst};
use kernels::Executor;
use kernels::testing::kernel::random::Gen;
use model::{Error, Model, Session};
use sha2::{Digest, Sha256};

const CONTEXT: u32 = 131_072;
/// Positions whose keys and values come from the snapshot.
const FILLED: u32 = CONTEXT - 18;
/// The largest difference between sums in f32 and in f64 over this many keys.
const BOUND: f32 = 5e-5;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// A snapshot of the model with pseudo-random keys and values at `FILLED` positions.
fn filled(model: &Model) -> Vec<u8> {
    let mut short = vec![];
    model.session(exact(16).context(CONTEXT)).unwrap().save(&mut short).unwrap();
    let (header, caches) = (&short[16..16 + word(&short, 12) as usize], &model.summary().caches);
    // Architecture, digest, no adapters, cache type and caches stay. Then come the position, the
    // number of dropped tokens and the number of tokens.
    let at = 4 + word(header, 0) as usize + 32 + 4 + 4 + 4 + 8 * caches.len();
    assert_eq!([0, 4, 8].map(|field| word(header, at + field)), [0; 3], "an empty session");
    let numbers = |all: &[u32]| all.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let tokens = ids(FILLED as usize, 1);
    let header = [&header[..at], &numbers(&[FILLED, 0, FILLED]), &numbers(&tokens), &header[at + 12..]].concat();
    let mut bytes = [&short[..12], &(header.len() as u32).to_le_bytes(), &header].concat();
    bytes.extend_from_slice(&Sha256::digest(&bytes));
    let mut g = Gen::new(7);
    for cache in caches {
        let rows = cache.window.map_or(FILLED, |window| window.min(FILLED));
        (0..2 * rows * cache.width).for_each(|_| bytes.extend_from_slice(&g.unit().to_le_bytes()));
    }
    bytes.extend_from_slice(&Sha256::digest(&bytes));
    bytes
}

/// The logits of 10 more tokens in a chunk, and of 4 one by one.
fn go_on(session: &mut Session, bytes: &[u8]) -> Vec<f32> {
    let mut all = vec![];
    session.load(&mut &bytes[..]).unwrap();
    let mut fed = |session: &mut Session, ids: &[u32]| {
        session.feed(ids).unwrap();
        session.logits(|_, rows, _| all.extend_from_slice(rows)).unwrap();
    };
    fed(session, &ids(10, 2));
    ids(4, 3).iter().for_each(|&id| fed(session, &[id]));
    all
}

#[test]
fn the_last_positions_of_131072_are_the_same_on_both_executors_and_the_next_is_refused() {
    for tiny in [Tiny::narrow(), Tiny::gemma3(), Tiny::gemma4_short()].map(|tiny| tiny.narrowed(CONTEXT)) {
        let cpu = tiny.on(&Executor::Cpu);
        let bytes = filled(&cpu);
        let expected = go_on(&mut cpu.session(exact(16).context(CONTEXT)).unwrap(), &bytes);
        for executor in [gpu(), webgpu()] {
            let mut session = tiny.on(&executor).session(exact(16).context(CONTEXT)).unwrap();
            let apart = worst(&expected, &go_on(&mut session, &bytes));
            assert!(apart <= BOUND, "{} on {}: {apart:e}", tiny.architecture, executor.name());
            assert_eq!(drawn(&run(&mut session, greedy(50))).len(), 4, "up to the last position");
            assert_eq!(session.tokens().len(), CONTEXT as usize);
            let error = session.feed(&[1]).unwrap_err();
            assert!(matches!(error, Error::ContextOverflow { needed: 131_073, limit: 131_072 }), "{error}");
        }
    }
}
