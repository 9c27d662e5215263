//! The form of `rullama-lora-v0`, the adapters of a project that came before this one: safetensors
//! alone, with the tensors `lora.blk.L.PROJECTION.A` [rank, in] and `.B` [out, rank].
//!
//! The text `alpha` of the file's metadata divided by the rank is the scale. Without it the scale
//! is one.

use super::container::Container;
use super::{AdapterError, Contents, Factor, LINEARS, Side};
use crate::left_out::LeftOut;

/// The projections, in the order of the first of [`LINEARS`].
const PROJECTIONS: [&str; 7] = ["q", "k", "v", "o", "gate", "up", "down"];

/// Whether a file has this form.
pub(super) fn is(file: &Container) -> bool {
    file.tensors.first().is_some_and(|tensor| tensor.name.starts_with("lora.blk."))
}

/// Reads the factors.
pub(super) fn read(file: Container) -> Result<Contents, AdapterError> {
    let alpha = file.text("alpha").map(|text| {
        let found = text.parse().ok().filter(|alpha: &f32| alpha.is_finite());
        found.ok_or_else(|| AdapterError::Header {
            reason: format!("alpha is \"{}\", not a finite number", text.escape_debug()),
        })
    });
    let alpha = alpha.transpose()?;
    let factor = |tensor: super::container::Stored| {
        let Some((target, side)) = parse(&tensor.name) else { return Err(AdapterError::Target { name: tensor.name }) };
        let factor = tensor.factor(target, side)?;
        let scale = alpha.map_or(1.0, |alpha| alpha / factor.rank() as f32);
        Ok(Factor { scale, ..factor })
    };
    Contents::new(file.tensors.into_iter().map(factor).collect::<Result<_, _>>()?, LeftOut::default())
}

/// From `lora.blk.3.gate.A`: the target `blk.3.ffn_gate.weight`, and the side.
fn parse(name: &str) -> Option<(String, Side)> {
    let (module, side) = match name.strip_prefix("lora.blk.")?.rsplit_once('.')? {
        (module, "A") => (module, Side::A),
        (module, "B") => (module, Side::B),
        _ => return None,
    };
    let (layer, projection) = module.split_once('.')?;
    let at = PROJECTIONS.iter().position(|known| *known == projection)?;
    Some((format!("blk.{}.{}.weight", super::layer(layer)?, LINEARS[at].0), side))
}

#[cfg(test)]
mod tests {
    use super::super::Pair;
    use super::*;

    /// A file with these metadata whose factors are [2, 4] and [3, 2].
    fn file(metadata: &str, names: [&str; 2]) -> Result<Contents, AdapterError> {
        let [a, b] = names;
        let header = format!(
            r#"{{"__metadata__": {metadata}, "{a}": {{"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]}},
               "{b}": {{"dtype": "F32", "shape": [3, 2], "data_offsets": [32, 56]}}}}"#
        );
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 56]].concat();
        let file = Container::read(Box::new(std::borrow::Cow::<'static, [u8]>::Owned(bytes)))?;
        assert!(is(&file));
        read(file)
    }

    #[test]
    fn names_and_the_scale_are_read() {
        for (metadata, scale) in [(r#"{"format": "rullama-lora-v0"}"#, 1.0), (r#"{"alpha": "3"}"#, 1.5)] {
            let contents = file(metadata, ["lora.blk.12.gate.A", "lora.blk.12.gate.B"]).unwrap();
            let Pair { a, b } = &contents.pairs[0];
            assert_eq!((a.target.as_str(), a.rank(), a.scale, b.rows), ("blk.12.ffn_gate.weight", 2, scale, 3));
        }
        for (projection, (ours, _)) in PROJECTIONS.iter().zip(&LINEARS) {
            let expected = Some((format!("blk.0.{ours}.weight"), Side::B));
            assert_eq!(parse(&format!("lora.blk.0.{projection}.B")), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |metadata: &str, names| file(metadata, names).err().expect("refused").to_string();
        let names = ["lora.blk.0.q.A", "lora.blk.0.q.B"];
        assert!(error(r#"{"alpha": "much"}"#, names).contains(r#"alpha is "much", not a finite number"#));
        assert!(error(r#"{"alpha": "inf"}"#, names).contains("not a finite number"));
        assert!(error("{}", ["lora.blk.0.q.A", "lora.blk.0.k.B"]).contains("has no partner"));
        for bad in ["lora.blk.0.q.C", "lora.blk.00.q.A", "lora.blk.0.x.A", "lora.blk.0.A", "lora.blk.q.A"] {
            assert_eq!(parse(bad), None, "{bad}");
            assert!(error("{}", [bad, "lora.blk.1.q.B"]).contains(bad));
        }
    }
}
