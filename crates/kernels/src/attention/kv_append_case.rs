//! Parity cases of `kv_append`.

use super::attention_case::{Drawn, appended, appended_as};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("kv_append", case)];

/// The appended values are read back by attention over one key, whose weight is one, or over two,
/// whose weights distinguish the keys. Half of the cases have long rows, up to 1024 elements: a
/// wrong number of blocks shows only there.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let window = Some(g.pick(&[1, 2, 2]));
    if g.coin() {
        let rows = g.pick(&[1, 3, 33]);
        return appended_as(g, Drawn { ty, window, rows, dim: 512, ..Drawn::default() });
    }
    appended(g, ty, window)
}
