//! What a run makes: an adapter in two forms, or a model.

use super::args::Args;
use crate::merge::say_fallbacks;
use kernels::Weights;
use train::{Error, Folder, Trainer};

/// Writes the adapter as PEFT's files and as `adapter.gguf`, or the model as `model.gguf`. Returns
/// how to use it.
pub fn save(args: &Args, weights: &Weights, trainer: &Trainer, folder: &Folder) -> Result<String, Error> {
    let (model, output) = (args.source.model.as_ref(), folder.path().display());
    if args.full {
        let path = folder.file("model.gguf");
        say_fallbacks(&trainer.save_model(&path, args.file_type)?);
        return Ok(format!("the model is in {output}; try: weft run {}", path.display()));
    }
    let mut options = trainer.peft_options();
    if let Some(prefix) = &args.peft_prefix {
        options = options.prefix(prefix);
    }
    let factors = trainer.factors()?;
    train::save_peft(folder.path(), &factors, &options)?;
    trainer.save_gguf(folder.file("adapter.gguf"))?;
    // llama.cpp finds factors by the name of a tensor. A table with two uses has one name, so
    // llama.cpp takes the factors of one use for the other use, too.
    let is_end = |name: &str| ["token_embd.weight", "output.weight"].contains(&name);
    let tied = weights.iter().all(|(name, _)| name != "output.weight");
    let merge = match tied && factors.iter().any(|pair| is_end(&pair.target)) {
        true => "; for llama.cpp, merge it (weft merge): the model's embedding is also its output matrix",
        false => "",
    };
    let model = model.map_or_else(String::new, |path| format!("{} ", path.display()));
    Ok(format!("the adapter is in {output}; try: weft run {model}--lora {output}{merge}"))
}
