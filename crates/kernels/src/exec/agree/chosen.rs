//! Some rows of a step, which the host computes in place of all rows.

use crate::attention::attention::{Attention, Keys};
use crate::graph::input::StepInput;
use crate::graph::record::Node;
use crate::graph::tensor::{Element, Lead, Shape, State, Tensor};
use crate::language::{Op, Primitive};
use crate::matmul::embed::Ids;
use crate::norm::pack_f16::{in_rows, put_rows};

/// Steps of more rows are compared in [`ROWS`] rows.
const MOST: u32 = 64;

/// Number of rows that are compared.
const ROWS: usize = 16;

/// Both rows at the borders of the tiles that kernels have.
const BORDERS: [u32; 8] = [15, 16, 31, 32, 63, 64, 127, 128];

/// Tiles of drawn borders.
const TILE: u32 = 16;

/// Rows of a step, rising. The first, the last and rows at the borders of tiles are always among
/// them.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    rows: Vec<u32>,
}

/// How the rows of a value lie in its words.
enum Layout {
    /// The value has the same rows in every step.
    Whole,
    /// Row after row of this number of words.
    Rows(usize),
    /// Rows of `k` elements in f16, in slabs of `slab` rows.
    Slabs { k: usize, slab: u32 },
}

impl Layout {
    fn of(element: Element, shape: Shape) -> Self {
        match (shape.lead, element) {
            (Lead::Step, _) => Self::Rows(shape.width() as usize),
            (Lead::Fixed, Element::F16) => Self::Slabs { k: 2 * shape.width() as usize, slab: shape.rows },
            (Lead::Fixed | Lead::Out | Lead::OutFrom(_), _) => Self::Whole,
        }
    }

    /// The words of these rows alone, in the same layout.
    fn take(&self, words: &[u32], rows: &[u32]) -> Vec<u32> {
        let row = |words: &[u32], width: usize| -> Vec<u32> {
            rows.iter().flat_map(|&row| words[row as usize * width..][..width].to_vec()).collect()
        };
        match *self {
            Self::Whole => words.to_vec(),
            Self::Rows(width) => row(words, width),
            Self::Slabs { k, slab } => {
                let last = rows.iter().max().map_or(0, |row| *row as usize + 1);
                let some: Vec<u32> = row(&in_rows(words, last, k, slab), k / 2);
                let mut taken = vec![0; words.len()];
                put_rows(&some, &mut taken, k, slab);
                taken
            }
        }
    }
}

/// The values of an operation whose rows are slots of experts, in the order of the slots.
pub(super) struct InSlots {
    /// The numbers of the slots.
    slots: Tensor,
    scales: Tensor,
    halves: Tensor,
}

impl InSlots {
    pub fn of(parts: &[Node<Primitive>]) -> Option<Self> {
        parts.iter().find_map(|part| match &part.op {
            Primitive::GatherSlots(of) => Some(Self { slots: of.slots, scales: of.scales, halves: of.halves }),
            Primitive::MatmulTile64Experts(of) => {
                Some(Self { slots: of.of.routes.groups?.slots, scales: of.scales, halves: of.halves })
            }
            _ => None,
        })
    }

    pub fn slots(&self) -> Tensor {
        self.slots
    }
}

impl Chosen {
    /// Rows of a step for the oracles of these parts: `None` if the host computes all rows. The
    /// same seed and step give the same rows.
    pub fn of(parts: &[Node<Primitive>], input: &StepInput, seed: u64) -> Option<Self> {
        let total = input.counts().step;
        if total <= MOST || !parts.iter().all(|part| by_rows(&part.op)) {
            return None;
        }
        let mut rows: Vec<u32> =
            [0, total - 1].into_iter().chain(BORDERS.into_iter().filter(|row| *row < total)).collect();
        let mut drawn = Drawn(seed);
        let border = TILE * (1 + drawn.below(total / TILE));
        rows.extend([border - 1, border].into_iter().filter(|row| *row < total));
        sort(&mut rows);
        while rows.len() < ROWS {
            rows.push(drawn.below(total));
            sort(&mut rows);
        }
        if parts.iter().any(|part| matches!(part.op, Primitive::Op(Op::GatherRows(_)))) {
            rows.extend(&input.out_rows);
            sort(&mut rows);
        }
        Some(Self { rows })
    }

    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The inputs of a step of these rows. Only the kinds of a step with states are divided.
    pub fn input(&self, input: &StepInput) -> StepInput {
        let some = |words: &Vec<u32>| self.rows.iter().filter_map(|&row| words.get(row as usize).copied()).collect();
        let place = |row: &u32| self.rows.binary_search(row).map_or(0, |at| at as u32);
        StepInput {
            positions: some(&input.positions),
            sequences: some(&input.sequences),
            ends: some(&input.ends),
            out_rows: input.out_rows.iter().map(place).collect(),
            ..input.clone()
        }
    }

