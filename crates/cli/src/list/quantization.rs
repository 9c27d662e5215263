//! The usual name of a file's quantization.

use crate::inspect::types;
use gguf::Gguf;

/// Names of `general.file_type`, by llama.cpp's numbers. Numbers that are no longer used have an
/// empty name.
const NAMES: [&str; 39] = [
    "F32", "F16", "Q4_0", "Q4_1", "", "", "", "Q8_0", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S",
    "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
    "IQ3_S", "IQ3_M", "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M", "BF16", "", "", "", "TQ1_0", "TQ2_0", "MXFP4",
];

/// The quantization that the file declares, or the type of most of its bytes.
pub fn name(file: &Gguf) -> Option<String> {
    let told = file.get_opt::<u64>("general.file_type").ok().flatten();
    let told = told.and_then(|number| NAMES.get(usize::try_from(number).ok()?)).filter(|name| !name.is_empty());
    let most = || types(file).into_iter().max_by_key(|(_, (_, bytes))| *bytes).map(|(name, _)| name);
    told.map(|name| name.to_string()).or_else(most)
}
