//! Model files with changed weights: adapters added to the weights, or trained weights.

use crate::error::Error;
use crate::host::Fill;
use crate::method::Method;
use crate::parameters::Parameter;
use crate::rewrite::{Fallback, Rewrite, Writing};
use crate::trainer::Trainer;
use gguf::{GgmlType, Gguf, GgufBuilder, TensorInfo};
use kernels::Executor;
use model::{AdapterFile, EMBEDDING, FactorPair, ModelFile, Note, OUTPUT};
use std::collections::BTreeMap;
use std::io::Write;

/// What [`write_merged`] wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// Number of tensors that changed.
    pub tensors: usize,
    /// The size of the file.
    pub bytes: u64,
    /// For each adapter, what was left out of it.
    pub notes: Vec<Option<Note>>,
    /// The tensors that have another type than was asked for.
    pub fallbacks: Vec<Fallback>,
}

/// Writes a model with adapters added to its weights: W + scale B A for every pair, where the
/// number beside an adapter multiplies its scales. Sums are computed in f64 and rounded once to
/// f32, then to `ty`, or to the tensor's own type if `ty` is none. A tensor whose rows are no whole
/// number of blocks gets the type that [`GgmlType::fitting`] says.
///
/// Metadata, the tokenizer and the bytes of all other tensors stay; `general.file_type` follows the
/// type of most weights. Factors for one use of tied embeddings untie them: the file gets an
/// `output.weight`. The file is written row by row.
///
/// # Errors
/// [`Error::Model`] for an adapter that does not fit the model, [`Error::Unwritable`],
/// [`Error::File`], and [`kernels::Error::Cancelled`].
pub fn write_merged(
    out: impl Write,
    base: &ModelFile,
    adapters: &[(AdapterFile, f32)],
    ty: Option<GgmlType>,
    watch: Writing<'_>,
) -> Result<Merged, Error> {
    merged(base, adapters, ty, watch, |file| file.write_to(out))
}

/// Gives the merged model to `write`.
pub(crate) fn merged(
    base: &ModelFile,
    adapters: &[(AdapterFile, f32)],
    ty: Option<GgmlType>,
    watch: Writing<'_>,
    write: impl FnOnce(&GgufBuilder<'_>) -> gguf::Result<()>,
) -> Result<Merged, Error> {
    let file = base.file();
    let mut checked = base.check(&Executor::Cpu)?;
    let mut notes = vec![];
    let mut pairs: BTreeMap<String, Vec<FactorPair>> = BTreeMap::new();
    for (adapter, scale) in adapters {
        checked.adapt(adapter, *scale)?;
        let (factors, note) = checked.factors_of(adapter)?;
        notes.push(note);
        for pair in factors {
            pairs.entry(pair.target.clone()).or_default().push(FactorPair { scale: pair.scale * scale, ..pair });
        }
    }
    let mut new = Rewrite::of(file);
    let unties = pairs.contains_key(EMBEDDING) || pairs.contains_key(OUTPUT);
    if unties && !new.has(OUTPUT) {
        new.add(OUTPUT, EMBEDDING)?;
    }
    for (target, pairs) in &pairs {
        let weight = file.find_tensor(target).map_or_else(|| file.tensor(EMBEDDING), Ok)?;
        new.change(target, ty, sum(file, weight, pairs))?;
    }
    Ok(Merged { tensors: pairs.len(), bytes: new.write(watch, write)?, notes, fallbacks: new.fallbacks().to_vec() })
}

/// Fills rows with W + sum of scale B A.
fn sum<'a>(file: &'a Gguf, weight: &'a TensorInfo, pairs: &'a [FactorPair]) -> Fill<'a> {
    Box::new(move |first, out| {
        base_rows(file, weight, first, out)?;
        let cols = weight.cols() as usize;
        let mut added = vec![0.0; cols];
        for (row, out) in (first..).zip(out.chunks_exact_mut(cols)) {
            added.fill(0.0);
            for FactorPair { rank, scale, a, b, .. } in pairs {
                let rank = *rank as usize;
                for (b, a) in b[row * rank..(row + 1) * rank].iter().zip(a.chunks_exact(cols)) {
                    let factor = f64::from(*scale) * f64::from(*b);
                    added.iter_mut().zip(a).for_each(|(sum, a)| *sum += factor * f64::from(*a));
                }
            }
            out.iter_mut().zip(&added).for_each(|(w, added)| *w = (f64::from(*w) + added) as f32);
        }
        Ok(())
    })
}

/// Fills whole rows with the values of a tensor, from the row `first` on.
fn base_rows(file: &Gguf, weight: &TensorInfo, first: usize, out: &mut [f32]) -> gguf::Result<()> {
    let (ty, cols) = (weight.ty()?, weight.cols() as usize);
    let row_bytes = ty.row_bytes(cols).ok_or(gguf::Error::RowLength { ty, cols })?;
    let mut bytes = vec![0; out.len() / cols * row_bytes];
    file.read_tensor(weight, first as u64 * row_bytes as u64, &mut bytes)?;
    gguf::dequantize(ty, &bytes, out)
}

/// Writes a model with trained weights in the place of its own, in the type `ty`; norms and other
/// vectors in F32. Metadata, the tokenizer and the bytes of all other tensors stay;
/// `general.file_type` follows the type of most weights. Rows beyond those of a parameter keep the
/// values of the base. Returns the tensors that have another type, because their rows are no whole
/// number of blocks.
///
/// # Errors
/// [`Error::NoTarget`] for a parameter that is no tensor of the base, [`Error::Unwritable`], and
/// [`Error::File`].
pub fn write_model(
    out: impl Write,
    base: &Gguf,
    parameters: &[Parameter],
    ty: GgmlType,
) -> Result<Vec<Fallback>, Error> {
    retrained(base, parameters, ty, |file| file.write_to(out))
}

/// Gives the model with trained weights to `write`.
pub(crate) fn retrained(
    base: &Gguf,
    parameters: &[Parameter],
    ty: GgmlType,
    write: impl FnOnce(&GgufBuilder<'_>) -> gguf::Result<()>,
) -> Result<Vec<Fallback>, Error> {
    let mut new = Rewrite::of(base);
    for parameter in parameters {
        let name = parameter.name.as_str();
        let weight = base.find_tensor(name).ok_or_else(|| Error::NoTarget { target: name.to_string() })?;
        let ty = if weight.n_dims == 1 { GgmlType::F32 } else { ty };
        let fill = move |first: usize, out: &mut [f32]| {
            let all = &parameter.values;
            let own = all.get(first * weight.cols() as usize..).unwrap_or_default();
            if own.len() < out.len() {
                base_rows(base, weight, first, out)?;
            }
            out.iter_mut().zip(own).for_each(|(out, own)| *out = *own);
            Ok(())
        };
        new.change(name, Some(ty), Box::new(fill))?;
    }
    new.write(Writing::default(), write)?;
    Ok(new.fallbacks().to_vec())
}

impl Trainer {
    /// Writes the model with its trained weights ([`write_model`]).
    ///
    /// # Errors
    /// [`Error::NoForm`] if factors are trained, and as [`write_model`].
    pub async fn write_model_async(&self, out: impl Write, ty: GgmlType) -> Result<Vec<Fallback>, Error> {
        write_model(out, self.model.file(), &self.weights_to_write().await?, ty)
    }

    pub(crate) async fn weights_to_write(&self) -> Result<Vec<Parameter>, Error> {
        match self.method {
            Method::Full(_) => self.parameters_async().await,
            Method::Lora(_) => {
                Err(Error::no_form("factors are trained, and the weights of the model stay as they are"))
            }
        }
    }
}
