//! Wrong parameters: the device gets one percent more of a factor, a window of one key more, or
//! another rotation. The oracles keep the right values, and the comparison must see it.

use super::tally::Tally;
use crate::faults::reasons::{self, Holds};
use crate::races::Subject;
use crate::records::Digest;
use anyhow::Context as _;
use kernels::Device;
use std::collections::{BTreeMap, HashMap};

/// Number of cases of each shader that may show a wrong parameter.
const CASES: usize = 32;

/// Parameters that no case shows: the shader without its subgroup form, the parameter and the tag
/// of the reason.
///
/// One percent of epsilon is at most half a percent of a norm, which is an NMSE of 2.5e-5. Kernels
/// that append to a state of 8 bits and attend have the bound 1e-4.
const EXCUSES: &[(&str, &str, &str)] = &[
    ("attention_decode_128_f32 kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
    ("attention_decode_128 kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
    ("attention_decode_rows kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
    ("attention_decode_rows_2 kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
    ("attention_decode_rows_f16 kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
    ("attention_decode_rows_f16_2 kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
    ("attention_decode_rows_f16_4 kv-q8_0 kv-q8_0", "rms_norm.eps", "small"),
];

/// What is changed in a recording.
const CHANGES: &str = include_str!("../../../crates/kernels/src/testing/wrong.rs");

/// The hash of what decides the outcome of a kernel.
pub fn hash(kernel: &str, users: &[&Subject], cases: &HashMap<&'static str, String>) -> String {
    let mut digest = Digest::default();
    digest.add(&CASES.to_le_bytes());
    for (_, excuse) in excuses(kernel) {
        digest.add(format!("{excuse:?}").as_bytes());
    }
    digest.add(CHANGES.as_bytes());
    users.iter().for_each(|of| digest.shader(&of.target, &of.source, cases));
    digest.text()
}

/// Runs the cases of every shader of a kernel with each of their parameters wrong.
pub fn run(device: &Device, kernel: &str, users: &[&Subject]) -> anyhow::Result<Tally> {
    let (mut tally, mut needed) = (Tally::default(), vec![]);
    for of in users {
        let label = of.target.shader.label();
        for (name, red) in shown(device, of).with_context(|| label.clone())? {
            match (red, excuse(&label, &name)) {
                (true, _) => tally.red += 1,
                (false, Some(found)) => {
                    needed.push(found);
                    tally.excused += 1;
                }
                (false, None) => {
                    println!("{label}: survived: {name}");
                    tally.survived += 1;
                }
            }
        }
    }
    for (n, (label, name, tag)) in excuses(kernel) {
        let reason = reasons::of(tag).with_context(|| format!("{tag:?} is not a tag of reasons.rs"))?;
        if !needed.contains(&n) && reason.holds == Holds::Always {
            println!("{label}: stale: {name}: {tag}\n    {}", reason.why);
            tally.stale += 1;
        }
    }
    Ok(tally)
}

/// The excuses for the shaders of a kernel, with their indices.
fn excuses(kernel: &str) -> impl Iterator<Item = (usize, &'static (&'static str, &'static str, &'static str))> {
    EXCUSES.iter().enumerate().filter(move |(_, (of, ..))| of.split(' ').next() == Some(kernel))
}

/// The index of the excuse for a parameter of a shader.
fn excuse(label: &str, name: &str) -> Option<usize> {
    let form = label.split(" +").next().unwrap_or(label);
    EXCUSES.iter().position(|(of, parameter, _)| *of == form && *parameter == name)
}

/// The parameters of the operations that a shader computes, each with whether a case failed when
/// the parameter was wrong.
fn shown(device: &Device, of: &Subject) -> anyhow::Result<BTreeMap<String, bool>> {
    let (shader, mut shown) = (&of.target.shader, BTreeMap::new());
    let portable = !shader.subgroups;
    for (drawn, case) in of.target.cases(device.caps(), 0, CASES) {
        let mut wrongs = case.wrongs(device.caps(), shader)?;
        wrongs.retain(|wrong| shown.get(&wrong.name) != Some(&true));
        if wrongs.is_empty() {
            continue;
        }
        anyhow::ensure!(case.compare(device, portable)?.holds(), "fails with the right parameters: {drawn:?}");
        for wrong in wrongs {
            // With another mask or without a softcap another kernel may run.
            if let Some(outcome) = case.compare_wrong(&wrong, device, portable)? {
                *shown.entry(wrong.name).or_default() |= !outcome.holds();
            }
        }
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::testing::kernel::compose::Shader;

    #[test]
    fn every_excuse_has_a_reason_and_a_shader() {
        let shaders = kernels::testing::language::variants().flat_map(|variant| Shader::all(variant, &[0]));
        let labels: Vec<_> = shaders.map(|shader| shader.label()).collect();
        for (n, (label, name, tag)) in EXCUSES.iter().enumerate() {
            assert!(reasons::of(tag).is_some() && labels.iter().any(|known| known == label), "{label} {name} {tag}");
            assert_eq!(excuse(label, name), Some(n), "{label} {name} stands here twice");
            assert_eq!(excuse(&format!("{label} +subgroups"), name), Some(n));
            assert_eq!(excuse(&label.replace("kv-q8_0", "kv-f32"), name), None);
        }
    }
}