    /// The words of these rows of a value. `slots` are the words of the slots, if the operation has
    /// values in their order.
    pub fn take(&self, t: Tensor, shape: Shape, words: &[u32], in_slots: Option<(&InSlots, &[u32])>) -> Vec<u32> {
        let Some((of, slots)) = in_slots.filter(|(of, _)| [of.slots.id, of.scales.id, of.halves.id].contains(&t.id))
        else {
            return Layout::of(t.element, shape).take(words, &self.rows);
        };
        let per = of.slots.shape.width();
        let places: Vec<u32> = self.places(slots, per);
        if t.id == of.slots.id {
            let renamed = |&place: &u32| {
                let slot = slots[place as usize];
                self.rows.binary_search(&(slot / per)).map_or(0, |row| row as u32) * per + slot % per
            };
            return places.iter().map(renamed).collect();
        }
        match Layout::of(t.element, shape) {
            Layout::Slabs { k, slab } => Layout::Slabs { k, slab }.take(words, &places),
            Layout::Rows(_) | Layout::Whole => Layout::Rows(1).take(words, &places),
        }
    }

    /// The indices in `slots` of the slots of these rows.
    fn places(&self, slots: &[u32], per: u32) -> Vec<u32> {
        (0..)
            .zip(slots)
            .filter(|(_, slot)| self.rows.binary_search(&(*slot / per)).is_ok())
            .map(|(place, _)| place)
            .collect()
    }

    /// The rows of a state that a step writes in its other rows, as indices into the state's
    /// memory.
    pub fn others<'a>(&'a self, input: &'a StepInput, rows: u32) -> impl Iterator<Item = usize> + 'a {
        let other = move |row: &u32| self.rows.binary_search(row).is_err();
        let at = move |row: u32| {
            input.sequences[row as usize] as usize * rows as usize + (input.positions[row as usize] % rows) as usize
        };
        (0..input.counts().step).filter(other).map(at)
    }
}

/// Numbers of splitmix64.
pub(super) struct Drawn(pub u64);

impl Drawn {
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((mixed ^ (mixed >> 31)) >> 32) * u64::from(end)) >> 32) as u32
    }
}

fn sort(rows: &mut Vec<u32>) {
    rows.sort_unstable();
    rows.dedup();
}

/// The states that a part appends a row to for each row of the step.
pub(super) fn appended(parts: &[Node<Primitive>]) -> Vec<State> {
    let of = |part: &Node<Primitive>| match &part.op {
        Primitive::Op(Op::KvAppend(append)) => vec![append.state.k, append.state.v],
        _ => vec![],
    };
    parts.iter().flat_map(of).collect()
}

/// Whether every row of a part's results follows from the same row of its operands, from weights
/// and from states. Rows of logits may follow from any row of the step that they name.
fn by_rows(part: &Primitive) -> bool {
    match part {
        Primitive::Op(op) => by_rows_of(op),
        Primitive::Product(_) | Primitive::PackQ8(_) | Primitive::PackF16(_) | Primitive::LevelF16(_) => true,
        Primitive::GatherSlots(_) | Primitive::MatmulTile64Experts(_) | Primitive::MatmulVecQ8Experts(_) => true,
        Primitive::AttentionFlash(attention) => cached(&attention.of),
        Primitive::MatmulInputTile128(_) | Primitive::MatmulWeightTile128(_) | Primitive::Tile32(_) => false,
        Primitive::Own(_) => false,
    }
}

fn by_rows_of(op: &Op) -> bool {
    match op {
        Op::LayerNorm(_)
        | Op::RmsNorm(_)
        | Op::Matmul(_)
        | Op::Rope(_)
        | Op::KvAppend(_)
        | Op::Add(_)
        | Op::AddWeighted(_)
        | Op::MatchRms(_) => true,
        Op::GaussianTopK(_)
        | Op::Mul(_)
        | Op::Scale(_)
        | Op::Softcap(_)
        | Op::Relu(_)
        | Op::Silu(_)
        | Op::Gelu(_)
        | Op::Swiglu(_) => true,
        Op::Geglu(_)
        | Op::Softmax(_)
        | Op::LogSoftmax(_)
        | Op::GatherRows(_)
        | Op::Argmax(_)
        | Op::TopK(_)
        | Op::Route(_) => true,
        Op::MatmulExperts(_) | Op::CombineExperts(_) | Op::MulSigmoid(_) => true,
        Op::Embed(embed) => matches!(embed.ids, Ids::State { .. }),
        Op::Attention(attention) => cached(attention),
        // Rows of logits are few, and a list of tiles is one result.
        Op::Penalize(_) | Op::Sample(_) | Op::GroupExperts(_) => false,
        Op::Dropout(_) | Op::Backward(_) => false,
    }
}

