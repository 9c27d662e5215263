//! Rope tables from metadata: base, number of rotated elements, and scalings for longer contexts.

use crate::error::Error;
use crate::meta::{CONTEXTS, Meta};
use crate::note::Note;
use kernels::RopeTable;
use std::f64::consts::TAU;

impl Meta<'_> {
    /// The rope table of layers with heads of `head_dim` elements. It uses `rope.freq_base`
    /// (default `base`), `rope.dimension_count` (default the whole head), and `rope.scaling`.
    ///
    /// # Errors
    /// Numbers out of range; [`Error::RopeScaling`] for a scaling that is neither linear nor YaRN.
    pub fn rope(&self, head_dim: u32, base: f32) -> Result<RopeTable, Error> {
        let table = self.rope_table("", head_dim, base)?;
        match self.file.get_opt::<&str>(&self.key("rope.scaling.type"))? {
            None | Some("none") => Ok(table),
            Some("linear") => Ok(RopeTable { scale: 1.0 / f64::from(self.positive("rope.scaling.factor")?), ..table }),
            Some("yarn") => Ok(self.yarn()?.stretch(table)),
            Some(name) => Err(Error::RopeScaling { name: name.to_string() }),
        }
    }

    /// The rope table of sliding-window layers, from the keys that end in `_swa`. It is never
    /// scaled.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn rope_swa(&self, head_dim: u32, base: f32) -> Result<RopeTable, Error> {
        self.rope_table("_swa", head_dim, base)
    }

    /// The context length. Some YaRN files still state the length before the scaling: such a length
    /// is multiplied by the factor.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn context_length(&self) -> Result<u32, Error> {
        let stored = self.count("context_length", CONTEXTS)?;
        let yarn = self.file.get_opt::<&str>(&self.key("rope.scaling.type"))? == Some("yarn");
        let original = self.count_or("rope.scaling.original_context_length", CONTEXTS, stored)?;
        if !yarn || original != stored {
            return Ok(stored);
        }
        let promised = f64::from(stored) * f64::from(self.positive("rope.scaling.factor")?);
        Ok((promised as u32).clamp(stored, *CONTEXTS.end()))
    }

    /// Tells that [`Meta::context_length`] is not the file's.
    pub fn context_note(&self) -> Result<Option<Note>, Error> {
        let (stored, promised) = (self.count("context_length", CONTEXTS)?, self.context_length()?);
        let (architecture, factor) = (self.architecture, self.positive_or("rope.scaling.factor", 1.0)?);
        Ok((promised != stored).then_some(Note::ContextBeforeScaling { architecture, stored, factor, promised }))
    }

    fn rope_table(&self, suffix: &str, head_dim: u32, base: f32) -> Result<RopeTable, Error> {
        let base = self.positive_or(&format!("rope.freq_base{suffix}"), base)?;
        let key = format!("rope.dimension_count{suffix}");
        let dim = self.count_or(&key, 2..=head_dim, head_dim)?;
        if !dim.is_multiple_of(2) {
            return Err(Error::Parameter { key: self.key(&key), expected: "even".to_string(), found: dim.to_string() });
        }
        Ok(RopeTable::new(dim, f64::from(base)))
    }

    fn yarn(&self) -> Result<Yarn, Error> {
        let number = |key: &str, default| self.positive_or(&format!("rope.scaling.{key}"), default);
        // Some converters write the two betas without the prefix `yarn_`.
        let (fast, slow) = (number("beta_fast", 32.0)?, number("beta_slow", 1.0)?);
        let factor = f64::from(self.positive("rope.scaling.factor")?);
        let context = self.count("context_length", CONTEXTS)?;
        let log = |scale: f64| if factor > 1.0 { 0.1 * scale * factor.ln() + 1.0 } else { 1.0 };
        let whole =
            log(1.0) / self.optional_positive("rope.scaling.yarn_log_multiplier")?.map_or(1.0, |k| log(f64::from(k)));
        let attention = self.optional_positive("rope.scaling.yarn_attn_factor")?.map_or(whole, f64::from);
        Ok(Yarn {
            factor,
            original_context_length: f64::from(self.count_or(
                "rope.scaling.original_context_length",
                CONTEXTS,
                context,
            )?),
            beta_fast: f64::from(number("yarn_beta_fast", fast)?),
            beta_slow: f64::from(number("yarn_beta_slow", slow)?),
            magnitude: attention * f64::from(number("attn_factor", 1.0)?),
        })
    }
}

/// YaRN (Peng et al. 2023, arXiv 2309.00071) as transformers computes it. Pairs that turn often
/// within the original context keep their frequency. Pairs that turn rarely are slowed by `factor`.
/// Pairs between are blended.
struct Yarn {
    factor: f64,
    original_context_length: f64,
    /// Pairs with at least this many turns within the original context keep their frequency.
    beta_fast: f64,
    /// Pairs with at most this many turns are slowed in full.
    beta_slow: f64,
    /// Multiplies cosines and sines.
    magnitude: f64,
}

