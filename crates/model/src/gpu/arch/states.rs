//! The states of a model: token ids and KV caches.

use super::{Cache, Summary};
use crate::options::{GPU_DEPTH, SessionOptions};
use cpu_ref::KvType;
use kernels::{KvState, Recorder, StateKind};

/// The length of a ring is a multiple of this: the keys of one tile of the attention kernel.
const RING_TILE: u32 = 128;

/// The states of a model: the token ids so far, then the keys and the values of each cache. A cache
/// with a window is a ring.
#[must_use]
pub fn states(summary: &Summary, options: &SessionOptions) -> Vec<StateKind> {
    let ring = |cache: &Cache| cache.window.map(|window| ring_rows(window, options));
    let kv = |cache: &Cache| [StateKind::Kv { ty: options.kv, width: cache.width, ring: ring(cache) }; 2];
    std::iter::once(StateKind::Tokens).chain(summary.caches.iter().flat_map(kv)).collect()
}

/// The states of a model in recordings of documents, which neither write nor read them.
pub(crate) fn document_states(summary: &Summary) -> Vec<StateKind> {
    states(summary, &SessionOptions { kv: KvType::F32, ..SessionOptions::default() })
}

/// The handles of the keys and values in [`states`], one pair per cache.
#[must_use]
pub fn kv_states(rec: &Recorder, caches: usize) -> Vec<KvState> {
    (0..caches).map(|l| KvState::new(rec.state(1 + 2 * l), rec.state(2 + 2 * l))).collect()
}

/// Positions that the ring of a window holds, in whole tiles. The ring has room for the window, the
/// rows of the largest step and the steps in flight. Rows that a step does not need are slack for
/// rollbacks.
fn ring_rows(window: u32, options: &SessionOptions) -> u32 {
    let ahead = options.most_rows().saturating_add(GPU_DEPTH as u32);
    window.saturating_add(ahead).checked_next_multiple_of(RING_TILE).unwrap_or(u32::MAX)
}
