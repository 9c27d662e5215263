//! Factors of the default model learn one text: the loss falls as gradients of the right sign and
//! size make it fall.

use kernels::cpu_ref::{AdamwSpec, Adapted};
use kernels::{Executor, Watch, run};
use model::Model;
use std::path::Path;
use train::{Document, GradientOptions, Gradients, Targets, Trained};

const SPEC: AdamwSpec = AdamwSpec { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.0 };

#[test]
fn the_loss_of_one_text_falls_by_30_percent_in_3_steps_and_by_half_in_20() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    let model = Model::open(file).expect("the default model").on(Executor::Cpu).expect("a model");
    let ids: Vec<u32> = (0..16).map(|t| t * 37 % 211 + 20).collect();
    let targets = ids[1..].iter().copied().chain([99]).collect();
    let text = [Document { ids, targets, ..Document::default() }];
    let options = GradientOptions::default().rows(64);
    let mut factors = "all".parse::<Targets>().expect("a group").factors(model.weights(), 8, 2.0, 1).expect("factors");
    let sizes: Vec<usize> = factors.iter().map(|pair| pair.a.len() + pair.b.len()).collect();
    let n: usize = sizes.iter().sum();
    let (mut m, mut v, mut losses) = (vec![0.0; n], vec![0.0; n], vec![]);
    for t in 1..=20 {
        let mut gradients = Gradients::new(&model, &Trained::Factors(factors.clone()), &options).expect("gradients");
        losses.push(gradients.compute(&text, Watch::default()).expect("a loss").loss);
        let gradient: Vec<f32> =
            gradients.gradients().expect("gradients").iter().flat_map(|of| of.values.clone()).collect();
        assert!(gradient.iter().all(|g| g.is_finite()), "step {t}");
        let mut p: Vec<f32> = factors.iter().flat_map(|pair| pair.a.iter().chain(&pair.b).copied()).collect();
        let to = Adapted { p: &mut p, m: &mut m, v: &mut v };
        run::adamw(Executor::Cpu, SPEC, (0.02, f32::MAX, t), 1.0, &gradient, to).expect("fits");
        let mut rest = &p[..];
        for pair in &mut factors {
            let (a, b) = (pair.a.len(), pair.b.len());
            pair.a.copy_from_slice(&rest[..a]);
            pair.b.copy_from_slice(&rest[a..a + b]);
            rest = &rest[a + b..];
        }
    }
    assert!(losses[3] < 0.7 * losses[0] && losses[19] < 0.5 * losses[0], "{losses:?}");
}
