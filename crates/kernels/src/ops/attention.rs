//! Attention of the step's rows over the KV state.

use super::{Io, Operation, Work};
use crate::exec::cpu::{Host, in_parallel};
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Counts, Input, KvState, Lead, Shape, State, StateKind, Tensor};
use cpu_ref::{AttentionSpec, KvType, Mask};

kernel! {
    ATTENTION: "attention",
    entry: "attention",
    wgsl: ["attention.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv, v_state: Kv, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
}

/// Longest head that the kernel holds.
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

/// y = softmax(scale q k^T) v.
#[derive(Clone, Debug)]
pub struct Attention {
    pub q: Tensor,
    pub kv: KvState,
    pub kv_heads: u32,
    pub attend: Attend,
    pub positions: Tensor,
    pub ends: Tensor,
    pub sequences: Tensor,
    pub y: Tensor,
}

/// Attention of `q` [T, N, H] over the rows of `kv` (`kv_heads` heads of H) that each row's sequence holds;
/// [T, N, H], f32. Bidirectional rows see all keys below the step input `ends`.
///
/// # Panics
/// When the heads do not divide, or H is no multiple of 4 or above [`MAX_HEAD_DIM`].
pub fn attention(rec: &mut Recorder, q: Tensor, kv: KvState, kv_heads: u32, attend: Attend) -> Tensor {
    let (heads, dim) = (q.shape.heads, q.shape.dim);
    assert!(kv_heads > 0 && heads.is_multiple_of(kv_heads), "{heads} query heads over {kv_heads} kv heads");
    assert!(dim.is_multiple_of(4) && dim <= MAX_HEAD_DIM, "heads of {dim}");
    for s in [kv.k, kv.v] {
        assert!(matches!(rec.kind(s), StateKind::Kv { width, .. } if width == kv_heads * dim), "attention over {:?}", rec.kind(s));
    }
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    let ends = if attend.mask == Mask::Bidirectional { rec.input(Input::Ends) } else { positions };
    let y = rec.make(q.shape);
    rec.push(Attention { q, kv, kv_heads, attend, positions, ends, sequences, y });
    y
}

impl Operation for Attention {
    fn io(&self) -> Io {
        Io { reads: vec![self.q, self.positions, self.ends, self.sequences], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        // What the keys cost depends on the positions, which a plan does not know: the query rows alone.
        let bytes = 8 * u64::from(self.q.shape.rows_at(counts)) * u64::from(self.q.shape.width());
        Work { flops: 0, bytes, weight_bytes: 0 }
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if let Some(dispatch) = super::attention_coop::lower(self, cx) {
            return vec![dispatch];
        }
        let shape = self.q.shape;
        let bidirectional = self.attend.mask == Mask::Bidirectional;
        let params = Params {
            heads: shape.heads,
            kv_heads: self.kv_heads,
            head_dim: shape.dim,
            rows: shape.rows,
            capacity: 0,
            causal: u32::from(!bidirectional),
            window: if let Mask::Window(n) = self.attend.mask { n as u32 } else { 0 },
            scale: self.attend.scale,
            softcap: self.attend.softcap.unwrap_or(0.0),
        };
        let bind = Bind {
            q: self.q.into(),
            positions: self.positions.into(),
            ends: self.ends.into(),
            sequences: self.sequences.into(),
            k_state: self.kv.k.into(),
            v_state: self.kv.v.into(),
            y: self.y.into(),
        };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads })]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let spec = AttentionSpec {
            heads: self.q.shape.heads as usize,
            kv_heads: self.kv_heads as usize,
            head_dim: self.q.shape.dim as usize,
            scale: f64::from(self.attend.scale),
            softcap: self.attend.softcap.map(f64::from),
        };
        let (positions, sequences, ends) = (host.u32(self.positions), host.u32(self.sequences), host.u32(self.ends));
        let visible: Vec<(u32, usize, usize)> = (0..positions.len())
            .map(|t| {
                let bidirectional = self.attend.mask == Mask::Bidirectional;
                let end = ends[t] as usize + usize::from(!bidirectional);
                let range = self.attend.mask.visible(positions[t] as usize, end);
                (sequences[t], range.start, range.end)
            })
            .collect();
        let mut y = host.take(self.y);
        let width = self.q.shape.width() as usize;
        let mut seen: Vec<u32> = visible.iter().map(|v| v.0).collect();
        seen.sort_unstable();
        seen.dedup();
        for sequence in seen {
            let rows = || visible.iter().filter(|v| v.0 == sequence);
            let first = rows().map(|v| v.1).min().unwrap_or(0);
            let last = rows().map(|v| v.2).max().unwrap_or(0);
            let (k, v) = (read(host, self.kv.k, sequence, first, last), read(host, self.kv.v, sequence, first, last));
            let q = host.f32(self.q);
            in_parallel(&mut y, width, |t, y| {
                let (of, start, end) = visible[t];
                if of == sequence {
                    cpu_ref::attention(&spec, &q[t * width..][..width], &k, &v, start - first..end - first, y);
                }
            });
        }
        host.put(self.y, y);
    }
}

