//! Attention of the step's rows over the KV state.

use super::fused::{Problem, window};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Input, KvState, State, StateKind, Tensor};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::platform::{in_parallel, in_turns};
use cpu_ref::{AttentionSpec, Mask};
use gguf::BoxFuture;
use std::ops::Range;

/// Longest head that the kernel supports.
pub const MAX_HEAD_DIM: u32 = 512;

/// How a row attends.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Attend {
    pub mask: Mask,
    /// Factor on every score.
    pub scale: f32,
    /// softcap * tanh(score / softcap), when given.
    pub softcap: Option<f32>,
}

/// Where attention reads keys and values.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Keys {
    /// In a cache: a row sees the keys of its own sequence, by position.
    Cache { kv: KvState, sequences: Tensor },
    /// In the step: k and v are [T, K, H] f32. A row sees the keys of its own document, which
    /// begins at `firsts`; both are row numbers in the step.
    Step { k: Tensor, v: Tensor, firsts: Tensor },
}

impl Values for Keys {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        match self {
            Self::Cache { kv: _, sequences } => f(sequences),
            Self::Step { k, v, firsts } => [k, v, firsts].into_iter().for_each(f),
        }
    }
}

/// y = softmax(scale q k^T) v.
#[derive(Clone, Debug)]
pub struct Attention {
    pub q: Tensor,
    pub keys: Keys,
    pub kv_heads: u32,
    pub attend: Attend,
    /// The index of each row among the keys: its position in a cache, or its row number in the
    /// step.
    pub positions: Tensor,
    /// The index of the first key that each row does not see, if attention is bidirectional.
    /// Otherwise `ends` is `positions`.
    pub ends: Tensor,
    pub y: Tensor,
}

parameters! { Attention: attend }
values! { Attention: q, keys, positions, ends, y }

/// An attention whose keys and values are in a cache.
#[derive(Copy, Clone, Debug)]
pub struct Cached {
    pub q: Tensor,
    pub kv: KvState,
    pub kv_heads: u32,
    pub attend: Attend,
    pub positions: Tensor,
    pub ends: Tensor,
    pub sequences: Tensor,
    pub y: Tensor,
}

impl Attention {
    /// This attention as `Cached`, if its keys and values are in a cache.
    #[must_use]
    pub fn cached(&self) -> Option<Cached> {
        let Self { q, keys, kv_heads, attend, positions, ends, y } = *self;
        match keys {
            Keys::Cache { kv, sequences } => Some(Cached { q, kv, kv_heads, attend, positions, ends, sequences, y }),
            Keys::Step { .. } => None,
        }
    }
}

/// Attention of `q` [T, N, H] over the keys and values in `kv` (`kv_heads` heads of H) of each
/// row's sequence; returns [T, N, H], f32. Bidirectional rows see all keys below the step input
/// `ends`.
///
/// In a recording [of documents](Recorder::of_documents) the keys and values are the step's own, as
/// [`kv_append`](crate::ops::kv_append()) was given them. Each row sees the rows of its own
/// document, from the step input `firsts` on, and `ends` counts rows of the step.
///
/// # Panics
/// When the query heads are not a multiple of `kv_heads`, or when H is not a multiple of 4 or is
/// above [`MAX_HEAD_DIM`].
pub fn attention(
    rec: &mut Recorder<impl From<Attention>>,
    q: Tensor,
    kv: KvState,
    kv_heads: u32,
    attend: Attend,
) -> Tensor {
    let (heads, dim) = (q.shape.heads, q.shape.dim);
    assert!(kv_heads > 0 && heads.is_multiple_of(kv_heads), "{heads} query heads over {kv_heads} kv heads");
    assert!(dim.is_multiple_of(4) && dim <= MAX_HEAD_DIM, "heads of {dim}");
    for s in [kv.k, kv.v] {
        assert!(
            matches!(rec.kind(s), StateKind::Kv { width, .. } if width == kv_heads * dim),
            "attention over {:?}",
            rec.kind(s)
        );
    }
    let (positions, keys) = match rec.kept(kv) {
        None => (rec.input(Input::Positions), Keys::Cache { kv, sequences: rec.input(Input::Sequences) }),
        Some([k, v]) => (rec.input(Input::Numbers), Keys::Step { k, v, firsts: rec.input(Input::Firsts) }),
    };
    let ends = if attend.mask == Mask::Bidirectional { rec.input(Input::Ends) } else { positions };
    let y = rec.make(q.shape);
    rec.push(Attention { q, keys, kv_heads, attend, positions, ends, y });
    y
}

impl Operation for Cached {
    fn io(&self) -> Io {
        Io { reads: vec![self.q, self.positions, self.ends, self.sequences], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.q, counts)
    }
}

/// Counts the query rows only. The cost of the keys depends on the positions, which a plan does not
/// know.
fn work(q: Tensor, counts: Counts) -> Work {
    let bytes = 8 * u64::from(q.shape.rows_at(counts)) * u64::from(q.shape.width());
    Work { flops: 0, bytes, weight_bytes: 0 }
}

impl Operation for Attention {
    fn io(&self) -> Io {
        let of_keys = match self.keys {
            Keys::Cache { kv: _, sequences } => vec![sequences],
            Keys::Step { k, v, firsts } => vec![k, v, firsts],
        };
        Io { reads: [vec![self.q, self.positions, self.ends], of_keys].concat(), writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.q, counts)
    }
}

