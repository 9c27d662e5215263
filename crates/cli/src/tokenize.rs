//! `weft tokenize`: text to token ids and back.

use crate::args::{Mapping, Source};
use crate::exit::{note, usage};
use crate::text;
use anyhow::Result;
use clap::ValueHint;
use model::tokenizer::{Special, Tokenizer};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Turn text into token ids, or ids into text
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "weft tokenize [OPTIONS] [MODEL] TEXT\n       weft tokenize [OPTIONS] [MODEL] --decode IDS",
    after_help = "Examples:
  weft tokenize 'Where does Wren live?'
  weft tokenize qwen3-8b - < README.md
  weft tokenize qwen3-8b --plain '<|im_end|>'
  weft tokenize qwen3-8b --decode 707,187
  weft tokenize --json 'a loom' | jq .ids"
)]
pub struct Args {
    /// The text; `-` reads all of stdin, including the last line break. Put `--` before a text that
    /// begins with a hyphen. MODEL, before the text, is a GGUF file or a model in Ollama whose
    /// tokenizer is used [default: the small model that weft ships]
    // One list for both: clap accepts no option between two positional arguments if the first is
    // optional.
    #[arg(value_name = "[MODEL] TEXT", value_hint = ValueHint::FilePath, num_args = 1..=2, required_unless_present = "decode")]
    words: Vec<String>,

    /// Turn these ids into text instead; `-` reads them from stdin
    #[arg(long, value_name = "IDS")]
    decode: Option<String>,

    /// Treat names of control tokens, such as `<|im_end|>`, as ordinary text
    #[arg(long)]
    plain: bool,

    /// Do not add the BOS token, even if the file asks for one
    #[arg(long)]
    no_bos: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let (path, text) = match (args.decode.is_some(), args.words.as_slice()) {
        (true, []) => (None, None),
        // With --decode, one word is the model.
        (true, [model]) => (Some(PathBuf::from(model)), None),
        (true, _) => return Err(usage("--decode takes ids instead of a text; leave the text out")),
        (false, [text]) => (None, Some(text.as_str())),
        (false, [model, text]) => (Some(PathBuf::from(model)), Some(text.as_str())),
        (false, _) => return Err(usage("give one text, and before it a model unless the default model is meant")),
    };
    let source = Source { model: path, mapping: Mapping::default(), verify: false };
    let file = source.gguf()?;
    let tokenizer = source.named(Tokenizer::from_gguf(&file).map_err(model::Error::from))?;
    tokenizer.notes().iter().for_each(|said| note(&format!("{}: {said}", source.name())));
    match (&args.decode, text) {
        (Some(list), _) => decode(args, &tokenizer, list),
        (None, Some("-")) => encode(args, &tokenizer, &text::stdin()?),
        (None, text) => encode(args, &tokenizer, text.unwrap_or_default()),
    }
}

fn encode(args: &Args, tokenizer: &Tokenizer, text: &str) -> Result<()> {
    let special = if args.plain { Special::Text } else { Special::Parse };
    let ids = if args.no_bos { tokenizer.encode(text, special) } else { tokenizer.encode_prompt(text, special) }?;
    let piece = |id: u32| String::from_utf8_lossy(tokenizer.token_bytes(id)).into_owned();
    let mut out = std::io::stdout().lock();
    if args.json {
        let pieces: Vec<String> = ids.iter().map(|&id| piece(id)).collect();
        writeln!(out, "{}", json!({ "count": ids.len(), "ids": ids, "pieces": pieces }))?;
        return Ok(());
    }
    for &id in &ids {
        writeln!(out, "{id:>7}  {}", quoted(tokenizer.token_bytes(id)))?;
    }
    Ok(())
}

fn decode(args: &Args, tokenizer: &Tokenizer, list: &str) -> Result<()> {
    let ids = if list == "-" { text::ids(&text::stdin()?)? } else { text::ids(list)? };
    if let Some(id) = ids.iter().find(|&&id| id as usize >= tokenizer.vocab_size()) {
        return Err(anyhow::anyhow!("token id {id} is outside the vocabulary of {}", tokenizer.vocab_size()));
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json!({ "count": ids.len(), "ids": ids, "text": tokenizer.decode(&ids) }))?;
    } else {
        writeln!(out, "{}", tokenizer.decode(&ids))?;
    }
    Ok(())
}

/// A token's bytes in quotes: printable text unchanged, other characters escaped, bytes that are
/// not UTF-8 in hexadecimal.
fn quoted(bytes: &[u8]) -> String {
    let mut shown = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        shown.extend(chunk.valid().chars().flat_map(char::escape_debug));
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    shown + "\""
}

#[cfg(test)]
mod tests {
    #[test]
    fn half_characters_and_controls_are_escaped() {
        assert_eq!(super::quoted(b" a\n\x1b\xe2\x82"), "\" a\\n\\u{1b}\\xe2\\x82\"");
        assert_eq!(super::quoted("é\"".as_bytes()), "\"é\\\"\"");
    }
}
