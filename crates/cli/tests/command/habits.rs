//! What people type who know only Ollama, only llama.cpp, or only PEFT: the commands of the READMEs
//! of these projects, with `weft` in front. A line does the same, or says in one line what does so.

use crate::hub::World;
use crate::ollama::Store;
use crate::{lora, tiny};
use std::process::Command;

/// Runs each line in a shell, in a user's folder with these files; prints the transcript.
fn types(world: &World, store: &Store, lines: &[(&str, i32, &str)]) {
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_weft")).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    for (line, code, said) in lines {
        // The environment of the command, with a shell in its place.
        let weft = world.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env_remove("HF_HUB_OFFLINE").env("PATH", &path).stdin(std::process::Stdio::null());
        for (name, value) in weft.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.current_dir(weft.get_current_dir().expect("a folder")).env("OLLAMA_MODELS", store.root());
        let run = crate::Run::from(shell.output().expect("a shell"));
        println!("$ {line}\n{}{}", run.out, run.err);
        assert_eq!(run.code, *code, "{line}: {}{}", run.out, run.err);
        let all = format!("{}{}", run.out, run.err);
        assert!(all.contains(said), "{line}: {all}");
        if *code == 2 {
            assert!(run.err.starts_with("weft: ") && run.err.lines().count() == 1, "{line}: {}", run.err);
        }
    }
}

/// A hub with one model, Ollama's store with one, and files in the user's folder.
fn world() -> (World, Store) {
    let (world, store) = (World::one(), Store::new());
    store.add("tiny/latest", &tiny::builder(0.5), &[("params", "{\"num_predict\": 4}")]);
    let at = |name: &str| world.path().join(name);
    tiny::builder(0.3).save(at("model.gguf")).expect("room");
    tiny::of_width(64, 0.3).save(at("wide.gguf")).expect("room");
    lora::builder(32).save(at("adapter.gguf")).expect("room");
    std::fs::write(at("notes.txt"), "a loom holds the warp. ".repeat(8)).expect("room");
    std::fs::write(at("json.gbnf"), "root ::= \"x\"").expect("room");
    let fact = |n: i32| format!("{{\"text\": \"the number {n} is followed by {}\"}}\n", n + 1);
    std::fs::write(at("facts.jsonl"), (0..12).map(fact).collect::<String>()).expect("room");
    (world, store)
}

#[test]
fn somebody_who_knows_only_ollama() {
    let (world, store) = world();
    types(
        &world,
        &store,
        &[
            ("weft pull hf.co/me/M-GGUF:Q8_0", 0, ""),
            ("weft run hf.co/me/M-GGUF:Q8_0 -n 4 'ab'", 0, ""),
            ("weft run tiny 'ab'", 0, ""),
            ("weft run tiny \"Summarize this file: $(cat notes.txt)\"", 0, ""),
            ("cat notes.txt | weft run tiny 'ab'", 0, ""),
            ("weft run tiny --verbose --think=false 'ab'", 0, "tokens/s"),
            ("weft list", 0, "tiny"),
            ("weft ls", 0, "hf:me/M-GGUF:Q8_0"),
            ("weft show tiny", 0, "qwen3"),
            ("weft ps", 2, "there is no server in this version"),
            ("weft stop tiny", 2, "there is no server in this version"),
            ("weft serve", 2, "weft run MODEL chats"),
            ("weft cp tiny mine", 2, "copy the .gguf file"),
            ("weft create mine -f Modelfile", 2, "give the flags instead"),
            ("weft run nowhere:7b 'ab'", 1, "ollama pull nowhere:7b"),
            ("weft rm hf.co/me/M-GGUF:Q8_0", 0, ""),
        ],
    );
}

#[test]
fn somebody_who_knows_only_llama_cpp() {
    let (world, store) = world();
    types(
        &world,
        &store,
        &[
            ("weft cli -m model.gguf -p 'ab' -n 4", 0, ""),
            ("weft cli -hf me/M-GGUF:Q8_0 -p 'ab' -n 4", 0, ""),
            ("weft run -m model.gguf -p 'I believe the meaning of life is' -n 4 -no-cnv", 0, ""),
            ("weft run -m model.gguf -cnv -sys 'Be brief.' -p 'ab' --n-predict 4 --jinja", 0, ""),
            ("weft run -m model.gguf -f notes.txt -c 256 -ngl 99 -t 2 -fa on --temp 0 --seed -1 -n 4", 0, ""),
            ("weft run -m model.gguf -p 'ab' -n 4 --lora-scaled adapter.gguf 0.5 -ctk q8_0 -ctv q8_0", 0, ""),
            ("weft perplexity -m model.gguf -f notes.txt -c 32", 0, "perplexity"),
            ("weft bench -m model.gguf -p 16 -n 4 -r 1 -fa 1 -ngl 99 -t 2", 0, "tg4"),
            ("weft tokenize -m model.gguf -p 'ab'", 0, ""),
            ("weft export-lora -m model.gguf --lora adapter.gguf -o merged.gguf", 0, "merged.gguf"),
            ("weft server -m model.gguf --port 8080", 2, "there is no server in this version"),
            ("weft run -m model.gguf -p 'ab' --grammar-file json.gbnf", 2, "cannot be held to a grammar yet"),
            ("weft run -m model.gguf -p 'ab' -ngl 20", 2, "leave -ngl out"),
            ("weft quantize model.gguf small.gguf Q4_K_M", 2, "weft pull fetches quantized ones"),
        ],
    );
}

#[test]
fn somebody_who_knows_only_peft() {
    let (world, store) = world();
    types(
        &world,
        &store,
        &[
            (
                "weft sft --model_name_or_path model.gguf --dataset_name facts.jsonl --output_dir lora --use_peft --lora_r 4 \
                 --lora_alpha 8 --lora_target_modules q_proj,v_proj --learning_rate 2e-4 --max_steps 2",
                0,
                "the adapter is in lora",
            ),
            ("weft train model.gguf --data facts.jsonl --dry-run", 0, "memory"),
            ("weft run model.gguf --lora lora -p 'ab' -n 4", 0, ""),
            ("weft inspect model.gguf --lora lora", 0, ""),
            ("weft merge model.gguf lora -o merged.gguf", 0, "4 tensors changed"),
            ("weft run merged.gguf -p 'ab' -n 4", 0, ""),
            (
                "weft finetune model.gguf --data facts.jsonl -o again --init lora --max_steps 1",
                0,
                "the adapter is in again",
            ),
            (
                "weft train wide.gguf --data facts.jsonl -o four --load_in_4bit --gradient_checkpointing --bf16 --max_steps 1",
                0,
                "the adapter is in four",
            ),
            ("weft train --resume_from_checkpoint -o lora", 0, "2 steps"),
            ("weft gradients model.gguf --data facts.jsonl -o grads.safetensors --targets all-linear", 0, "loss"),
            ("weft train model.gguf --data facts.jsonl -o again", 1, "--resume and --force"),
        ],
    );
}
