//! Parity cases of `attention_tile`.

use super::attention_case::{Drawn, appended_as};
use super::attention_step_case::of_documents;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_tile", case)];

/// Keys of a cache and of the step; tiles partly filled, because rows or heads do not divide them;
/// one sequence and several, every mask, softcaps, every KV type.
pub fn case(g: &mut Gen) -> Case {
    let dim = g.pick(&[64, 128, 256, 512]);
    let (rows, group) = g.pick(&[(65, 2), (65, 3), (65, 7), (66, 16), (67, 4), (68, 1), (130, 1), (260, 1), (260, 2)]);
    if g.coin() {
        return of_documents(g, rows, dim, group);
    }
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let mut case = appended_as(g, Drawn { ty, rows, dim, group: Some(group), ..Drawn::default() });
    // The tiles are few. With the usual table every row would read its keys by itself.
    case.split_workgroups = Some(1);
    case
}

#[cfg(test)]
mod tests {
    use crate::attention::attention::{Attend, attention};
    use crate::attention::kv_append::kv_append;
    use crate::caps::table::Table;
    use crate::graph::tensor::{Counts, Lead, Shape};
    use crate::plan::{PlanOptions, Precision, plan};
    use crate::{Caps, Class, KvState, Recorder, StateKind};
    use cpu_ref::{KvType, Mask};

    /// The kernel of an attention of `rows` rows with 8 heads of 4 queries.
    fn kernel(class: Class, cooperative: bool, rows: u32) -> &'static str {
        let width = 8 * 128;
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[StateKind::kv(KvType::F16, width); 2]);
        let [q, k, v] =
            [4 * width, width, width].map(|width| rec.host_input(width, Shape::new(Lead::Step, rows, width)));
        let states = KvState::new(rec.state(0), rec.state(1));
        let kv = kv_append(&mut rec, states, k.heads(8), v.heads(8));
        let y = attention(&mut rec, q.heads(32), kv, 8, Attend { mask: Mask::Causal, scale: 0.1, softcap: None });
        rec.output(y);
        let (max_workgroup_bytes, table) = (32 << 10, Table::usual(class, cooperative));
        let caps = Caps { cooperative, max_workgroup_bytes, table, ..Caps::WEBGPU };
        let planned = plan(&rec, &caps, &PlanOptions::plain().precision(Precision::Fast)).unwrap();
        planned
            .dispatches
            .iter()
            .map(|placed| placed.dispatch.variant.name)
            .find(|name| name.starts_with("attention"))
            .unwrap()
    }

    /// 256 rows are 256 tiles of 64 threads, and 257 rows are 264.
    #[test]
    fn rows_read_their_keys_by_themselves_until_tiles_fill_the_device() {
        let of = |rows| kernel(Class::Discrete, false, rows);
        assert_eq!(
            [64, 65, 256, 257].map(of),
            ["attention_split_4", "attention_split_4", "attention_split_4", "attention_tile_128"]
        );
        assert_eq!(
            [64, 65].map(|rows| kernel(Class::Software, false, rows)),
            ["attention_split_4", "attention_tile_128"]
        );
        assert_eq!(kernel(Class::Discrete, true, 256), "attention_flash_128");
    }
}
