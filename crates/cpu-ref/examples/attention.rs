//! A small attention by hand: two keys with scores 0 and ln 3, so that their values mix one to
//! three.

use cpu_ref::{AttentionSpec, Mask, attention};

fn main() {
    let spec = AttentionSpec { heads: 1, kv_heads: 1, head_dim: 2, scale: 1.0, softcap: None };
    let q = [1.0, 0.0]; // one query row [heads, head_dim]
    let k = [0.0, 5.0, 3f32.ln(), 5.0]; // two keys [S, kv_heads, head_dim]
    let v = [4.0, 0.0, 8.0, 1.0];
    let mut y = [0.0; 2];
    for position in 0..2 {
        attention(&spec, &q, &k, &v, Mask::Causal.visible(position, 2), &mut y);
        println!("at position {position}: {y:?}");
    }
    assert!((y[0] - 7.0).abs() < 1e-6 && (y[1] - 0.75).abs() < 1e-6);
}