/// The rows of one sequence at positions first..last.
fn read(host: &Host<'_>, state: State, sequence: u32, first: usize, last: usize) -> Vec<f32> {
    let StateKind::Kv { ty, width, .. } = host.kind(state) else { unreachable!("checked when recorded") };
    let width = width as usize;
    let mut rows = vec![0.0; (last - first) * width];
    in_parallel(&mut rows, width, |n, row| {
        let slot = host.slot(state, sequence, (first + n) as u32);
        cpu_ref::kv_read(host.state(state), ty, width, slot, row);
    });
    rows
}

/// What of a case is not drawn.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Drawn {
    pub ty: KvType,
    pub window: Option<usize>,
    pub rows: u32,
    pub dim: u32,
    /// Heads that share a kv head.
    pub group: Option<u32>,
    /// The result in 8 bits.
    pub packed: bool,
    /// Of few rows: behind more keys than threads that share a quad join parts of at once.
    pub late: bool,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { ty: KvType::F32, window: None, rows: 1, dim: 64, group: None, packed: false, late: false }
    }
}

/// Rounds down the elements of a row that a state of 8 bits could round either way: not every device divides exactly.
fn settle(row: &mut [f32]) {
    for block in row.chunks_mut(32) {
        let d = block.iter().fold(0.0_f32, |most, v| most.max(v.abs())) / 127.0;
        let undecided = |v: f32| d > 0.0 && ((v / d).abs().fract() - 0.5).abs() < 1e-4;
        block.iter_mut().filter(|v| undecided(**v)).for_each(|v| *v = (*v / d).trunc() * d);
    }
}

/// What the keys of a case are.
#[derive(Copy, Clone, PartialEq)]
enum Keys {
    Any,
    Equal,
    Outlier,
}

/// Appends a step of one sequence or several, then attends over it; with a window of one, the values that were stored come back.
pub(crate) fn appended(g: &mut Gen, ty: KvType, window: Option<usize>) -> Case {
    let dim = g.pick(&[4, 64, 80, 96, 128, 256, 512]);
    let rows = g.pick(&[1, 3, 33, 129, 260]);
    appended_as(g, Drawn { ty, window, rows, dim, ..Drawn::default() })
}