impl Yarn {
    fn stretch(&self, table: RopeTable) -> RopeTable {
        let dim = f64::from(table.dim);
        // The (fractional) index of the pair that makes this many turns.
        let pair = |turns: f64| dim * (self.original_context_length / (turns * TAU)).ln() / (2.0 * table.base.ln());
        let low = pair(self.beta_fast).floor().max(0.0);
        let high = pair(self.beta_slow).ceil().min(dim - 1.0);
        let width = if low == high { 1e-3 } else { high - low };
        let slowed = |i: u32| ((f64::from(i) - low) / width).clamp(0.0, 1.0);
        let factors = (0..table.dim / 2).map(|i| 1.0 / (slowed(i) / self.factor + 1.0 - slowed(i))).collect();
        RopeTable { factors: Some(factors), magnitude: self.magnitude, ..table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::{Gguf, GgufBuilder};

    fn table(edit: impl Fn(GgufBuilder<'static>) -> GgufBuilder<'static>, head_dim: u32) -> Result<RopeTable, Error> {
        let file = GgufBuilder::new().set("qwen3.context_length", 256_u32).set("qwen3.rope.freq_base", 1e4_f32);
        let file = Gguf::from_bytes(edit(file).to_bytes().unwrap()).unwrap();
        Meta { file: &file, architecture: "qwen3" }.rope(head_dim, 1e6)
    }

    /// Compares a table's frequencies with values from transformers' formula, computed in float64
    /// by another program.
    fn close(table: &RopeTable, expected: &[f64]) {
        let factors = table.factors.as_ref().expect("yarn");
        assert_eq!(factors.len(), expected.len());
        for (i, expected) in expected.iter().enumerate() {
            let got = table.base.powf(-2.0 * i as f64 / f64::from(table.dim)) / factors[i];
            assert!((got / expected - 1.0).abs() < 1e-9, "pair {i}: {got:e}, expected {expected:e}");
        }
    }

    fn yarn(file: GgufBuilder<'static>, factor: f32, original: u32) -> GgufBuilder<'static> {
        let file = file.set("qwen3.rope.scaling.type", "yarn").set("qwen3.rope.scaling.factor", factor);
        file.set("qwen3.rope.scaling.original_context_length", original)
    }

    #[test]
    fn the_dimension_count_is_the_rotated_part_of_the_head() {
        let with = |count: u32| table(|file| file.set("qwen3.rope.dimension_count", count), 32);
        assert_eq!(table(|file| file, 32).unwrap(), RopeTable::new(32, 1e4));
        assert_eq!(with(16).unwrap(), RopeTable::new(16, 1e4));
        assert_eq!(with(32).unwrap(), RopeTable::new(32, 1e4));
        for count in [0, 1, 15, 34, u32::MAX] {
            let error = with(count).unwrap_err().to_string();
            assert!(error.contains("qwen3.rope.dimension_count"), "{error}");
        }
    }

    #[test]
    fn sliding_layers_have_keys_of_their_own_and_no_scaling() {
        let file =
            yarn(GgufBuilder::new().set("a.rope.freq_base", 1e6_f32).set("a.rope.freq_base_swa", 2e4_f32), 4.0, 64);
        let file = file.set("a.rope.scaling.type", "linear").set("a.rope.dimension_count_swa", 8_u32);
        let file = Gguf::from_bytes(file.to_bytes().unwrap()).unwrap();
        let meta = Meta { file: &file, architecture: "a" };
        assert_eq!(meta.rope_swa(16, 1e4).unwrap(), RopeTable::new(8, 2e4));
    }

    #[test]
    fn linear_scaling_divides_positions() {
        let linear = |file: GgufBuilder<'static>| {
            file.set("qwen3.rope.scaling.type", "linear").set("qwen3.rope.scaling.factor", 8.0_f32)
        };
        assert_eq!(table(linear, 32).unwrap(), RopeTable { scale: 0.125, ..RopeTable::new(32, 1e4) });
    }

    #[test]
    fn yarn_keeps_fast_pairs_blends_and_slows() {
        let got = table(|file| yarn(file, 4.0, 64), 16).unwrap();
        let expected =
            [1.0, 2.371708245126e-1, 5e-2, 7.905694150421e-3, 2.5e-3, 7.905694150421e-4, 2.5e-4, 7.905694150421e-5];
        close(&got, &expected);
        assert!((got.magnitude - 1.138629436111989).abs() < 1e-12 && got.scale == 1.0, "{got:?}");
    }

    #[test]
    fn yarn_of_the_published_qwen_files() {
        let qwen = |file| yarn(file, 4.0, 32768).set("qwen3.rope.freq_base", 1e6_f32);
        let got = table(qwen, 128).unwrap();
        let factors = got.factors.as_ref().unwrap();
        // The ramp runs from pair 23 to pair 40.
        assert!(factors[..=23].iter().all(|f| *f == 1.0) && factors[40..].iter().all(|f| (f - 4.0).abs() < 1e-12));
        let at = |i: usize| 1e6_f64.powf(-2.0 * i as f64 / 128.0) / factors[i];
        for (i, expected) in [(24, 5.375321490790e-3), (33, 4.503235755138e-4), (39, 6.490394320837e-5)] {
            assert!((at(i) / expected - 1.0).abs() < 1e-9, "pair {i}: {:e}", at(i));
        }
    }

    #[test]
    fn a_context_length_before_the_scaling_is_multiplied() {
        let lengths = |edit: &dyn Fn(GgufBuilder<'static>) -> GgufBuilder<'static>| {
            let file =
                Gguf::from_bytes(edit(GgufBuilder::new().set("qwen3.context_length", 256_u32)).to_bytes().unwrap())
                    .unwrap();
            let meta = Meta { file: &file, architecture: "qwen3" };
            (meta.context_length().unwrap(), meta.context_note().unwrap().map(|note| note.to_string()))
        };
        let (promised, note) = lengths(&|file| yarn(file, 4.0, 256));
        assert_eq!(promised, 1024);
        assert!(note.unwrap().contains("qwen3.context_length is 256"));
        assert_eq!(lengths(&|file| yarn(file, 4.0, 256).remove("qwen3.rope.scaling.original_context_length")).0, 1024);
        assert_eq!(lengths(&|file| yarn(file, 4.0, 64)), (256, None), "the length after the scaling");
        assert_eq!(lengths(&|file| yarn(file, 0.5, 256)), (256, None));
        assert_eq!(lengths(&|file| yarn(file, 4.0, 256).set("qwen3.rope.scaling.type", "linear")), (256, None));
        assert_eq!(lengths(&|file| yarn(file, 1e30, 256)).0, 1 << 24);
        assert_eq!(lengths(&|file| file), (256, None));
    }

    #[test]
    fn the_betas_have_two_spellings_and_the_context_a_default() {
        let short = |file| {
            yarn(file, 2.0, 16)
                .set("qwen3.rope.scaling.beta_fast", 4.0_f32)
                .set("qwen3.rope.scaling.beta_slow", 2.0_f32)
        };
        let got = table(short, 8).unwrap();
        close(&got, &[1.0, 5e-2, 5e-3, 5e-4]);
        let long = |file| {
            let file = yarn(file, 2.0, 16).set("qwen3.rope.scaling.yarn_beta_fast", 4.0_f32);
            file.set("qwen3.rope.scaling.yarn_beta_slow", 2.0_f32)
        };
        assert_eq!(table(long, 8).unwrap(), got);
        let default =
            table(|file| yarn(file, 2.0, 16).remove("qwen3.rope.scaling.original_context_length"), 64).unwrap();
        assert_eq!(default, table(|file| yarn(file, 2.0, 256), 64).unwrap());
        assert_ne!(default, table(|file| yarn(file, 2.0, 64), 64).unwrap());
    }

    #[test]
    fn the_magnitude_is_the_attention_factor_where_one_is_given() {
        let with = |key: &str, value: f32| {
            table(|file| yarn(file, 4.0, 64).set(format!("qwen3.rope.scaling.{key}"), value), 16).unwrap().magnitude
        };
        let default = 0.1 * 4.0_f64.ln() + 1.0;
        assert_eq!(with("yarn_attn_factor", 1.25), 1.25);
        assert_eq!(with("attn_factor", 2.0), 2.0 * default);
        assert_eq!(with("yarn_log_multiplier", 1.0), 1.0);
        assert!((with("yarn_log_multiplier", 0.5) - default / (0.05 * 4.0_f64.ln() + 1.0)).abs() < 1e-12);
        let shorter = table(|file| yarn(file, 0.5, 64), 16).unwrap();
        assert_eq!(shorter.magnitude, 1.0, "a factor below 1 does not sharpen");
    }

    #[test]
    fn other_scalings_are_refused_by_name() {
        for name in ["longrope", "dynamic", ""] {
            let error = table(|file| file.set("qwen3.rope.scaling.type", name), 16).unwrap_err();
            assert!(matches!(&error, Error::RopeScaling { name: found } if found == name), "{error}");
        }
        assert_eq!(table(|file| file.set("qwen3.rope.scaling.type", "none"), 16).unwrap(), RopeTable::new(16, 1e4));
    }
}
