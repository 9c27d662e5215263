//! Parity cases of `attention_decode_rows_f16`.

use super::attention::{Attend, attention};
use super::kv_append::kv_append;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{KvState, StateKind};
use crate::kernel::random::Gen;
use crate::norm::pack_f16::pack_f16_as_is;
use crate::norm::rms_norm::rms_norm;
use crate::norm::rope::rope;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_decode_rows_f16", case)];

const HEAD_DIM: u32 = 128;

/// Rows of separate sequences after others in the states, as models record them: after no key, some
/// of each quarter of the keys taken at a time, all, one more, and many; normed or not, heads so
/// small that eps counts; two rows of one sequence, which the form for long contexts serves; every
/// number of heads that a workgroup takes; and the contents of the states afterwards.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    // Four heads go together if there are many.
    let (rows, heads, group) =
        g.pick(&[(2, 1, 1), (3, 2, 2), (4, 1, 3), (5, 3, 4), (2, 3, 6), (17, 3, 16), (25, 4, 8)]);
    let width = heads * HEAD_DIM;
    let mut case = Case::with_states(rows, &[StateKind::Kv { ty, width, ring: None }; 2], rows + 1, 512);
    let first = g.pick(&[0, 1]);
    case.input.sequences = (0..rows).rev().map(|row| row + first).collect();
    case.input.positions = (0..rows).map(|_| g.pick(&[0, 1, 2, 16, 20, 40, 56, 64, 65, 130, 400, 511])).collect();
    if g.pick(&[false, false, true]) {
        case.input.sequences[1] = case.input.sequences[0];
        case.input.positions[..2].copy_from_slice(&[30, 31]);
    }
    let attend = Attend { mask: Mask::Causal, scale: 1.0 / (HEAD_DIM as f32).sqrt(), softcap: None };
    case.hold(g, None);
    let table = case.rec.rope_rows(&RopeTable::new(HEAD_DIM, 1e4));
    let size = g.pick(&[3.0, 3.0, 1e-3]);
    let q = case.uniform(g, group * width, size).heads(group * heads);
    let (k, v) = (case.uniform(g, width, size).heads(heads), case.tensor(g, width).heads(heads));
    let normed = g.coin();
    let mut largest = 1.0_f32;
    let [q, k] = [q, k].map(|x| {
        let w = normed.then(|| g.values(HEAD_DIM as usize));
        largest = w.iter().flatten().fold(largest, |largest, w| largest.max(w.abs()));
        let w = w.map(|w| case.given_vector(w));
        let x = w.map_or(x, |w| rms_norm(&mut case.rec, x, Some(w), 1e-6));
        rope(&mut case.rec, x, table)
    });
    let states = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, states, k, v);
    let y = attention(&mut case.rec, q, kv, heads, attend);
    let (scales, halves) = pack_f16_as_is(&mut case.rec, y.flat());
    case.expect(scales);
    case.expect(halves);
    // A later step reads each row's value, and the score of its key shows how much the value counts
    // relative to the one before. The state may round an element of a key the other way if its last
    // bit before rounding differs. That moves a score by 2^-11 of the element, so scores must stay
    // near 1.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(
        &mut case.rec,
        later,
        kv,
        heads,
        Attend { mask: Mask::Window(2), scale: 0.1 / largest, softcap: None },
    );
    case.expect(found);
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::caps::table::Table;
    use crate::caps::table::measured::DEEP_KEYS;
    use crate::graph::tensor::Counts;
    use crate::graph::tensor::{Lead, Shape, Weight};
    use crate::kernel::dispatch::When;
    use crate::plan::{PlanOptions, Precision, plan};
    use crate::{Class, ops};
    use gguf::GgmlType;

    const CAPS: Caps = Caps {
        cooperative: true,
        max_storage_buffers: 16,
        max_workgroup_bytes: 32 << 10,
        table: Table::usual(Class::Discrete, true),
        ..Caps::WEBGPU
    };

    /// The kernels of a fast plan of `rows` rows: an attention with 8 heads of 4 queries over such
    /// states, and the product that reads it.
    fn kernels(caps: &Caps, rows: u32, ty: KvType) -> Vec<(&'static str, When)> {
        let (width, q_width) = (8 * HEAD_DIM, 32 * HEAD_DIM);
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[StateKind::Kv { ty, width, ring: None }; 2]);
        let table = rec.rope_rows(&RopeTable::new(HEAD_DIM, 1e4));
        let [q, k, v] = [q_width, width, width].map(|width| rec.host_input(width, Shape::new(Lead::Step, rows, width)));
        let [q, k] = [q.heads(32), k.heads(8)].map(|x| rope(&mut rec, x, table));
        let states = KvState::new(rec.state(0), rec.state(1));
        let kv = kv_append(&mut rec, states, k, v.heads(8));
        let y = attention(&mut rec, q, kv, 8, Attend { mask: Mask::Causal, scale: 0.1, softcap: None });
        let w = Weight::loaded(0, GgmlType::Q8_0, 64, q_width);
        let y = ops::matmul(&mut rec, w, y.flat());
        rec.output(y);
        let options = PlanOptions::plain().precision(Precision::Fast);
        plan(&rec, caps, &options)
            .unwrap()
            .dispatches
            .iter()
            .map(|placed| (placed.dispatch.variant.name, placed.dispatch.when))
            .collect()
    }

    #[test]
    fn a_batch_over_values_in_f16_is_one_kernel_near_and_three_far_and_rows_of_a_sequence_take_tiles() {
        let product = ("matmul_tile32_narrow", When::Always);
        // Where values are f16, the joins pack their results.
        let others = |around, rows, values| {
            let (merge, pack) = match values {
                KvType::F16 => ("attention_merge_parts_f16", None),
                _ => ("attention_merge_parts", Some(("pack_f16", around))),
            };
            let tiles = [("attention_flash_128_parts", When::Deep(DEEP_KEYS)), (merge, When::Deep(DEEP_KEYS))];
            let rows = [("norm_rope_heads", around), ("attention_split_4", rows), (merge, rows)];
            rows.into_iter().chain(tiles).chain(pack).chain([product]).collect::<Vec<_>>()
        };
        let far = others(When::far(2048), When::Far { near: 2048, deep: DEEP_KEYS }, KvType::F16);
        assert_eq!(
            kernels(&CAPS, 32, KvType::F16),
            [vec![("attention_decode_rows_f16_4", When::Near(2048))], far].concat()
        );
        let apart = |values| others(When::Always, When::Far { near: 0, deep: DEEP_KEYS }, values);
        assert_eq!(kernels(&CAPS, 32, KvType::Q8_0), apart(KvType::Q8_0));
        assert_eq!(kernels(&Caps { max_storage_buffers: 11, ..CAPS }, 32, KvType::F16), apart(KvType::F16));
    }

    #[test]
    fn few_rows_take_two_heads_to_a_workgroup_and_many_need_no_join() {
        assert_eq!(kernels(&CAPS, 16, KvType::F16)[0].0, "attention_decode_rows_f16_2");
        let names: Vec<_> = kernels(&CAPS, 64, KvType::F16).iter().map(|kernel| kernel.0).collect();
        let tiles = ["attention_flash_128_parts", "attention_merge_parts"];
        let rows = ["attention_decode_rows_f16_4", "norm_rope_heads", "attention_split_4"];
        assert_eq!(names, [rows.as_slice(), &tiles, &["pack_f16", "matmul_tile64_narrow"]].concat());
    }
}
