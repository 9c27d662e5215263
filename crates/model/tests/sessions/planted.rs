//! Taps find an error planted in one layer: the first differing tap gives the layer and its half.

use crate::common::{Tiny, both, exact, ids, logits, open};
use kernels::PlanOptions;
use kernels::testing::Switches;

/// Changes the values of a tensor.
type Plant = fn(&mut Vec<f32>);

#[test]
fn the_first_tap_that_differs_tells_where_a_wrong_weight_is() {
    // Errors as a converter might make them: a norm weight without its 1, a lost value, a lost
    // sign. Each with the tap that shows it first.
    let planted: [(&str, Plant, (&str, u32)); 6] = [
        ("blk.2.attn_norm.weight", |w| w.iter_mut().for_each(|w| *w -= 1.0), ("attn_norm", 2)),
        ("blk.1.attn_k_norm.weight", |w| w[3] = 0.0, ("attn_out", 1)),
        ("blk.1.post_attention_norm.weight", |w| w[5] = 0.0, ("ffn_norm", 1)),
        ("blk.3.ffn_down.weight", |w| w.iter_mut().for_each(|w| *w = -*w), ("layer_out", 3)),
        ("blk.5.attn_q.weight", |w| w[7] += 0.5, ("attn_out", 5)),
        ("output_norm.weight", |w| w[0] = 0.0, ("output_norm", 0)),
    ];
    let tiny = Tiny::gemma4();
    let taps = ["embed", "attn_norm", "attn_out", "ffn_norm", "layer_out", "output_norm"].map(String::from).to_vec();
    let options = exact(32).plan(PlanOptions::plain().taps(taps));
    for executor in both() {
        let tapped = |named: &str, plant: Plant| {
            let file = tiny.edited(tiny.metadata(), |name, spec| {
                if name == named {
                    plant(&mut spec.values);
                }
                true
            });
            let mut session = open(&file).unwrap().on(executor.clone()).unwrap().session(options.clone()).unwrap();
            session.feed(&ids(20, 8)).unwrap();
            logits(&mut session).1
        };
        let good = tapped("", |_| {});
        for (name, plant, expected) in planted {
            let bad = tapped(name, plant);
            let first = good.iter().zip(&bad).find(|(a, b)| a.values != b.values).expect("a tap that differs").0;
            assert_eq!((first.name.as_str(), first.layer), expected, "{name} on {}", executor.kind());
        }
    }
}
