//! `verify-shaders --interpret`: computes shaders on the host and holds the results to the oracles:
//! what only some cards run, and what depends on the size of subgroups.

use super::{Trial, cooperative, one_of_each};
use crate::lanes;
use kernels::testing::kinds::card;
use kernels::testing::sweep::Target;
use kernels::{Caps, Class};
use std::sync::Mutex;
use std::time::Instant;

/// Sizes of subgroups: the smallest of a device, and the size in which its shaders run.
pub const SUBGROUPS: [[u32; 2]; 7] = [[4, 4], [8, 8], [16, 16], [32, 32], [64, 64], [8, 32], [32, 64]];

/// The device whose plans have cooperative matrices.
pub fn cooperating() -> Caps {
    card(Class::Discrete, 32, true)
}

/// The shaders of a device with such subgroups that exchange values in them: of every variant and
/// type of states one. Its weight format is another one for every pair of sizes.
pub fn exchanging(caps: &Caps, [smallest, subgroup]: [u32; 2]) -> Vec<Target> {
    let targets = Target::all(caps).into_iter();
    let targets = targets.filter(|target| target.shader.subgroups && target.shader.fewest_threads() <= smallest);
    one_of_each(targets, (smallest + subgroup) as usize, |_| ())
}

/// Runs the least case of each shader, on the plan of a device, in subgroups of so many threads.
/// Returns a line for each shader whose results are not those of the oracles.
pub fn wrong(targets: &[Target], caps: &Caps, subgroup: u32) -> Vec<String> {
    let wrong = Mutex::new(vec![]);
    let work = |_: &mut (), target: &Target| {
        let verdict = match target.least(caps) {
            None => Some("no case reaches it".to_string()),
            Some((drawn, case)) => match Trial::of(target, &case, caps, subgroup as usize, u64::MAX) {
                Ok(trial) if trial.right.holds() => None,
                Ok(trial) => Some(format!("{:?}: {drawn:?}", trial.right.worst)),
                Err(error) => Some(format!("{error:#}: {drawn:?}")),
            },
        };
        wrong.lock().expect("no panic").extend(verdict.map(|verdict| format!("{}: {verdict}", target.shader.label())));
        Ok(())
    };
    lanes::each(lanes::cores(), targets, || Ok(()), work).expect("no shader stops the others");
    wrong.into_inner().expect("no panic")
}

/// Computes the shaders whose kernel's name contains `kernel`: every variant with cooperative
/// matrices, once for each way to stage a weight and for each type of cache, and every kernel that
/// exchanges values in subgroups, at each of [`SUBGROUPS`]. Returns true if all hold.
pub fn run(kernel: &str) -> anyhow::Result<bool> {
    let begin = Instant::now();
    let (mut computed, mut beyond) = (0, 0);
    let mut hold = |what: String, mut targets: Vec<Target>, caps: &Caps, subgroup: u32| {
        targets.retain(|target| target.shader.variant.name.contains(kernel));
        let wrong = wrong(&targets, caps, subgroup);
        wrong.iter().for_each(|line| println!("{line}"));
        println!(
            "{:>5} shaders {what}: {} beyond their bounds ({:.0} s)",
            targets.len(),
            wrong.len(),
            begin.elapsed().as_secs_f64()
        );
        computed += targets.len();
        beyond += wrong.len();
    };
    let caps = cooperating();
    hold("with cooperative matrices".to_string(), cooperative(&caps), &caps, 32);
    for sizes @ [smallest, subgroup] in SUBGROUPS {
        let caps = card(Class::Discrete, smallest, false);
        hold(
            format!("of a device with subgroups of {smallest}, in {subgroup} threads"),
            exchanging(&caps, sizes),
            &caps,
            subgroup,
        );
    }
    anyhow::ensure!(
        computed > 0,
        "no shader with cooperative matrices or subgroups has {kernel:?} in its kernel's name"
    );
    Ok(beyond == 0)
}
