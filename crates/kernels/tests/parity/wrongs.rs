//! Wrong parameters of recorded operations: the device gets them, the oracles do not, and the
//! comparison sees it.

use super::DEVICE;
use kernels::testing::sweep::Target;
use std::collections::BTreeMap;

/// Number of cases that may show a wrong parameter.
const CASES: usize = 32;

/// The parameters of the operations that a portable shader computes. True if a case shows the wrong
/// value.
fn shown(label: &str) -> BTreeMap<String, bool> {
    let target =
        Target::all(DEVICE.caps()).into_iter().find(|target| target.shader.label() == label).expect("a shader");
    let mut shown = BTreeMap::new();
    for (drawn, case) in target.cases(DEVICE.caps(), 0, CASES) {
        let mut wrongs = case.wrongs(DEVICE.caps(), &target.shader).unwrap();
        wrongs.retain(|wrong| shown.get(&wrong.name) != Some(&true));
        assert!(
            wrongs.is_empty() || case.compare(&DEVICE, true).unwrap().holds(),
            "fails with the right parameters: {drawn:?}"
        );
        for wrong in wrongs {
            if let Some(outcome) = case.compare_wrong(&wrong, &DEVICE, true).unwrap() {
                *shown.entry(wrong.name).or_default() |= !outcome.holds();
            }
        }
    }
    shown
}

#[test]
fn wrong_parameters_of_recorded_operations_are_seen() {
    let attention = ["mask", "scale", "softcap", "softcap lost", "window"].map(|name| format!("attention.{name}"));
    let rotation = ["factors lost", "magnitude", "scale", "theta"].map(|name| format!("rope.{name}"));
    let (eps, cap) = ("rms_norm.eps".to_string(), "softcap.cap".to_string());
    let expected = [
        ("attention kv-f32 kv-f32", attention.to_vec()),
        ("rms_norm", vec![eps]),
        ("rope", rotation.to_vec()),
        ("softcap", vec![cap]),
    ];
    for (label, expected) in expected {
        let shown = shown(label);
        assert_eq!(shown.keys().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>(), "{label}");
        assert!(shown.values().all(|shown| *shown), "{label}: {shown:?}");
    }
}
