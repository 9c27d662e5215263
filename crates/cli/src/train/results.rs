//! What a run makes: an adapter in two forms, or a model.

use super::args::Args;
use crate::merge::say_fallbacks;
use crate::text::quoted;
use kernels::Weights;
use std::path::Path;
use train::{Error, Folder, Trainer};

/// Writes the adapter as PEFT's files and as `adapter.gguf`, or the model as `model.gguf`.
pub fn save(args: &Args, trainer: &Trainer, folder: &Path) -> Result<(), Error> {
    if args.full {
        say_fallbacks(&trainer.save_model(folder.join("model.gguf"), args.file_type)?);
        return Ok(());
    }
    let mut options = trainer.peft_options();
    if let Some(prefix) = &args.peft_prefix {
        options = options.prefix(prefix);
    }
    let factors = trainer.factors()?;
    train::save_peft(folder, &factors, &options)?;
    trainer.save_gguf(folder.join("adapter.gguf"))
}

/// The bytes of the results, about, in one folder.
pub fn bytes(args: &Args, trainer: &Trainer) -> u64 {
    // Two forms of an adapter, f32; a model has fewer bytes than its parameters as f32.
    trainer.elements() * if args.full { 4 } else { 8 }
}

/// How to use what a run made.
pub fn usage(args: &Args, weights: &Weights, trainer: &Trainer, folder: &Folder) -> Result<String, Error> {
    let (model, output) = (args.source.model.as_ref(), folder.path().display());
    if args.full {
        return Ok(format!("the model is in {output}; try: weft run {}", quoted(&folder.file("model.gguf"))));
    }
    let merge = match merges(args, weights, trainer)? {
        true => "; for llama.cpp, merge it (weft merge): the model's embedding is also its output matrix",
        false => "",
    };
    let model = model.map_or_else(String::new, |path| format!("{} ", quoted(path)));
    Ok(format!("the adapter is in {output}; try: weft run {model}--lora {}{merge}", quoted(folder.path())))
}

/// Whether llama.cpp takes the adapter only if it is merged into the model.
pub fn merges(args: &Args, weights: &Weights, trainer: &Trainer) -> Result<bool, Error> {
    if args.full {
        return Ok(false);
    }
    // llama.cpp finds factors by the name of a tensor. A table with two uses has one name, so
    // llama.cpp takes the factors of one use for the other use, too.
    let is_end = |name: &str| ["token_embd.weight", "output.weight"].contains(&name);
    let tied = weights.iter().all(|(name, _)| name != "output.weight");
    Ok(tied && trainer.factors()?.iter().any(|pair| is_end(&pair.target)))
}