/// Whether the keys of an attention are in a cache. Keys of the step belong to other rows.
fn cached(attention: &Attention) -> bool {
    matches!(attention.keys, Keys::Cache { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::scale::scale;
    use crate::graph::record::{Recorder, Stage};
    use crate::graph::tensor::Counts;

    fn step(rows: u32) -> StepInput {
        StepInput { positions: (0..rows).collect(), sequences: vec![0; rows as usize], ..StepInput::default() }
    }

    fn parts(rows: u32) -> Vec<Node<Primitive>> {
        let mut rec: Recorder<Primitive> = Recorder::new(Counts { step: rows, out: 0 }, &[]);
        let x = rec.host_input(0, Shape::new(Lead::Step, rows, 8));
        let y = scale(&mut rec, x, 2.0);
        rec.output(y);
        assert!(rec.nodes.iter().all(|node| node.stage == Stage::default()));
        rec.nodes
    }

    #[test]
    fn of_more_than_64_rows_16_are_chosen_with_the_ends_and_the_borders_of_tiles() {
        assert!(Chosen::of(&parts(64), &step(64), 1).is_none());
        for rows in [65, 128, 129, 512, 2048] {
            let chosen = |seed| Chosen::of(&parts(rows), &step(rows), seed).expect("some rows").rows;
            let some = chosen(1);
            assert_eq!((some.len(), some == chosen(1), some == chosen(2)), (16, true, false), "{some:?}");
            let wanted = [0, 15, 16, 31, 32, 63, 64, 127, 128, rows - 1].into_iter().filter(|row| *row < rows);
            assert!(wanted.into_iter().all(|row| some.contains(&row)) && some.is_sorted(), "{some:?}");
        }
    }

    #[test]
    fn a_step_of_chosen_rows_has_their_inputs_and_names_rows_of_logits_among_them() {
        let chosen = Chosen { rows: vec![0, 2, 5] };
        let input = StepInput { out_rows: vec![5, 2], ..step(6) };
        let some = chosen.input(&input);
        assert_eq!((some.positions, some.sequences, some.out_rows), (vec![0, 2, 5], vec![0; 3], vec![2, 1]));
        assert_eq!(chosen.others(&step(6), 4).collect::<Vec<_>>(), [1, 3, 0]);
    }

    #[test]
    fn values_in_slabs_and_in_the_order_of_slots_keep_their_layout() {
        let (k, slab) = (32, 16);
        let rows: Vec<u32> = (0..6 * k as u32 / 2).collect();
        let mut words = vec![0; slab as usize * k / 2];
        put_rows(&rows, &mut words, k, slab);
        let some = Layout::Slabs { k, slab }.take(&words, &[1, 4]);
        assert_eq!(in_rows(&some, 2, k, slab), [&rows[16..32], &rows[64..80]].concat());

        let mut rec: Recorder<Primitive> = Recorder::new(Counts { step: 3, out: 0 }, &[]);
        let slots = rec.make_of(Element::U32, Shape::new(Lead::Step, 3, 2));
        let scales = rec.make(Shape::new(Lead::Step, 3, 2));
        let halves = rec.make_of(Element::F16, Shape::new(Lead::Fixed, slab, k as u32 / 2));
        let in_slots = InSlots { slots, scales, halves };
        // Rows 0 and 2 of the step have the slots 0, 1 and 4, 5.
        let (chosen, order) = (Chosen { rows: vec![0, 2] }, [4, 2, 0, 3, 5, 1]);
        let take = |t: Tensor, words: &[u32]| chosen.take(t, t.shape, words, Some((&in_slots, &order[..])));
        assert_eq!(take(slots, &order), [2, 0, 3, 1]);
        assert_eq!(take(scales, &[10, 11, 12, 13, 14, 15]), [10, 12, 14, 15]);
        let of_slots = in_rows(&take(halves, &words), 4, k, slab);
        assert_eq!(of_slots, [0, 2, 4, 5].map(|at| rows[16 * at..16 * (at + 1)].to_vec()).concat());
    }
}
