//! Split attention of one row for heads of 512 whose keys are shared by four, scores first, then values.

use super::attention::{Drawn, appended_as};
use super::attention_split::ATTENTION_SPLIT;
use crate::parity::{Case, Gen};
use cpu_ref::KvType;

kernel! {
    ATTENTION_DEEP_LONG: "attention_deep_long" = ATTENTION_SPLIT with
    entry: "attention_deep_long",
    wgsl: [
        "attention_deep_long.wgsl", "shared/heads_4.wgsl", "shared/eights_2.wgsl", "shared/sixteen.wgsl", "shared/attention_part.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// A row over keys in one part and in as many as there can be, as the planner splits them.
pub fn case(g: &mut Gen) -> Case {
    let (ty, group) = (g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]), Some(g.pick(&[4, 8])));
    appended_as(g, Drawn { ty, dim: 512, group, ..Drawn::default() })
}
