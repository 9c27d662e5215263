//! The words of Ollama, llama.cpp, PEFT and TRL, and what becomes of them.

/// What becomes of a flag.
#[derive(Clone, Copy)]
pub enum Becomes {
    /// A flag of ours, with the same value.
    Flag(&'static str),
    /// MODEL, with this text in front.
    Model(&'static str),
    /// A positional word behind MODEL.
    File,
    /// Words that depend on the value.
    Words(fn(&str) -> Result<Vec<String>, String>),
    /// The type of the cached keys, and of the cached values.
    Keys,
    Values,
    /// Nothing: this program does so without the flag.
    Nothing,
    /// Nothing, and a note says why.
    Told(&'static str),
    /// An error that says what to do instead.
    Refused(&'static str),
}

/// A flag of another program.
pub struct Flag {
    /// Its spellings.
    words: &'static [&'static str],
    /// The commands in which it means this.
    commands: &'static [&'static str],
    /// Whether the next word is its value.
    pub value: bool,
    /// Words that may follow as its value.
    pub optional: &'static [&'static str],
    /// Whether a number behind its value belongs to it.
    pub pair: bool,
    pub becomes: Becomes,
}

impl Flag {
    /// Whether a word of this command is this flag.
    pub fn means(&self, word: &str, command: &str) -> bool {
        self.words.contains(&word) && self.commands.contains(&command)
    }
}

const fn valued(commands: &'static [&'static str], words: &'static [&'static str], becomes: Becomes) -> Flag {
    Flag { words, commands, value: true, optional: &[], pair: false, becomes }
}

const fn bare(commands: &'static [&'static str], words: &'static [&'static str], becomes: Becomes) -> Flag {
    Flag { words, commands, value: false, optional: &[], pair: false, becomes }
}

const NO_SERVER: &str = "there is no server in this version of weft; weft run MODEL chats, and weft run MODEL -p '..' --json answers a \
     script";
const NO_STORE: &str = "weft keeps no names of its own: copy the .gguf file, or give its path to a command";
const NO_PUSH: &str = "weft uploads nothing; use the tool of your hub";
const NO_MODELFILE: &str = "weft reads no Modelfile; give the flags instead: weft run MODEL --system TEXT --temp X \
                            --lora FILE (models that Ollama created keep their settings)";
const NO_QUANTIZE: &str = "weft does not quantize whole files; weft pull fetches quantized ones, and weft merge \
                           --type writes the tensors that an adapter changes";

/// Commands: our name, or the line that says what to do instead.
pub const COMMANDS: [(&str, Result<&str, &str>); 16] = [
    ("chat", Ok("run")),
    ("cli", Ok("run")),
    ("generate", Ok("run")),
    ("show", Ok("inspect")),
    ("ls", Ok("list")),
    ("finetune", Ok("train")),
    ("sft", Ok("train")),
    ("export-lora", Ok("merge")),
    ("serve", Err(NO_SERVER)),
    ("server", Err(NO_SERVER)),
    ("ps", Err(NO_SERVER)),
    ("stop", Err(NO_SERVER)),
    ("cp", Err(NO_STORE)),
    ("create", Err(NO_MODELFILE)),
    ("push", Err(NO_PUSH)),
    ("quantize", Err(NO_QUANTIZE)),
];

const RUN: &[&str] = &["run"];
const TRAIN: &[&str] = &["train"];
const TRAINS: &[&str] = &["train", "gradients"];
/// Commands that make a session.
const SESSIONS: &[&str] = &["run", "bench", "perplexity", "logits"];
/// Commands with MODEL.
const MODELS: &[&str] =
    &["run", "bench", "perplexity", "logits", "inspect", "tokenize", "train", "gradients", "merge", "tune", "doctor"];

