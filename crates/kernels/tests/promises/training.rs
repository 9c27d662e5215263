//! The step of an optimizer, and the losses of a network that takes it.

use crate::{device, dot, numbers, within};
use cpu_ref::{AdamwSpec, Adapted};
use kernels::run::{self, Matrix};

const SPEC: AdamwSpec = AdamwSpec { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.01 };

/// Parameters and moments in f64.
struct Exact {
    p: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
}

impl Exact {
    fn new(p: &[f32]) -> Self {
        let zeros = vec![0.0; p.len()];
        Self { p: p.iter().map(|&p| f64::from(p)).collect(), m: zeros.clone(), v: zeros }
    }

    fn step(&mut self, rate: f64, t: u32, gradient: &[f64]) {
        for (i, g) in gradient.iter().enumerate() {
            self.m[i] = SPEC.beta1 * self.m[i] + (1.0 - SPEC.beta1) * g;
            self.v[i] = SPEC.beta2 * self.v[i] + (1.0 - SPEC.beta2) * g * g;
            let [m, v] =
                [(self.m[i], SPEC.beta1), (self.v[i], SPEC.beta2)].map(|(x, beta)| x / (1.0 - beta.powi(t as i32)));
            self.p[i] -= rate * (m / (v.sqrt() + SPEC.eps) + SPEC.decay * self.p[i]);
        }
    }
}

fn narrow(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&x| x as f32).collect()
}

/// The relative error (L2) of what changed since `from`.
fn apart(got: &[f32], expected: &[f64], from: &[f32]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let wrong = squares(&mut got.iter().zip(expected).map(|(a, b)| f64::from(*a) - b));
    (wrong / squares(&mut expected.iter().zip(from).map(|(a, b)| a - f64::from(*b)))).sqrt()
}

#[test]
fn ten_steps_of_adamw() {
    for n in [16, 128, 1021] {
        let start = numbers(n, 1, 1.0);
        let [mut p, mut m, mut v] = [start.clone(), vec![0.0; n], vec![0.0; n]];
        let mut exact = Exact::new(&start);
        for t in 1..=10 {
            let gradient = numbers(n, 10 + t, 1e-3 * t as f32);
            let to = Adapted { p: &mut p, m: &mut m, v: &mut v };
            run::adamw(&device(), SPEC, (1e-3, f32::MAX, t), 1.0, &gradient, to).expect("fits");
            exact.step(f64::from(1e-3_f32), t, &gradient.iter().map(|&g| f64::from(g)).collect::<Vec<_>>());
            let what = format!("{n} parameters after {t} steps");
            within(&what, 1e-6, &p, &narrow(&exact.p));
            let zeros = vec![0.0; n];
            let errors = [apart(&p, &exact.p, &start), apart(&m, &exact.m, &zeros), apart(&v, &exact.v, &zeros)];
            assert!(
                errors[0] <= 1e-4 && errors[1..].iter().all(|e| *e <= 1e-6),
                "{what}: update, m and v differ by {errors:?}"
            );
        }
        let to = Adapted { p: &mut p, m: &mut m, v: &mut v[1..] };
        crate::is_shape_error(run::adamw(&device(), SPEC, (1e-3, 1.0, 1), 1.0, &start, to));
    }
}

#[test]
fn sums_of_squares_of_any_number_of_elements() {
    for n in [1, 63, 256, 1024, 4097, 4096 * 14_336 / 16 + 3] {
        let x = numbers(n, 1, 0.01);
        let got = run::sum_squares(&device(), &x).expect("fits");
        let expected = dot(&x, &x);
        assert!((f64::from(got) / expected - 1.0).abs() <= 1e-5, "{n}: {got} and {expected}");
    }
}

/// Rows, inputs, hidden units and classes of the network below.
const T: usize = 16;
const K: usize = 8;
const H: usize = 24;
const N: usize = 5;

