//! The ladder of attention: the kernels that compute attention, from the fastest to the portable
//! one.

use super::attention::{self, Attention};
use super::attention_merge::AttentionMerge;
use super::fused::{
    AttentionByLength, AttentionDecode, AttentionDecodeRowsF16, AttentionSplit, Heads, Problem, Rows, window,
};
use super::{
    attention_decode, attention_decode_128, attention_decode_256, attention_decode_rows, attention_decode_rows_f16,
    attention_decode_split, attention_decode_window, attention_flash, attention_split, attention_split_128,
    attention_split_512, attention_tile,
};
use crate::caps::Caps;
use crate::caps::table::measured::DEEP_KEYS;
use crate::graph::tensor::{Counts, Shape};
use crate::kernel::Kernel;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering, When};

/// One rung.
pub struct Rung {
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub kernel: &'static Kernel,
    /// The dispatch, if the rung serves the problem. The caller checks that the variant fits the
    /// device.
    take: fn(Problem<'_>, &Lower<'_>) -> Option<Dispatch>,
    /// The domain, in words: the problem, its rows and heads, and the result.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub domain: &'static str,
    /// Context length up to which the rung is faster than parts of the keys. Arguments: the shape
    /// of the queries, and the limit for heads of 128. `None` if the rung serves any length.
    reach: Option<fn(Shape, u32) -> u32>,
    /// Why the rung stands above the rungs after it, with the measurement.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub beats: &'static str,
}

/// [`Rung::reach`] for several rows, each of another sequence: more rows fill a device sooner.
/// [`Table::usual`](crate::Table::usual) has the measurement.
fn of_rows(q: Shape, keys: u32) -> u32 {
    keys.saturating_mul(q.rows + 1).div_ceil(2).min(attention_decode::KEYS)
}

/// The rungs. The first rung that takes a problem serves it; the last rung takes every recorded
/// attention.
pub static LADDER: [Rung; 13] = [
    Rung {
        kernel: &attention_decode_rows::ATTENTION_DECODE_ROWS,
        take: attention_decode_rows::take,
        domain: "few keys, at least 2 rows of separate sequences, heads of 128 that rotate as a whole; 8 bits",
        reach: Some(of_rows),
        beats: "17.5 us as one kernel for 8 rows of 32 heads of 128 over 512 keys; three kernels take 27.0 us",
    },
    Rung {
        kernel: &attention_decode_128::ATTENTION_DECODE_128,
        take: attention_decode_128::take,
        domain: "few keys, one row, heads of 128 that rotate as a whole; 8 bits or f32",
        reach: Some(|q, keys| attention_decode::reach(q.dim, keys)),
        beats: "no barrier before the join: 32 threads share a key; 10.5 to 7.7 us per layer of Qwen3-8B, 7.7 to 5.8 of 0.6B",
    },
    Rung {
        kernel: &attention_decode_256::ATTENTION_DECODE_256,
        take: attention_decode_256::take,
        domain: "few keys, one row, heads of 256 or 512 that rotate as a whole; 8 bits or f32",
        reach: Some(|q, keys| attention_decode_256::reach(q.dim, keys)),
        beats: "a workgroup computes 64 elements of a head from all scores: 11.1 to 7.3 us a layer of Gemma 4 E2B",
    },
    Rung {
        kernel: &attention_decode::ATTENTION_DECODE,
        take: attention_decode::take,
        domain: "few keys, one row, heads of 32 to 512; 8 bits or f32",
        reach: Some(|q, keys| attention_decode::reach(q.dim, keys)),
        beats: "7.2 us as one kernel at 128 keys of 8 heads of 128; heads, parts and join take 14; equal at about 600 keys",
    },
    Rung {
        kernel: &attention_decode_rows_f16::ATTENTION_DECODE_ROWS_F16,
        take: attention_decode_rows_f16::take,
        domain: "few keys, rows of separate sequences, heads of 128 that rotate as a whole; f16",
        reach: Some(of_rows),
        beats: "27 us as one kernel for 32 rows over 512 keys; five kernels take 46 us",
    },
    Rung {
        kernel: &attention_decode_window::ATTENTION_DECODE_WINDOW,
        take: attention_decode_window::take,
        domain: "a window in parts, one row, heads of 256 that rotate as a whole; a product joins the parts",
        reach: None,
        beats: "a window of 512 keys takes 5.9 us in 8 parts, plus 1 to join them in the product; one kernel takes 11.4",
    },
    Rung {
        kernel: &attention_decode_split::ATTENTION_DECODE_SPLIT,
        take: attention_decode_split::take,
        domain: "parts of keys, one row with the operations before it, groups of two or four heads of 128 that share keys",
        reach: None,
        beats: "rotations and append in every part: 31.5 + 4.3 to 32.8 us per layer of Qwen3-8B at 16,384 keys",
    },
    Rung {
        kernel: &attention_split_512::ATTENTION_SPLIT_512,
        take: attention_split_512::take,
        domain: "parts of keys, one row, groups of four heads of 512 that share keys",
        reach: None,
        beats: "all scores of a part, then weights, then values: Gemma 4 E2B at depth 16,384 from 466 to 506 tok/s",
    },
    Rung {
        kernel: &attention_split_128::ATTENTION_SPLIT_128,
        take: attention_split_128::take,
        domain: "parts of keys, one row, groups of two or four heads of 128 that share keys",
        reach: None,
        beats: "for heads of 128 without the operations before them; not measured separately from attention_decode_split",
    },
    Rung {
        kernel: &attention_split::ATTENTION_SPLIT,
        take: attention_split::take,
        domain: "parts of keys, up to 64 rows, more where tiles in f32 would be few; heads that are divided among a power of two of threads",
        reach: None,
        beats: "parts keep a device busy: with one workgroup per head, 12 heads use 12 of 132 multiprocessors",
    },
    Rung {
        kernel: &attention_flash::ATTENTION_FLASH,
        take: attention_flash::take,
        domain: "plans that round, at least 16 rows over a cache, heads of 64, 128, 256 or 512",
        reach: None,
        beats: "tensor cores, keys and values staged once for all heads of a tile: 128 TFLOP/s for 2048 rows of 32 heads of 128",
    },
    Rung {
        kernel: &attention_tile::ATTENTION_TILE,
        take: attention_tile::take,
        domain: "at least 16 rows, heads of 64, 128, 256 or 512, also over keys of the step",
        reach: None,
        beats: "keys are read once for 32 queries, and products are made in registers: 3.0 to 25.0 TFLOP/s for 2048 rows of 32 heads of 128",
    },
    Rung {
        kernel: &attention::ATTENTION,
        take: attention::take,
        domain: "every attention, also over keys of the step",
        reach: None,
        beats: "portable",
    },
];