/// Flags. One that is not here is ours, or clap refuses it.
pub const FLAGS: &[Flag] = &[
    // The model.
    valued(MODELS, &["-m", "--model", "--model_name_or_path"], Becomes::Model("")),
    valued(MODELS, &["-hf", "-hfr", "--hf-repo"], Becomes::Model("hf:")),
    valued(MODELS, &["-mu", "--model-url"], Becomes::Refused("give a file, or hf:OWNER/REPO[:QUANT] as MODEL")),
    valued(
        RUN,
        &["-mm", "--mmproj", "--image", "--audio"],
        Becomes::Refused("pictures and sound are not supported yet"),
    ),
    // Where it runs.
    valued(SESSIONS, &["-ngl", "--gpu-layers", "--n-gpu-layers"], Becomes::Words(layers)),
    valued(SESSIONS, &["-dev"], Becomes::Flag("--device")),
    valued(
        SESSIONS,
        &["-mg", "--main-gpu", "-sm", "--split-mode", "-ts", "--tensor-split"],
        Becomes::Refused(ONE_DEVICE),
    ),
    valued(&["bench"], &["-mmp", "--mmap"], Becomes::Words(mapped)),
    bare(SESSIONS, &["--mlock"], Becomes::Told("the weights are read into memory, and pages are not locked")),
    bare(SESSIONS, &["--no-warmup"], Becomes::Nothing),
    Flag {
        words: &["-fa", "--flash-attn"],
        commands: SESSIONS,
        value: false,
        optional: &["on", "off", "auto", "0", "1"],
        pair: false,
        becomes: Becomes::Words(flash),
    },
    valued(SESSIONS, &["-ctk", "--cache-type-k"], Becomes::Keys),
    valued(SESSIONS, &["-ctv", "--cache-type-v"], Becomes::Values),
    valued(&["run", "perplexity"], &["-b", "--batch-size"], Becomes::Told(CHUNKS)),
    valued(SESSIONS, &["-ub", "--ubatch-size"], Becomes::Told(CHUNKS)),
    valued(SESSIONS, &["--ctx-size"], Becomes::Flag("--ctx")),
    Flag { pair: true, ..valued(SESSIONS, &["--lora-scaled"], Becomes::Flag("--lora")) },
    // The prompt and the answer.
    valued(RUN, &["-n", "--max-tokens", "--n-predict", "--predict"], Becomes::Words(most_tokens)),
    valued(RUN, &["-s", "--seed"], Becomes::Words(seed)),
    valued(RUN, &["--temperature"], Becomes::Flag("--temp")),
    valued(RUN, &["-sys", "--system-prompt"], Becomes::Flag("--system")),
    bare(RUN, &["-cnv", "--conversation", "-i", "--interactive", "-st", "--single-turn"], Becomes::Nothing),
    bare(RUN, &["--jinja", "--color", "-co", "--simple-io", "--no-display-prompt", "--log-disable"], Becomes::Nothing),
    bare(RUN, &["-no-cnv", "--no-conversation"], Becomes::Flag("--raw")),
    bare(RUN, &["--verbose", "--show-timings"], Becomes::Flag("--stats")),
    valued(RUN, &["--keepalive", "--keep-alive"], Becomes::Told("no server keeps models between two runs")),
    bare(RUN, &["--hidethinking"], Becomes::Told("thinking goes to stderr; 2> /dev/null hides it")),
    valued(RUN, &["--reasoning-budget"], Becomes::Words(budget)),
    valued(
        RUN,
        &["--format"],
        Becomes::Refused("answers cannot be held to JSON yet; --json prints a report of the answer as JSON"),
    ),
    valued(
        RUN,
        &["--grammar", "--grammar-file", "-j", "--json-schema"],
        Becomes::Refused("answers cannot be held to a grammar yet"),
    ),
    valued(RUN, &["--mirostat", "--samplers", "--typical", "--dynatemp-range"], Becomes::Refused(SAMPLERS)),
    Flag { optional: &["true", "false", "high", "medium", "low"], ..bare(RUN, &["--think"], Becomes::Words(think)) },
    // Other commands of llama.cpp.
    valued(&["perplexity"], &["-f", "--file"], Becomes::File),
    valued(&["tokenize"], &["-p", "--prompt"], Becomes::File),
    bare(&["tokenize"], &["--ids"], Becomes::Nothing),
    valued(&["merge"], &["--lora"], Becomes::File),
    Flag { pair: true, ..valued(&["merge"], &["--lora-scaled"], Becomes::File) },
    valued(&["bench"], &["-o", "--output"], Becomes::Words(report)),
    bare(
        &["inspect"],
        &["--modelfile", "--parameters", "--template", "--license", "-v", "--verbose"],
        Becomes::Told(ALL_METADATA),
    ),
    // PEFT and TRL.
    valued(TRAINS, &["--dataset_name", "--dataset", "--train-data", "-f"], Becomes::Flag("--data")),
    valued(TRAINS, &["--output_dir"], Becomes::Flag("--output")),
    valued(TRAINS, &["--lora_r", "--lora_rank", "--r"], Becomes::Flag("--rank")),
    valued(TRAINS, &["--lora_alpha"], Becomes::Flag("--alpha")),
    valued(TRAINS, &["--lora_target_modules", "--target_modules"], Becomes::Flag("--targets")),
    bare(TRAINS, &["--use_rslora"], Becomes::Flag("--rslora")),
    valued(TRAIN, &["--lora_dropout"], Becomes::Flag("--dropout")),
    valued(TRAIN, &["--learning_rate"], Becomes::Flag("--lr")),
    valued(TRAIN, &["--num_train_epochs"], Becomes::Flag("--epochs")),
    valued(TRAIN, &["--max_steps"], Becomes::Flag("--steps")),
    valued(TRAIN, &["--per_device_train_batch_size"], Becomes::Flag("--batch")),
    valued(TRAIN, &["--gradient_accumulation_steps"], Becomes::Told(ACCUMULATION)),
    valued(TRAIN, &["--max_length", "--max_seq_length"], Becomes::Flag("--length")),
    valued(TRAIN, &["--warmup_steps"], Becomes::Flag("--warmup")),
    valued(TRAIN, &["--lr_scheduler_type"], Becomes::Flag("--schedule")),
    valued(TRAIN, &["--weight_decay"], Becomes::Flag("--decay")),
    valued(TRAIN, &["--max_grad_norm"], Becomes::Flag("--clip")),
    valued(TRAIN, &["--save_steps"], Becomes::Flag("--save-every")),
    valued(TRAIN, &["--save_total_limit"], Becomes::Flag("--keep")),
    valued(TRAIN, &["--logging_steps", "--report_to", "--eval_strategy", "--eval_steps"], Becomes::Told(LOGS)),
    Flag { optional: SWITCH, ..bare(TRAIN, &["--resume_from_checkpoint"], Becomes::Words(resume)) },
    Flag { optional: SWITCH, ..bare(TRAIN, &["--use_peft"], Becomes::Words(factors)) },
    Flag { optional: SWITCH, ..bare(TRAIN, &["--packing"], Becomes::Words(packing)) },
    Flag { optional: SWITCH, ..bare(TRAIN, &["--load_in_4bit", "--use_4bit"], Becomes::Words(nf4)) },
    Flag { optional: SWITCH, ..bare(TRAIN, &["--bf16", "--fp16"], Becomes::Words(fast)) },
    Flag { optional: SWITCH, ..bare(TRAIN, &["--gradient_checkpointing"], Becomes::Words(checkpointing)) },
];

