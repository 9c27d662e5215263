//! Wrong parameters: the device gets one percent more of a factor, a window of one key more, or
//! another rotation. The oracles keep the right values, and the comparison must see it.

use super::reasons::{self, Holds};
use super::{Composed, Tally};
use crate::records::Digest;
use anyhow::Context as _;
use kernels::Device;
use std::collections::{BTreeMap, HashMap};

/// Number of cases of each shader that may show a wrong parameter.
const CASES: usize = 32;

/// Parameters that no case shows: the kernel, the parameter and the tag of the reason.
const EXCUSES: &[(&str, &str, &str)] = &[];

/// What is changed in a recording.
const CHANGES: &str = include_str!("../../../crates/kernels/src/testing/wrong.rs");

/// The hash of what decides the outcome of a kernel.
pub fn hash(users: &[&Composed<'_>], cases: &HashMap<&'static str, String>) -> String {
    let mut digest = Digest::default();
    digest.add(&CASES.to_le_bytes());
    digest.add(format!("{EXCUSES:?}").as_bytes());
    digest.add(CHANGES.as_bytes());
    users.iter().for_each(|of| digest.shader(of.target, &of.source, cases));
    digest.text()
}

/// Runs the cases of every shader of a kernel with each of their parameters wrong.
pub fn run(device: &Device, kernel: &str, users: &[&Composed<'_>]) -> anyhow::Result<Tally> {
    let (mut tally, mut needed) = (Tally::default(), vec![]);
    for of in users {
        let label = of.target.shader.label();
        for (name, red) in shown(device, of).with_context(|| label.clone())? {
            match (red, excuse(kernel, &name)) {
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
    for (n, (_, name, tag)) in EXCUSES.iter().enumerate().filter(|(_, (of, ..))| *of == kernel) {
        let reason = reasons::of(tag).with_context(|| format!("{tag:?} is not a tag of reasons.rs"))?;
        if !needed.contains(&n) && reason.holds == Holds::Always {
            println!("{kernel}: stale: {name}: {tag}\n    {}", reason.why);
            tally.stale += 1;
        }
    }
    Ok(tally)
}

fn excuse(kernel: &str, name: &str) -> Option<usize> {
    EXCUSES.iter().position(|(of, parameter, _)| *of == kernel && *parameter == name)
}

/// The parameters of the operations that a shader computes. True if a case shows the wrong value.
fn shown(device: &Device, of: &Composed<'_>) -> anyhow::Result<BTreeMap<String, bool>> {
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

    #[test]
    fn every_excuse_has_a_reason_and_a_kernel() {
        let kernels: Vec<_> = kernels::testing::lower::variants().map(|variant| variant.name).collect();
        for (n, (kernel, name, tag)) in EXCUSES.iter().enumerate() {
            assert!(reasons::of(tag).is_some() && kernels.contains(kernel), "{kernel} {name} {tag}");
            assert_eq!(excuse(kernel, name), Some(n), "{kernel} {name} stands here twice");
        }
    }
}
