//! Derivative of the weights of chosen experts by the router's logits.

use crate::RouteSpec;

/// With the shares p of the softmax over all experts, or over the chosen ones, and
/// `q[j] = scale[experts[t, j]] dweights[t, j]`: `dlogits[t, e] = p[e] (q[e] - sum_j p[j] q[j])`
/// with q = 0 for experts that were not chosen; without a share, 0. It is the derivative of
/// [`route`](crate::route()) through the weights. The choice is constant.
///
/// `logits` and `dlogits [T, E]`, `experts` and `dweights [T, k]`.
pub fn route_backward(spec: &RouteSpec<'_>, logits: &[f32], experts: &[u32], dweights: &[f32], dlogits: &mut [f32]) {
    let RouteSpec { experts: e, chosen: k, normalize, scale } = *spec;
    let rows = crate::check::rows("route_backward: logits", logits.len(), e);
    crate::check::len("route_backward: experts", experts.len(), rows * k);
    crate::check::len("route_backward: dweights", dweights.len(), rows * k);
    crate::check::len("route_backward: dlogits", dlogits.len(), logits.len());
    for (t, (logits, dlogits)) in logits.chunks_exact(e).zip(dlogits.chunks_exact_mut(e)).enumerate() {
        let chosen = &experts[t * k..(t + 1) * k];
        let largest = logits.iter().fold(f64::NEG_INFINITY, |max, &x| max.max(f64::from(x)));
        let counts = |e: usize| !normalize || chosen.contains(&(e as u32));
        let power = |e: usize| if counts(e) { (f64::from(logits[e]) - largest).exp() } else { 0.0 };
        let sum: f64 = (0..e).map(power).sum();
        let mut q = vec![0.0; e];
        for (&e, &dw) in chosen.iter().zip(&dweights[t * k..]) {
            q[e as usize] = f64::from(dw) * scale.map_or(1.0, |s| f64::from(s[e as usize]));
        }
        let mean: f64 = (0..e).map(|e| power(e) / sum * q[e]).sum();
        for (e, dlogit) in dlogits.iter_mut().enumerate() {
            *dlogit = (power(e) / sum * (q[e] - mean)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::route_backward;
    use crate::differences::{holds, numbers};
    use crate::{RouteSpec, route};

    #[test]
    fn it_is_the_derivative_of_the_weights_while_the_choice_stays() {
        let (rows, e, k) = (3, 6, 2);
        // Two logits of each row are so far above the others that no step changes the choice.
        let logits: Vec<f32> = numbers(rows * e, 1)
            .iter()
            .enumerate()
            .map(|(i, x)| if i % 3 == 0 { 2.0 + 0.3 * x } else { 0.5 * x })
            .collect();
        let (dw, factors) = (numbers(rows * k, 2), numbers(e, 3));
        for (normalize, scale) in [(true, None), (false, None), (true, Some(&factors[..])), (false, Some(&factors[..]))]
        {
            let spec = RouteSpec { experts: e, chosen: k, normalize, scale };
            let (mut experts, mut weights) = (vec![0; rows * k], vec![0.0; rows * k]);
            route(&spec, &logits, &mut experts, &mut weights);
            let mut dlogits = vec![f32::NAN; rows * e];
            route_backward(&spec, &logits, &experts, &dw, &mut dlogits);
            // The slots of a row may come in another order; the derivative follows the experts.
            let by_slot = |logits: &[f32]| {
                let (mut found, mut weights) = (vec![0; rows * k], vec![0.0; rows * k]);
                route(&spec, logits, &mut found, &mut weights);
                let of = |s: usize| (0..k).find(|j| found[s / k * k + j] == experts[s]).map(|j| weights[s / k * k + j]);
                (0..rows * k).map(|s| of(s).expect("the same choice")).collect()
            };
            holds(by_slot, &logits, &dw, &dlogits);
        }
    }

    #[test]
    fn the_only_choice_has_all_the_weight() {
        let spec = RouteSpec { experts: 3, chosen: 1, normalize: true, scale: None };
        let mut dlogits = [f32::NAN; 3];
        route_backward(&spec, &[1.0, 2.0, 3.0], &[2], &[5.0], &mut dlogits);
        assert_eq!(dlogits, [0.0; 3]);
    }
}