/// What transformers' parser takes behind a switch.
const SWITCH: &[&str] = &["true", "True", "false", "False"];

const ONE_DEVICE: &str = "weft runs a model on one device; --device chooses it";
const CHUNKS: &str = "weft chooses how many tokens are read together";
const SAMPLERS: &str = "weft samples by --temp, --top-k, --top-p, --min-p and penalties";
const ALL_METADATA: &str = "weft inspect shows all metadata; --json prints it whole";
const ACCUMULATION: &str = "--batch is the number of examples of a step, and is split to fit the memory";
const LOGS: &str = "every step is in log.jsonl, and validations come by themselves";

fn words(ours: &[&str]) -> Vec<String> {
    ours.iter().map(|word| (*word).to_string()).collect()
}

/// Layers on the GPU: all, or none.
fn layers(value: &str) -> Result<Vec<String>, String> {
    match value.parse::<i64>() {
        Ok(0) => Ok(words(&["--device", "cpu"])),
        Ok(n) if !(0..MANY_LAYERS).contains(&n) => Ok(vec![]),
        Err(_) if ["all", "auto"].contains(&value) => Ok(vec![]),
        Ok(_) => Err(format!(
            "-ngl {value}: a model runs whole on one device; leave -ngl out for the best one, or give --device gpu \
             or --device cpu"
        )),
        Err(_) => Err(format!("-ngl {value}: not a number of layers; leave it out, or give --device gpu or cpu")),
    }
}

/// From this number on, a number of layers means all of them.
const MANY_LAYERS: i64 = 99;

fn flash(value: &str) -> Result<Vec<String>, String> {
    match value {
        "off" | "0" => Err("-fa off: attention here never stores its scores; there is no other kind".to_string()),
        _ => Ok(vec![]),
    }
}

fn mapped(value: &str) -> Result<Vec<String>, String> {
    Ok(if value == "0" { vec![] } else { words(&["--mmap"]) })
}

/// A negative number asks for no limit.
fn most_tokens(value: &str) -> Result<Vec<String>, String> {
    Ok(if ["-1", "-2"].contains(&value) { vec![] } else { words(&["-n", value]) })
}

/// -1 asks for another seed in each run.
fn seed(value: &str) -> Result<Vec<String>, String> {
    Ok(if value == "-1" { vec![] } else { words(&["--seed", value]) })
}

fn budget(value: &str) -> Result<Vec<String>, String> {
    match value {
        "0" => Ok(words(&["--no-think"])),
        "-1" => Ok(vec![]),
        _ => Err(format!("--reasoning-budget {value}: thinking has no limit of its own; --no-think asks for none")),
    }
}

fn think(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if value == "false" { &["--no-think"] } else { &["--think"] }))
}

fn report(value: &str) -> Result<Vec<String>, String> {
    match value {
        "json" => Ok(words(&["--json"])),
        "md" => Ok(vec![]),
        _ => Err(format!("-o {value}: weft bench prints a table, or JSON with --json")),
    }
}

/// Whether a switch is off.
fn is_off(value: &str) -> bool {
    value.eq_ignore_ascii_case("false")
}

fn resume(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if is_off(value) { &[] } else { &["--resume"] }))
}

fn factors(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if is_off(value) { &["--full"] } else { &[] }))
}

fn packing(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if is_off(value) { &["--no-pack"] } else { &[] }))
}

fn nf4(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if is_off(value) { &[] } else { &["--base", "nf4"] }))
}

fn fast(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if is_off(value) { &[] } else { &["--precision", "fast"] }))
}

fn checkpointing(value: &str) -> Result<Vec<String>, String> {
    Ok(words(if is_off(value) { &["--checkpointing", "none"] } else { &["--checkpointing", "layer"] }))
}