impl Reference for Attention {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let attend = |spec: &_, _: usize, q: &_, k: &_, v: &_, visible, y: &mut _| {
                cpu_ref::attention(spec, q, k, v, visible, y)
            };
            self.by(host, |_| {}, attend).await;
        })
    }
}

impl Attention {
    /// Computes every row by `attend`, from keys and values that `round` rounded. `attend` also
    /// gets the position of the first row of its keys.
    pub(crate) async fn by(
        &self,
        host: &mut Host<'_>,
        round: impl Fn(&mut [f32]) + Send,
        attend: impl Fn(&AttentionSpec, usize, &[f32], &[f32], &[f32], Range<usize>, &mut [f32]) + Send + Sync,
    ) {
        let Attend { mask, scale, softcap } = self.attend;
        let spec = AttentionSpec {
            heads: self.q.shape.heads as usize,
            kv_heads: self.kv_heads as usize,
            head_dim: self.q.shape.dim as usize,
            scale: f64::from(scale),
            softcap: softcap.map(f64::from),
        };
        // For every row: its sequence or the first row of its document, and the keys that it sees
        // there.
        let of = host.u32(match self.keys {
            Keys::Cache { sequences, .. } => sequences,
            Keys::Step { firsts, .. } => firsts,
        });
        let first = |t: usize| if matches!(self.keys, Keys::Step { .. }) { of[t] as usize } else { 0 };
        let (positions, ends) = (host.u32(self.positions), host.u32(self.ends));
        let bidirectional = mask == Mask::Bidirectional;
        let visible: Vec<(u32, Range<usize>)> = (0..positions.len())
            .map(|t| {
                let end = ends[t] as usize + usize::from(!bidirectional);
                let range =
                    mask.visible((positions[t] as usize).saturating_sub(first(t)), end.saturating_sub(first(t)));
                (of[t], range.start + first(t)..range.end + first(t))
            })
            .collect();
        let mut y = host.take(self.y);
        let width = self.q.shape.width() as usize;
        let mut seen: Vec<u32> = visible.iter().map(|v| v.0).collect();
        seen.sort_unstable();
        seen.dedup();
        for group in seen {
            let rows = || visible.iter().filter(|v| v.0 == group);
            let first = rows().map(|v| v.1.start).min().unwrap_or(0);
            let last = rows().map(|v| v.1.end).max().unwrap_or(0);
            let mut of_keys = match self.keys {
                Keys::Cache { kv, .. } => [kv.k, kv.v].map(|state| read(host, state, group, first, last)),
                Keys::Step { k, v, .. } => [k, v].map(|t| {
                    let width = t.shape.width() as usize;
                    host.f32(t)[first * width..last * width].to_vec()
                }),
            };
            of_keys.iter_mut().for_each(|rows| round(rows));
            let ([k, v], q) = (&of_keys, host.f32(self.q));
            let row = |t: usize, y: &mut [f32]| {
                let (of, range) = &visible[t];
                if *of == group {
                    attend(&spec, first, &q[t * width..][..width], k, v, range.start - first..range.end - first, y);
                }
            };
            in_turns(&mut y, width, row).await;
        }
        host.put(self.y, y);
    }
}

/// The rows of one sequence at positions `first..last`.
fn read(host: &Host<'_>, state: State, sequence: u32, first: usize, last: usize) -> Vec<f32> {
    let (ty, width) = host.kind(state).row();
    let width = width as usize;
    let mut rows = vec![0.0; (last - first) * width];
    in_parallel(&mut rows, width, |n, row| {
        let slot = host.slot(state, sequence, (first + n) as u32);
        cpu_ref::kv_read(host.state(state), ty, width, slot, row);
    });
    rows
}

kernel! {
    ATTENTION: "attention",
    wgsl: ["attention/attention.wgsl", keys, "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv(Read), v_state: Kv(Read), y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 7168 },
    variants: {
        CACHE: "attention" { keys: choose ["attention/pieces/keys_of_cache.wgsl"] },
        // Keys and values are tensors of the step: `rows` are row numbers, `sequences` the first
        // rows of the documents.
        STEP: "attention_step" only Step { keys: choose ["attention/pieces/keys_of_step.wgsl"] },
    },
}

/// The dispatch for any recorded attention.
pub(super) fn take(problem: Problem<'_>, _: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Recorded(op) = problem else { return None };
    let Attention { q, keys, kv_heads, attend, positions, ends, y } = *op;
    let Attend { mask, scale, softcap } = attend;
    let (variant, sequences, k_state, v_state) = match keys {
        Keys::Cache { kv, sequences } => (&CACHE, sequences, Arg::from(kv.k), Arg::from(kv.v)),
        Keys::Step { k, v, firsts } => (&STEP, firsts, k.into(), v.into()),
    };
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
        head_dim: q.shape.dim,
        rows: q.shape.rows,
        capacity: 0,
        causal: u32::from(mask != Mask::Bidirectional),
        window: window(mask),
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: q.into(),
        positions: positions.into(),
        ends: ends.into(),
        sequences: sequences.into(),
        k_state,
        v_state,
        y: y.into(),
    };
    Some(bind.dispatch(variant, params, Grid::PerRow { lead: q.shape, per_row: q.shape.heads }))
}
