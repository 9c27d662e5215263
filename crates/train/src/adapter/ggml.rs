//! llama.cpp's form of an adapter: a GGUF file.

use crate::error::Error;
use gguf::GgufBuilder;
use model::{EMBEDDING, FactorPair, transpose};
use std::io::Write;

/// Writes factors as llama.cpp's GGUF, f32.
///
/// The form has one alpha for all pairs, and a pair's scale is alpha / rank. It is the alpha of the
/// first pair. A pair with another scale than this gets the quotient of the two multiplied into
/// its factor B, which is rounded to f32 once.
///
/// # Errors
/// [`Error::NoForm`] if there are no factors, and [`Error::File`].
pub fn write_gguf(out: impl Write, architecture: &str, factors: &[FactorPair]) -> Result<(), Error> {
    Ok(file(architecture, factors)?.write_to(out)?)
}

/// The file that [`write_gguf`] writes.
pub(crate) fn file(architecture: &str, factors: &[FactorPair]) -> Result<GgufBuilder<'static>, Error> {
    let first = factors.first().ok_or_else(|| Error::no_form("there are no factors"))?;
    let alpha = first.scale * first.rank as f32;
    // Readers take an alpha of zero for a scale of one.
    let alpha = if alpha == 0.0 { first.rank as f32 } else { alpha };
    let file = GgufBuilder::new()
        .set("general.type", "adapter")
        .set("general.architecture", architecture)
        .set("adapter.type", "lora")
        .set("adapter.lora.alpha", alpha);
    Ok(factors.iter().fold(file, |file, pair| {
        let rank = u64::from(pair.rank);
        let dims = |values: &[f32]| values.len() as u64 / rank;
        let name = |side: &str| format!("{}.lora_{side}", pair.target);
        let b = scaled(pair, alpha);
        if pair.target == EMBEDDING {
            // llama.cpp looks rows up in its factor A, and its factor B lies transposed.
            let a = transpose(&pair.a, dims(&pair.a) as usize);
            return file.tensor_f32(name("a"), &[rank, dims(&b)], &b).tensor_f32(name("b"), &[rank, dims(&a)], &a);
        }
        file.tensor_f32(name("a"), &[dims(&pair.a), rank], &pair.a).tensor_f32(name("b"), &[rank, dims(&b)], &b)
    }))
}

/// The factor B for readers whose scale is alpha / rank.
fn scaled(pair: &FactorPair, alpha: f32) -> Vec<f32> {
    let stated = alpha / pair.rank as f32;
    if stated == pair.scale {
        return pair.b.clone();
    }
    let by = f64::from(pair.scale) / f64::from(stated);
    pair.b.iter().map(|v| (f64::from(*v) * by) as f32).collect()
}
