//! Parity cases of `attention_flash`.

use super::attention_case::{Drawn, appended_as};
use crate::kernel::random::Gen;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_flash", case)];

/// Tiles partly filled, because rows or heads do not divide them; one sequence and two, every mask,
/// softcaps, every KV type; over few keys, and rows of a sequence over many, in parts.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let head = g.pick(&[64, 128, 256, 512]);
    if g.coin() {
        // The last tile of the keys is full, or has one key or many.
        let (rows, group) = g.pick(&[(17, 1), (20, 3), (21, 2), (24, 3), (33, 8), (53, 4), (64, 2), (70, 4)]);
        let window = g.pick(&[None, None, Some(400), Some(1000)]);
        let mut case =
            appended_as(g, Drawn { ty, rows, dim: head, group: Some(group), window, late: true, ..Drawn::default() });
        case.options = case.options.precision(Precision::Fast);
        return case;
    }
    let (rows, group) = g.pick(&[
        (64, 7),
        (65, 2),
        (65, 3),
        (65, 8),
        (66, 16),
        (67, 4),
        (68, 1),
        (130, 1),
        (130, 4),
        (260, 1),
        (260, 2),
    ]);
    let mut case = appended_as(g, Drawn { ty, rows, dim: head, group: Some(group), ..Drawn::default() });
    case.options = case.options.precision(Precision::Fast);
    case
}

#[cfg(test)]
mod tests {
    use crate::attention::attention_flash::{RAISE, TILES};
    use crate::kernel::compose::Shader;

    #[test]
    fn tiles_say_what_their_constants_say() {
        for tile in &TILES {
            for constant in [("HEAD", tile.head), ("QUERIES", tile.queries), ("KEYS", tile.keys)] {
                assert!(
                    tile.variant.constants().any(|found| found == constant),
                    "{}: not {constant:?}",
                    tile.variant.name
                );
            }
            let source = Shader::all(tile.variant, &[32])[0].source();
            assert!(source.contains(&format!("const RAISE = {RAISE:?};")), "{}: not {RAISE}", tile.variant.name);
        }
    }
}
