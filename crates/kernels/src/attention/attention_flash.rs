//! Attention of many rows through cooperative matrices (tensor cores).

use super::attention::{Attend, Attention, Cached};
use super::attention_merge::Form;
use super::attention_split::PART_WORDS;
use super::fused::{FlashParts, Problem, window};
use super::{attention_merge_parts, ladder};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::tensor::{Counts, Shape, Tensor};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower};
use cpu_ref::{FlashTiles, Mask};

kernel! {
    ATTENTION_FLASH: "attention_flash",
    wgsl: [
        "attention/attention_flash.wgsl", head, "attention/pieces/flash_bands.wgsl", "attention/pieces/flash_keys.wgsl",
        "attention/pieces/flash_scores.wgsl", keys
    ],
    params: Params {
        heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, scale: f32, softcap: f32
    },
    // With them 512 rows of heads of 128 after 16,384 keys take 6% less time.
    constants: [heads, kv_heads, causal, window, splits, scale, softcap],
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv(Read), v_state: Kv(Read), y: Write },
    cpu: cpu_ref::attention_flash,
    // The last bits of a score, which is computed in f32, may decide how its weight is rounded to
    // f16. All weights that are rounded the other way together differ by at most a step of 2^-10.
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 20240 },
    variants: {
        // The division of heads: queries of a workgroup and of a subgroup, columns of a subgroup,
        // and keys taken at a time. GAP: vectors between rows of scores; with two, neighbouring
        // threads use different banks, for which heads of 512 lack the memory. EARLY: whether
        // values are loaded a turn ahead, for which heads of 512 lack the registers.
        HEAD_64: "attention_flash_64" {
            head: vary { HEAD: 64, QUERIES: 64, BAND: 16, SLICE: 64, KEYS: 32, GAP: 2, EARLY: 1 },
            keys: choose ["attention/pieces/flash_whole.wgsl"],
        },
        HEAD_128: "attention_flash_128" needs { threads: 128, workgroup_bytes: 24336 } {
            head: vary { HEAD: 128, QUERIES: 64, BAND: 16, SLICE: 128, KEYS: 32, GAP: 2, EARLY: 1 },
            keys: choose ["attention/pieces/flash_whole.wgsl"],
        },
        HEAD_256: "attention_flash_256" needs { threads: 256, workgroup_bytes: 42768 } {
            head: vary { HEAD: 256, QUERIES: 64, BAND: 16, SLICE: 128, KEYS: 32, GAP: 2, EARLY: 1 },
            keys: choose ["attention/pieces/flash_whole.wgsl"],
        },
        // One step of f16 in a score moves one element of a row of 512 by 16.9 times the RMS that
        // the bound allows (64 cases).
        HEAD_512: "attention_flash_512" needs { threads: 256, workgroup_bytes: 40456 } peak 20.0 {
            head: vary { HEAD: 512, QUERIES: 64, BAND: 32, SLICE: 128, KEYS: 16, GAP: 1, EARLY: 0 },
            keys: choose ["attention/pieces/flash_whole.wgsl"],
        },
        // Heads of each length again, with several workgroups that each have a part of the keys.
        PARTS_64: "attention_flash_64_parts" {
            head: vary { HEAD: 64, QUERIES: 64, BAND: 16, SLICE: 64, KEYS: 32, GAP: 2, EARLY: 1 },
            keys: choose ["attention/pieces/flash_part.wgsl"],
        },
        PARTS_128: "attention_flash_128_parts" needs { threads: 128, workgroup_bytes: 24336 } {
            head: vary { HEAD: 128, QUERIES: 64, BAND: 16, SLICE: 128, KEYS: 32, GAP: 2, EARLY: 1 },
            keys: choose ["attention/pieces/flash_part.wgsl"],
        },
        PARTS_256: "attention_flash_256_parts" needs { threads: 256, workgroup_bytes: 42768 } {
            head: vary { HEAD: 256, QUERIES: 64, BAND: 16, SLICE: 128, KEYS: 32, GAP: 2, EARLY: 1 },
            keys: choose ["attention/pieces/flash_part.wgsl"],
        },
        PARTS_512: "attention_flash_512_parts" needs { threads: 256, workgroup_bytes: 40456 } {
            head: vary { HEAD: 512, QUERIES: 64, BAND: 32, SLICE: 128, KEYS: 16, GAP: 1, EARLY: 0 },
            keys: choose ["attention/pieces/flash_part.wgsl"],
        },
    },
}

/// The variant for heads of one length, with its constants.
pub(crate) struct Tile {
    pub head: u32,
    /// Queries of a workgroup: rows of the step times the heads that share a kv head.
    pub queries: u32,
    /// Keys taken at a time.
    pub keys: u32,
    pub variant: &'static Variant,
    /// The variant over parts of the keys.
    pub parts: &'static Variant,
}

pub(crate) static TILES: [Tile; 4] = [
    Tile { head: 64, queries: 64, keys: 32, variant: &HEAD_64, parts: &PARTS_64 },
    Tile { head: 128, queries: 64, keys: 32, variant: &HEAD_128, parts: &PARTS_128 },
    Tile { head: 256, queries: 64, keys: 32, variant: &HEAD_256, parts: &PARTS_256 },
    Tile { head: 512, queries: 64, keys: 16, variant: &HEAD_512, parts: &PARTS_512 },
];

