//! Scans a row of logits with many workgroups, for the workgroup that draws from it. The lowering
//! of [`Sample`] makes it.

use super::sample::Sample;
use crate::kernel::dispatch::{Dispatch, Grid};

kernel! {
    SAMPLE_SCAN: "sample_scan",
    wgsl: ["sampling/sample_scan.wgsl", "shared/grid.wgsl", "shared/order.wgsl"],
    params: Params { vocab: u32, rows: u32, per_thread: u32 },
    bindings: Bind { logits: Read, raw: Read, out_rows: Read, positions: Read, sequences: Read, strips: Write },
    cpu: cpu_ref::sample,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 6144 },
}

/// Threads of a workgroup, and threads that make a strip: `WG` and `LANES` in the shaders.
const WG: u32 = 256;

const LANES: u32 = 32;

/// Vocabulary size from which a thread reads twice as much. One workgroup can then read all strips.
const LARGE: u32 = 1 << 13;

/// Ids that one thread reads (a multiple of 4), and strips of a row.
pub(crate) fn strips(vocab: u32) -> (u32, u32) {
    let per_thread = if vocab > LARGE { 8 } else { 4 };
    (per_thread, vocab.div_ceil(WG * per_thread) * (WG / LANES))
}

/// The first id of the strip of an id, in a row of `vocab` ids.
#[cfg(feature = "testing")]
pub(crate) fn first_of_strip(vocab: u32, id: u32) -> u32 {
    let slice = WG * strips(vocab).0;
    id / slice * slice + id % WG / LANES * LANES
}

/// The first of the two dispatches of a draw.
pub(crate) fn dispatch(of: &Sample) -> Dispatch {
    let shape = of.logits.shape;
    let (per_thread, strips) = strips(shape.width());
    let bind = Bind {
        logits: of.logits.into(),
        raw: of.raw.into(),
        out_rows: of.out_rows.into(),
        positions: of.positions.into(),
        sequences: of.sequences.into(),
        strips: of.strips.into(),
    };
    let slices = Grid::PerRow { lead: shape, per_row: strips * LANES / WG };
    bind.dispatch(Params { vocab: shape.width(), rows: shape.rows, per_thread }, slices)
}