/// The same with some of it given.
pub(crate) fn appended_as(g: &mut Gen, given: Drawn) -> Case {
    let Drawn { ty, window, rows, dim, group, packed, late } = given;
    let (kv_heads, drawn) = (g.pick(&[1, 2]), g.pick(&[1, 2, 3, 4]));
    let group = group.unwrap_or(drawn);
    let width = kv_heads * dim;
    let kinds = [StateKind::kv(ty, width); 2];
    // Few rows see as many keys as fill every part, of a split attention too.
    let capacity = if rows > 5 { 300 } else if late { 2040 } else { g.pick(&[300, 2040]) };
    let mut case = Case::with_states(rows, &kinds, 2, capacity);
    // Equal keys have equal scores, however large: what is summed must be relative to the largest.
    // One that is far larger than the others is to be found wherever it is.
    let keys = g.pick(if late { &[Keys::Outlier, Keys::Equal] } else { &[Keys::Any, Keys::Outlier, Keys::Equal] });
    let mut key: Option<Vec<f32>> = (keys == Keys::Equal).then(|| (0..width).map(|_| 100.0 * g.unit()).collect());
    if ty == KvType::Q8_0 {
        key.as_deref_mut().into_iter().for_each(settle);
    }
    case.hold(g, key.clone());
    // Unequal sequences: the first `split` rows are one, the rest the other.
    let split = g.pick(&[rows, rows / 2, 1, rows - 1]);
    case.input.sequences = (0..rows).map(|t| u32::from(t >= split)).collect();
    // At the start of the state, or around its end.
    let somewhere = (g.bits() % u64::from(capacity)) as u32;
    let before = if late { 1100 } else { 0 };
    let first = g.pick(&[before, before, capacity - 10, capacity - 2, capacity + 7, somewhere]);
    case.input.positions = (0..rows).map(|t| first + if t >= split { t - split } else { t }).collect();
    case.input.ends = (0..rows).map(|t| first + if t >= split { rows - split } else { split }).collect();
    let window = window.or_else(|| (g.coin() && !late).then(|| g.pick(&[1, 7, 90, 128, 400, 1000])));
    let mask = match window {
        Some(n) => Mask::Window(n),
        None => g.pick(&[Mask::Causal, Mask::Bidirectional]),
    };
    let outlier = keys == Keys::Outlier && window.is_none() && first > 0;
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: (g.coin() && !outlier).then_some(50.0) };
    let k = match key {
        Some(key) => case.given(Shape::new(Lead::Step, rows, width), key.repeat(rows as usize)),
        None => case.uniform(g, width, 3.0),
    };
    let (k, v) = (k.heads(kv_heads), case.tensor(g, width).heads(kv_heads));
    if ty == KvType::Q8_0 {
        case.input.host.iter_mut().flat_map(|values| values.chunks_mut(width as usize)).for_each(settle);
    }
    let mut q: Vec<f32> = (0..rows * width * group).map(|_| 3.0 * g.unit()).collect();
    if outlier {
        // Its scores are about 200, those of others seldom above 30.
        let key: Vec<f32> = (0..width).map(|_| (600.0 / (dim as f32).sqrt()).sqrt() * g.unit()).collect();
        let heads = (0..kv_heads * group).flat_map(|head| &key[(head / group * dim) as usize..][..dim as usize]);
        q.iter_mut().zip(heads.cycle()).for_each(|(q, k)| *q += k);
        let anywhere = (g.bits() % u64::from(first.min(capacity))) as u32;
        case.hold_alone(key, g.pick(&[0, anywhere]));
    }
    let q = case.given(Shape::new(Lead::Step, rows, width * group), q).heads(kv_heads * group);
    // In as many parts as the device's table says, in one, and in some of several tiles.
    case.split_workgroups = g.pick(&[None, None, Some(1), Some(4)]);
    let kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = super::kv_append(&mut case.rec, kv, k, v);
    let y = attention(&mut case.rec, q, kv, kv_heads, attend);
    if packed {
        let k = width * group;
        let y = super::pack_q8(&mut case.rec, y);
        case.expect_as(y, crate::compare::Compare::Packed { k });
    } else {
        case.expect(y);
    }
    case
}

/// Head dims from 4 to 512, grouped heads, tiles of keys partly filled, every mask, softcaps, every KV type.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    appended(g, ty, None)
}