/// The constant of the shader with this name: [`FlashTiles::raise`].
pub(crate) const RAISE: f64 = 10.0;

/// An attention that this kernel computes, as its oracle.
#[derive(Clone, Debug)]
pub struct AttentionFlash {
    pub of: Attention,
    /// Keys taken at a time.
    pub keys: u32,
    /// Context length below which rows are computed in f32, each by itself, as rows of separate
    /// sequences are at any length: see [`crate::attention::fused::AttentionByLength`].
    pub from: Option<u32>,
}

impl AttentionFlash {
    /// This attention, if the ladder gives it to this kernel.
    pub(crate) fn found(of: &Attention, cx: &Lower<'_>) -> Option<Self> {
        let dispatch = ladder::dispatch(Problem::Recorded(of), cx)?;
        let tile = TILES.iter().find(|tile| std::ptr::eq(tile.variant, dispatch.variant))?;
        Some(Self { of: of.clone(), keys: tile.keys, from: None })
    }
}

impl Operation for AttentionFlash {
    fn io(&self) -> Io {
        self.of.io()
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }
}

impl Reference for AttentionFlash {
    fn reference(&self, host: &mut Host<'_>) {
        if let (Some(from), Some(of)) = (self.from, self.of.cached())
            && !host.is_deep(from, of.positions, of.sequences)
        {
            return self.of.reference(host);
        }
        let tiles = |first| FlashTiles { first, keys: self.keys as usize, raise: RAISE };
        in_one_turn(self.of.by(host, cpu_ref::round_f16, |spec, first, q, k, v, visible, y| {
            cpu_ref::attention_flash(spec, tiles(first), q, k, v, visible, y);
        }));
    }
}

/// Smallest number of rows: a cooperative matrix has 16.
const LEAST_ROWS: u32 = 16;

/// The dispatch of this rung, if the plan allows rounding to f16 and the keys are in a cache.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Recorded(op) = problem else { return None };
    let of = op.cached()?;
    let tile = tile(&of, cx)?;
    Some(dispatch(&of, tile, (tile.variant, of.y), 1))
}

/// Whether these kernels compute an attention over a cache.
pub(crate) fn serves(of: &Cached, cx: &Lower<'_>) -> bool {
    tile(of, cx).is_some()
}

/// The tile for an attention, if the plan allows rounding to f16.
fn tile(of: &Cached, cx: &Lower<'_>) -> Option<&'static Tile> {
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    let tile = TILES.iter().find(|t| t.head == shape.dim && group <= t.queries && t.variant.fits(cx.caps));
    tile.filter(|_| cx.fast && shape.rows >= LEAST_ROWS)
}

/// The dispatch of a variant that writes `y`, with the keys in `splits` parts.
fn dispatch(of: &Cached, tile: &Tile, (variant, y): (&'static Variant, Tensor), splits: u32) -> Dispatch {
    let Cached { q, kv, kv_heads, attend, positions, ends, sequences, y: _ } = *of;
    let Attend { mask, scale, softcap } = attend;
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
        rows: q.shape.rows,
        capacity: 0,
        causal: u32::from(mask != Mask::Bidirectional),
        window: window(mask),
        splits,
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: q.into(),
        positions: positions.into(),
        ends: ends.into(),
        sequences: sequences.into(),
        k_state: kv.k.into(),
        v_state: kv.v.into(),
        y: y.into(),
    };
    let group = q.shape.heads / kv_heads;
    bind.dispatch(variant, params, Grid::Tiles { lead: q.shape, tile: tile.queries / group, x: kv_heads * splits })
}

/// Fewest keys of a part.
const LEAST_KEYS: u32 = 64;

impl FlashParts {
    /// The parts that fill a device, at most `most`, if tiles of whole rows leave it half empty.
    /// `partial` makes a value of a shape.
    pub(crate) fn found(of: &Cached, most: u32, cx: &Lower<'_>, partial: impl FnOnce(Shape) -> Tensor) -> Option<Self> {
        let tile = tile(of, cx)?;
        let shape = of.q.shape;
        let tokens = tile.queries / (shape.heads / of.kv_heads);
        let workgroups = shape.rows.div_ceil(tokens) * of.kv_heads;
        // Half as many as rows by themselves have: a tile has more work for each key.
        let splits = (cx.caps.table.split_workgroups / 2 / workgroups).min(most);
        let splits = match of.attend.mask {
            Mask::Window(n) => splits.min((n as u32).saturating_add(shape.rows) / LEAST_KEYS),
            Mask::Causal | Mask::Bidirectional => splits,
        };
        (splits > 1).then(|| {
            let partial = partial(Shape { heads: shape.heads * splits, dim: shape.dim + PART_WORDS, ..shape });
            Self { of: *of, splits, partial }
        })
    }

    /// The dispatches: the parts, and their join.
    pub(super) fn dispatches(&self, form: &Form, cx: &Lower<'_>) -> Vec<Dispatch> {
        let tile = tile(&self.of, cx).expect("an attention that has tiles");
        let parts = dispatch(&self.of, tile, (tile.parts, self.partial), self.splits);
        vec![parts, attention_merge_parts::dispatch(self.of.q.shape, self.splits, self.partial, self.of.y, form)]
    }

    /// Keys taken at a time.
    pub(crate) fn keys(&self, cx: &Lower<'_>) -> Option<u32> {
        tile(&self.of, cx).map(|tile| tile.keys)
    }
}