/// The loss of W2 silu(W1 x), and its derivatives by W1 and W2, in f64.
fn exact(x: &[f32], targets: &[u32], w1: &[f64], w2: &[f64]) -> (f64, [Vec<f64>; 2]) {
    let (mut loss, mut d1, mut d2) = (0.0, vec![0.0; H * K], vec![0.0; N * H]);
    for (x, &target) in x.chunks(K).zip(targets) {
        let h: Vec<f64> = (0..H).map(|j| (0..K).map(|k| w1[j * K + k] * f64::from(x[k])).sum()).collect();
        let sigmoid: Vec<f64> = h.iter().map(|h| 1.0 / (1.0 + (-h).exp())).collect();
        let logits: Vec<f64> = (0..N).map(|n| (0..H).map(|j| w2[n * H + j] * h[j] * sigmoid[j]).sum()).collect();
        let sum: f64 = logits.iter().map(|y| y.exp()).sum();
        loss += (sum.ln() - logits[target as usize]) / T as f64;
        for (n, y) in logits.iter().enumerate() {
            let dy = (y.exp() / sum - f64::from(u8::from(n == target as usize))) / T as f64;
            for (j, (h, s)) in h.iter().zip(&sigmoid).enumerate() {
                d2[n * H + j] += dy * h * s;
                let dh = dy * w2[n * H + j] * s * (1.0 + h * (1.0 - s));
                (0..K).for_each(|k| d1[j * K + k] += dh * f64::from(x[k]));
            }
        }
    }
    (loss, [d1, d2])
}

#[test]
fn the_losses_of_a_network_fall_as_in_f64() {
    let (on, rate) = (device(), 0.02);
    let (x, targets): (_, Vec<u32>) = (numbers(T * K, 1, 1.0), (0..T as u32).map(|t| t * 7 % N as u32).collect());
    let weights = [1.0 / T as f32; T];
    let mut parts =
        [(2, H * K), (3, N * H)].map(|(seed, len)| [numbers(len, seed, 0.5), vec![0.0; len], vec![0.0; len]]);
    let mut curve = parts.each_ref().map(|part| Exact::new(&part[0]));
    let (mut first, mut last) = (0.0, 0.0);
    for t in 1..=50 {
        let [w1, w2] = [Matrix::f32(&parts[0][0], H, K), Matrix::f32(&parts[1][0], N, H)];
        let h = run::matmul(&on, &x, w1).expect("fits");
        let bent = run::silu(&on, &h).expect("fits");
        let logits = run::matmul(&on, &bent, w2).expect("fits");
        let losses = run::cross_entropy(&on, &logits, &targets, N).expect("fits");
        let loss = losses.iter().map(|loss| f64::from(loss[0])).sum::<f64>() / T as f64;
        let dlogits = run::cross_entropy_backward(&on, &logits, &targets, &weights, N).expect("fits");
        let dh = run::silu_backward(&on, &h, &run::matmul_input(&on, &dlogits, w2).expect("fits")).expect("fits");
        let d1 = run::matmul_weight(&on, &dh, &x, H, K).expect("fits");
        let d2 = run::matmul_weight(&on, &dlogits, &bent, N, H).expect("fits");
        assert!(d1.iter().chain(&d2).all(|d| d.is_finite()), "gradients of step {t}");
        let (expected, exact) = exact(&x, &targets, &curve[0].p, &curve[1].p);
        assert!((loss - expected).abs() <= 1e-4 * expected, "step {t}: {loss}, in f64 {expected}");
        for ((part, gradient), (curve, exact)) in parts.iter_mut().zip([d1, d2]).zip(curve.iter_mut().zip(exact)) {
            let [p, m, v] = part;
            run::adamw(&on, SPEC, (rate, f32::MAX, t), 1.0, &gradient, Adapted { p, m, v }).expect("fits");
            curve.step(f64::from(rate), t, &exact);
        }
        (first, last) = (if t == 1 { loss } else { first }, loss);
    }
    assert!(last < 0.5 * first, "from {first} to {last}");
}
