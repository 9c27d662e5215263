//! Losses.

use crate::{device, dot, numbers, within};
use kernels::run;

/// Loss and derivative of a row by its logits, in f64.
fn expected(logits: &[f32], target: usize, weight: f64) -> (f64, Vec<f32>) {
    let largest = logits.iter().fold(f32::MIN, |a, b| a.max(*b));
    let each: Vec<f64> = logits.iter().map(|x| f64::from(x - largest).exp()).collect();
    let sum: f64 = each.iter().sum();
    let Some(of_target) = each.get(target) else { return (0.0, vec![0.0; logits.len()]) };
    let slope = |(v, e): (usize, &f64)| (weight * (e / sum - f64::from(u8::from(v == target)))) as f32;
    (sum.ln() - of_target.ln(), each.iter().enumerate().map(slope).collect())
}

#[test]
fn losses_over_4096_and_262144_logits_of_the_rows_that_have_a_target() {
    let on = device();
    for vocabulary in [4096, 262_144] {
        let targets = [7, vocabulary as u32 - 1, vocabulary as u32, u32::MAX, 0];
        let weights = [0.25, 0.5, 0.25, 1.0, 0.0];
        let logits = numbers(5 * vocabulary, 1, 8.0);
        let losses = run::cross_entropy(&on, &logits, &targets, vocabulary).expect("fits");
        let d = run::cross_entropy_backward(&on, &logits, &targets, &weights, vocabulary).expect("fits");
        let rows = || logits.chunks(vocabulary).zip(d.chunks(vocabulary)).zip(targets.iter().zip(&weights));
        for (((row, d), (&target, &weight)), [loss, _]) in rows().zip(&losses) {
            let (of_loss, of_d) = expected(row, target as usize, f64::from(weight));
            within(&format!("loss of target {target} of {vocabulary}"), 1e-5, &[*loss], &[of_loss as f32]);
            within(&format!("derivative of target {target} of {vocabulary}"), 1e-6, d, &of_d);
            if target as usize >= vocabulary || weight == 0.0 {
                assert!(d.iter().all(|&d| d == 0.0), "no target, no gradient: {target}");
            }
            if target as usize >= vocabulary {
                assert_eq!(*loss, 0.0, "no target, no loss: {target}");
            }
        }
        // Central differences of the kernel's own losses along a direction.
        let direction: Vec<f32> = d.iter().map(|d| 2.0 * d).collect();
        let total = |by: f32| {
            let moved: Vec<f32> = logits.iter().zip(&direction).map(|(x, d)| x + by * d).collect();
            let losses = run::cross_entropy(&on, &moved, &targets, vocabulary).expect("fits");
            losses.iter().zip(&weights).map(|(loss, w)| f64::from(loss[0]) * f64::from(*w)).sum::<f64>()
        };
        let (got, difference) = (dot(&d, &direction), (total(0.1) - total(-0.1)) / 0.2);
        assert!((got - difference).abs() <= 1e-3 * got, "{vocabulary}: {got}, by differences {difference}");
    }
}

#[test]
fn losses_behind_a_softcap() {
    let (on, vocabulary, cap) = (device(), 4096, 30.0_f32);
    let x = numbers(vocabulary, 1, 60.0);
    let capped: Vec<f32> = x.iter().map(|x| cap * (x / cap).tanh()).collect();
    let (of_loss, of_capped) = expected(&capped, 11, 1.0);
    let y = run::softcap(&on, &x, cap).expect("fits");
    within("loss", 1e-4, &[run::cross_entropy(&on, &y, &[11], vocabulary).expect("fits")[0][0]], &[of_loss as f32]);
    let dy = run::cross_entropy_backward(&on, &y, &[11], &[1.0], vocabulary).expect("fits");
    let dx = run::softcap_backward(&on, &y, &dy, cap).expect("fits");
    let expected = of_capped.iter().zip(&x).map(|(d, x)| d * (1.0 - (x / cap).tanh().powi(2)));
    within("derivative", 1e-5, &dx, &expected.collect::<Vec<_>>());
}