/// The rung that serves a problem on this device, and its dispatch.
fn rung(problem: Problem<'_>, cx: &Lower<'_>) -> Option<(&'static Rung, Dispatch)> {
    LADDER
        .iter()
        .find_map(|rung| Some((rung, (rung.take)(problem, cx).filter(|dispatch| dispatch.variant.fits(cx.caps))?)))
}

/// The dispatch of a problem on this device, if a rung serves it.
pub(crate) fn dispatch(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    rung(problem, cx).map(|(_, dispatch)| dispatch)
}

/// The dispatch of a problem on a device with these capabilities, if a rung serves it. Rules call
/// this before the plan is lowered.
pub(crate) fn found(problem: Problem<'_>, caps: &Caps) -> Option<Dispatch> {
    dispatch(problem, &Lower { caps, capacity: Counts { step: 0, out: 0 }, fast: true })
}

/// The kernel for short contexts, and the context length up to which it is used.
fn near(problem: Problem<'_>, q: Shape, cx: &Lower<'_>) -> Option<(Dispatch, u32)> {
    let (rung, dispatch) = rung(problem, cx)?;
    let keys = rung.reach?(q, cx.caps.table.decode_keys);
    (keys > 0).then_some((dispatch, keys))
}

/// `near` for short contexts and `far` for longer ones; only `far` if there is no kernel for short
/// contexts.
fn near_or(near: Option<(Dispatch, u32)>, far: Vec<Dispatch>) -> Vec<Dispatch> {
    let Some((near, keys)) = near else { return far };
    let far = far.into_iter().map(|dispatch| {
        let when = match dispatch.when {
            When::Far { deep, .. } => When::Far { near: keys, deep },
            When::Deep(from) => When::Deep(from),
            When::Always | When::Near(_) => When::far(keys),
        };
        Dispatch { when, ..dispatch }
    });
    std::iter::once(Dispatch { when: When::Near(keys), ..near }).chain(far).collect()
}

impl Lowering for AttentionDecode {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let of = &self.split.of;
        let near = match near(Problem::Decode(self), of.q.shape, cx) {
            // The window never holds more keys, so no other kernel is needed.
            Some((near, keys)) if (1..=keys).contains(&window(of.attend.mask)) => return vec![near],
            near => near,
        };
        let parts = match dispatch(Problem::DecodeSplit(self), cx) {
            Some(dispatch) => vec![dispatch],
            None => {
                let before = match &*self.heads {
                    Heads::All(heads) => heads.lower(cx),
                    Heads::Queries(rope) => rope.lower(cx),
                };
                [before, self.split.lower(cx)].concat()
            }
        };
        near_or(near, [parts, self.merge.lower(cx)].concat())
    }
}

impl Lowering for AttentionDecodeRowsF16 {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let attention = self.attention();
        let packed = match attention.packed(self.pack.clone()) {
            Some(packed) => packed.lower(cx),
            None => [attention.lower(cx), self.pack.lower(cx)].concat(),
        };
        near_or(near(Problem::DecodeF16(self), self.heads.q.shape, cx), [self.heads.lower(cx), packed].concat())
    }
}

impl Lowering for AttentionSplit {
    /// Attention is split only if a rung serves the parts.
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        vec![dispatch(Problem::Split(self), cx).expect("a rung that has the parts")]
    }
}

impl Lowering for AttentionByLength {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let rows = match &*self.rows {
            Rows::Split(split, merge) => {
                let merge = merge.as_ref().map(|merge| AttentionMerge { form: self.form(), ..merge.clone() });
                [split.lower(cx), merge.map_or_else(Vec::new, |merge| merge.lower(cx))].concat()
            }
            Rows::Whole(of) => of.lower(cx),
        };
        let Some(tiles) = &self.tiles else { return rows };
        let others = When::Far { near: 0, deep: DEEP_KEYS };
        let rows = rows.into_iter().map(|dispatch| Dispatch { when: others, ..dispatch });
        rows.chain(
            tiles
                .dispatches(&self.form(), cx)
                .into_iter()
                .map(|dispatch| Dispatch { when: When::Deep(DEEP_KEYS), ..dispatch }),
        )
        .collect()
    }
}

impl Lowering for Attention {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        vec![dispatch(Problem::Recorded(self), cx).expect("the last rung has every attention")]
    }
}
