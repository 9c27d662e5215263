//! Lines that people type, and what becomes of them.

use super::*;
use crate::command::Cli;
use clap::{CommandFactory, Parser};

fn rewritten(line: &str) -> Result<Ours, String> {
    ours(std::iter::once("weft").chain(line.split_whitespace()).map(OsString::from), &Cli::command())
}

fn same(line: &str) -> String {
    let ours = rewritten(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let words: Vec<_> = ours.words.iter().skip(1).map(|word| word.to_str().expect("text")).collect();
    assert!(Cli::try_parse_from(&ours.words).is_ok(), "{line} becomes {words:?}, which is refused");
    words.join(" ")
}

#[test]
fn words_of_others_become_ours() {
    for (typed, ours) in [
        ("run -m a.gguf -p hi -n 32 -c 512 -ngl 99 -t 4", "run a.gguf -p hi -n 32 -c 512 -t 4"),
        ("run -p hi --model=a.gguf --n-predict=-1 --seed -1", "run a.gguf -p hi"),
        ("run -hf Qwen/Qwen3-0.6B-GGUF:Q8_0 -cnv --jinja -fa on -p x", "run hf:Qwen/Qwen3-0.6B-GGUF:Q8_0 -p x"),
        ("run a.gguf -fa -p hi", "run a.gguf -p hi"),
        ("run a.gguf -ctk q8_0 -ctv q8_0 -p x", "run a.gguf -p x --kv q8_0"),
        ("run a.gguf --lora-scaled b.gguf 0.5 -p x", "run a.gguf --lora b.gguf:0.5 -p x"),
        ("run a.gguf --lora-scaled b.gguf:0.5 -p x", "run a.gguf --lora b.gguf:0.5 -p x"),
        ("run a.gguf --think=false -p x --verbose", "run a.gguf --no-think -p x --stats"),
        ("run a.gguf -ngl 0 -p x", "run a.gguf --device cpu -p x"),
        ("chat a.gguf", "run a.gguf"),
        ("show a.gguf", "inspect a.gguf"),
        ("ls", "list"),
        (
            "bench -m a.gguf -p 512 -n 128 -d 0 -b 1 -r 5 -ngl 99 -fa 1 -o json",
            "bench a.gguf -p 512 -n 128 -d 0 -b 1 -r 5 --json",
        ),
        ("perplexity -m a.gguf -f wiki.raw -c 512", "perplexity a.gguf wiki.raw -c 512"),
        ("tokenize -m a.gguf -p hello", "tokenize a.gguf hello"),
        ("export-lora -m a.gguf --lora b.gguf -o c.gguf", "merge a.gguf b.gguf -o c.gguf"),
        (
            "sft --model_name_or_path a.gguf --dataset_name d.jsonl --output_dir out --learning_rate 2e-4 --lora_r 16 \
             --lora_target_modules all-linear --use_peft --num_train_epochs 1",
            "train a.gguf --data d.jsonl --output out --lr 2e-4 --rank 16 --targets all-linear --epochs 1",
        ),
        (
            "train a.gguf --data d -o o --bf16=false --load_in_4bit False --packing=false --gradient_checkpointing true",
            "train a.gguf --data d -o o --no-pack --checkpointing layer",
        ),
        ("--no-cache chat -m a.gguf", "--no-cache run a.gguf"),
        ("--without coop chat a.gguf", "--without coop run a.gguf"),
    ] {
        assert_eq!(same(typed), ours, "{typed}");
    }
}

#[test]
fn values_and_words_behind_two_hyphens_stay() {
    for line in ["run -p -m --system -ngl", "run a.gguf -- -m", "tokenize -- -hf", "run --stop -1 -p x", "bench -p 8"] {
        assert_eq!(same(line), line);
    }
    let ours = ours(["weft", "run", "-p", "-ngl 99"].map(OsString::from), &Cli::command()).expect("words");
    assert_eq!(ours.words.last().and_then(|word| word.to_str()), Some("-ngl 99"));
}

#[test]
fn words_that_cannot_be_obeyed_name_what_to_do() {
    for (line, said) in [
        ("serve", "there is no server"),
        ("ps", "there is no server"),
        ("cp a b", "copy the .gguf file"),
        ("run a.gguf -ngl 20", "a model runs whole on one device"),
        ("run a.gguf -fa off", "never stores its scores"),
        ("run a.gguf -ctk q8_0 -ctv f16", "one --kv f16, f32 or q8_0"),
        ("run a.gguf --image cat.png", "not supported yet"),
        ("run -m a.gguf -m b.gguf", "names a second model; the first one is a.gguf"),
        ("run -m", "-m needs a value"),
        ("run a.gguf --jinja=no", "--jinja takes no value, but no is given"),
        ("train a.gguf --bf16=maybe", "--bf16=maybe: the value is one of true, True, false, False"),
    ] {
        let error = rewritten(line).expect_err(line);
        assert!(error.contains(said) && !error.contains('\n'), "{line}: {error}");
    }
}

#[test]
fn a_flag_without_effect_is_told() {
    let ours = rewritten("run a.gguf --keepalive 5m -p x").expect("words");
    assert_eq!(ours.notes, ["--keepalive: no server keeps models between two runs"]);
    assert_eq!(ours.words.len(), 5);
}

/// A word of the table must not be a word that a command of ours already has with another meaning.
#[test]
fn the_table_takes_no_word_from_our_commands() {
    let cli = Cli::command();
    for (word, _) in COMMANDS {
        assert!(cli.find_subcommand(word).is_none(), "{word}");
    }
    // These keep their meaning, and take values that clap refuses.
    let kept = ["-n", "--max-tokens", "--seed", "--think", "--mmap"];
    for command in cli.get_subcommands() {
        for arg in command.get_arguments() {
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            for word in long.into_iter().chain(short).filter(|word| !kept.contains(&word.as_str())) {
                assert!(
                    !FLAGS.iter().any(|flag| flag.means(&word, command.get_name())),
                    "{} {word}",
                    command.get_name()
                );
            }
        }
    }
}
