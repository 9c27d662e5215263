//! What a run makes: an adapter in two forms, or a model.

use super::Args;
use train::{Error, Folder, Trainer};

/// Writes the adapter as PEFT's files and as `adapter.gguf`, or the model as `model.gguf`. Returns
/// how to use it.
pub fn save(args: &Args, trainer: &Trainer, folder: &Folder) -> Result<String, Error> {
    let (model, output) = (args.source.model.as_ref(), folder.path().display());
    if args.full {
        let path = folder.file("model.gguf");
        trainer.save_model(&path, args.file_type)?;
        return Ok(format!("the model is in {output}; try: weft run {}", path.display()));
    }
    let mut options = trainer.peft_options();
    if let Some(prefix) = &args.peft_prefix {
        options = options.prefix(prefix);
    }
    train::save_peft(folder.path(), &trainer.factors()?, &options)?;
    trainer.save_gguf(folder.file("adapter.gguf"))?;
    let model = model.map_or_else(String::new, |path| format!("{} ", path.display()));
    Ok(format!("the adapter is in {output}; try: weft run {model}--lora {output}"))
}
