//! Memory of sessions: too large a session is refused before allocation, and memory stays constant
//! during generation. GPU objects and submits per token.

mod common;
#[path = "common/counting.rs"]
mod counting;
#[path = "common/lora.rs"]
mod lora;

use common::{Tiny, both, exact, greedy, ids, run};
use counting::Counting;
use gguf::GgmlType;
use kernels::{Class, Executor, TensorBytes, Weights};
use lora::Lora;
use model::tokenizer::{Parts, Special, Tokenizer};
use model::{AdapterFile, Applied, Error, KvType, Sampling, Session, SessionOptions};
use std::io;
use std::sync::{Arc, Mutex};

#[global_allocator]
static HEAP: Counting = Counting::new();

/// The tests of this file measure the same heap, so only one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Buffers, bind groups and pipelines created so far.
fn created(executor: &Executor) -> u64 {
    if let Executor::Gpu(device) = executor { device.created() } else { 0 }
}

/// Submits of commands so far.
fn submitted(executor: &Executor) -> u64 {
    if let Executor::Gpu(device) = executor { device.submitted() } else { 0 }
}

/// Bytes of GPU memory in use; 0 without a GPU or without a count.
fn allocated(executor: &Executor) -> u64 {
    if let Executor::Gpu(device) = executor { device.allocated_bytes().unwrap_or(0) } else { 0 }
}

#[test]
fn memory_is_flat_over_a_thousand_generations() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for executor in both() {
        // A tenth of them take a software driver eight seconds.
        let is_slow = matches!(&executor, Executor::Gpu(device) if device.adapter().class == Class::Software);
        let generations = if is_slow { 100 } else { 1000 };
        let model = Tiny::narrow().on(&executor);
        let mut session = model.session(exact(16)).unwrap();
        let mut batch = model.batch(exact(16).sequences(3)).unwrap();
        let (mut after, mut made, mut taken) = (Vec::with_capacity(generations), 0, 0);
        for n in 0..generations as u64 {
            if n == 20 {
                (made, taken) = (created(&executor), allocated(&executor));
            }
            session.set_prompt(&ids(20, n)).unwrap();
            let sampling = Sampling { repetition_penalty: 1.1, seed: n, ..Sampling::default() };
            run(&mut session, greedy(4).sampling(sampling.clone()));
            session.generate_with(greedy(9)).unwrap().next();
            if n % 4 == 0 {
                for sequence in 0..3 {
                    batch.release(sequence);
                    batch.feed(sequence, &ids(6, n)).unwrap();
                }
                batch.step(std::slice::from_ref(&sampling)).unwrap();
                batch.step(std::slice::from_ref(&sampling)).unwrap();
            }
            after.push(HEAP.live_bytes());
        }
        // The pool may grow by one encoder when the driver is slow. A leak grows in every stretch
        // of generations.
        let steady = after.windows(20).map(|stretch| stretch[19].saturating_sub(stretch[0])).min().unwrap_or(0);
        let grown = after[generations - 1].saturating_sub(after[19]);
        assert!(
            steady < 512 && grown < 256 << 10,
            "{steady} bytes more in 20 generations on {}: {after:?}",
            executor.kind()
        );
        assert_eq!(created(&executor) - made, 0, "GPU objects made after 20 generations");
        assert_eq!(
            (allocated(&executor), executor.kind() == "gpu"),
            (taken, taken > 0),
            "bytes of GPU memory after 20 generations"
        );
    }
}

#[test]
fn no_gpu_object_is_made_per_token() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let executor = common::gpu();
    let model = Tiny::qwen3().on(&executor);
    let mut session = model.session(exact(16)).unwrap();
    let mut batch = model.batch(exact(16).sequences(3)).unwrap();
    session.feed(&ids(20, 1)).unwrap();
    (0..3).for_each(|n| batch.feed(n, &ids(9, 2)).unwrap());
    let mut steps = |tokens: usize| {
        run(&mut session, greedy(tokens));
        (0..tokens).for_each(|_| drop(batch.step(&[Sampling::greedy()]).unwrap()));
    };
    steps(8);
    let before = created(&executor);
    steps(24);
    assert_eq!(created(&executor) - before, 0);
    assert!(before > 0, "what is made is counted");
}

#[test]
fn a_token_of_any_number_of_layers_is_one_submit() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let executor = common::gpu();
    for tiny in [Tiny { layers: 1, ..Tiny::qwen3() }, Tiny { layers: 5, ..Tiny::qwen3() }, Tiny::gemma4()] {
        let model = tiny.on(&executor);
        let mut batch = model.batch(exact(16).sequences(2)).unwrap();
        (0..2).for_each(|n| batch.feed(n, &ids(9, n.into())).unwrap());
        // The first steps read the prompts and run ahead.
        (0..8).for_each(|_| drop(batch.step(&[Sampling::greedy()]).unwrap()));
        for _ in 0..8 {
            let before = submitted(&executor);
            drop(batch.step(&[Sampling::greedy()]).unwrap());
            assert_eq!(submitted(&executor) - before, 1, "{}", tiny.architecture);
        }
    }
}

#[test]
fn a_step_reads_back_what_was_drawn_and_no_hidden_state() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let executor = common::gpu();
    for tiny in [Tiny::qwen2(), Tiny::qwen3(), Tiny::gemma2(), Tiny::gemma4()] {
        let mut session = tiny.on(&executor).session(exact(16)).unwrap();
        session.feed(&ids(20, 1)).unwrap();
        run(&mut session, greedy(4));
        let planned = session.plan().and_then(|plan| plan.planned()).expect("a step has run on a GPU");
        // An id and the logarithm of its probability.
        let widths: Vec<_> = planned.read_back.iter().map(|t| t.shape.width()).collect();
        assert_eq!(widths, [2], "{}", tiny.architecture);
    }
}

#[test]
fn a_session_that_does_not_fit_is_refused_with_numbers_and_options_before_it_is_allocated() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let tiny = Tiny { context: 1 << 20, ..Tiny::qwen3() };
    for executor in both() {
        let checked = common::open(&tiny.file()).unwrap().check(&executor).unwrap();
        let options = |kv| exact(64).kv(kv).memory_bytes(Some(48 << 20)).context(100_000);
        let model = tiny.on(&executor);
        // Per position: keys and values of two layers, 32 wide, and a token id.
        let needs = checked.needs(&options(KvType::F32)).unwrap();
        assert_eq!(needs.kv.0, 100_000 * (4 * 128 + 4));
        assert!(needs.weights.0 >= 300 * 64 * 2 && needs.intermediates.0 > 0);
        assert_eq!(needs.total().0, needs.weights.0 + needs.kv.0 + needs.intermediates.0);
        let attempts = || [checked.fit(&options(KvType::F32)).err(), model.session(options(KvType::F32)).err()];
        let (errors, most) = HEAP.most_during(attempts);
        for error in errors.map(Option::unwrap) {
            let Error::TooLarge { available, needed, weights, kv, context, .. } = &error else { panic!("{error}") };
            assert_eq!(
                (available.0, *needed, *weights, *kv, *context),
                (48 << 20, needs.total(), needs.weights, needs.kv, 100_000)
            );
            let message = error.to_string();
            for part in ["50.3 MB", "51.6 MB", "100000 positions", "context length", "KV type", &executor.name()] {
                assert!(message.contains(part), "{message} lacks {part}");
            }
        }
        assert!(most < 4 << 20, "{most} bytes were held to find out");
        // The advice of the message works: a smaller type or a shorter context fits.
        assert!(model.session(options(KvType::Q8_0)).is_ok() && checked.fit(&options(KvType::Q8_0)).is_ok());
        assert!(model.session(options(KvType::F32).context(50_000)).is_ok());
        assert!(model.batch(options(KvType::Q8_0).sequences(3)).is_err(), "every sequence counts");
        let error = model.session(exact(64).memory_bytes(Some(1000))).err().unwrap().to_string();
        assert!(error.contains("quantization"), "weights alone are too large: {error}");
    }
}

/// The larger chunks are for discrete GPUs only, so a software adapter and the CPU use the usual
/// chunk.
#[test]
fn chunks_that_nobody_names_are_settled_before_sizes_are_told() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for executor in both() {
        let checked = common::open(&Tiny::qwen3().file()).unwrap().check(&executor).unwrap();
        let auto = SessionOptions::default().context(64);
        let settled = checked.settled(&auto).unwrap();
        assert!([512, 1024, 2048].contains(&settled.chunk), "{}", settled.chunk);
        assert_eq!(checked.needs(&auto).unwrap(), checked.needs(&settled).unwrap());
        assert_eq!(checked.settled(&exact(7)).unwrap().chunk, 7, "what is named stays");
    }
}

#[test]
fn a_context_beyond_the_machine_is_refused_by_what_the_system_has() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    // A cache of about 10^12 bytes.
    let tiny = Tiny { context: 1 << 24, kv_heads: 3, layers: 3, ..Tiny::qwen3() };
    let model = tiny.on(&Executor::Cpu);
    let options = exact(64).context(1 << 24).sequences(32);
    if cfg!(target_os = "linux") {
        let (result, most) = HEAP.most_during(|| model.session(options));
        assert!(matches!(result.err().unwrap(), Error::TooLarge { .. }));
        assert!(most < 4 << 20, "{most} bytes were held to find out");
    }
}

#[test]
fn what_is_foretold_is_what_a_session_takes() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for executor in both() {
        let options = exact(64).context(500);
        let checked = common::open(&Tiny::qwen3().file()).unwrap().check(&executor).unwrap();
        let model = Tiny::qwen3().on(&executor);
        let session = model.session(options.clone()).unwrap();
        let needs = checked.needs(&options).unwrap();
        assert_eq!((session.state_bytes(), model.weight_bytes()), (needs.kv.0, needs.weights.0));
    }
}

/// Plans for few rows and for many take the same memory.
#[test]
fn plans_of_a_session_share_their_intermediates() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let Executor::Gpu(device) = common::gpu() else { unreachable!() };
    let model = Tiny::qwen3().on(&Executor::Gpu(device.clone()));
    let options = || exact(512).least_rows(64).context(1024);
    let taken = |prompts: &[usize]| {
        let before = device.buffer_bytes();
        let mut session = model.session(options()).unwrap();
        for &rows in prompts {
            session.reset();
            session.feed(&ids(rows, 3)).unwrap();
            run(&mut session, greedy(2));
        }
        device.buffer_bytes() - before
    };
    let (one, all) = (taken(&[400]), taken(&[30, 100, 200, 400, 150, 60]));
    let checked = common::open(&Tiny::qwen3().file()).unwrap().check(&common::gpu()).unwrap();
    let needs = checked.needs(&options()).unwrap().intermediates.0;
    // Each plan has its inputs and its parameters for itself.
    assert!(all - one < needs / 4, "{one} bytes after one prompt, {all} after six; the intermediates are {needs}");
}

#[test]
fn sizes_in_an_adapter_that_lie_cost_no_memory() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let tiny = Tiny::qwen3();
    let lora = Lora::whole(&tiny, 4, 1);
    let name = "base_model.model.model.layers.1.mlp.gate_proj.lora_B.weight";
    let announce = |header: &str, length: u64| [&length.to_le_bytes()[..], header.as_bytes()].concat();
    let huge =
        |dims: &str, end: u64| format!(r#"{{"{name}":{{"dtype":"F32","shape":{dims},"data_offsets":[0,{end}]}}}}"#);
    let cases = [
        announce("{}", u64::MAX),
        announce("{}", 1 << 40),
        announce("{}", 99_000_000),
        announce(&"[".repeat(100_000), 100_000),
        {
            let header = huge("[1099511627776,4]", 1 << 44);
            announce(&header, header.len() as u64)
        },
        {
            let header = huge("[4611686018427387904,4]", 1 << 44);
            announce(&header, header.len() as u64)
        },
        {
            let header = huge("[4294967296,0]", 0);
            announce(&header, header.len() as u64)
        },
    ];
    for bytes in cases {
        let (result, most) = HEAP.most_during(|| AdapterFile::from_peft(&lora.config(""), Box::new(bytes)));
        assert!(result.is_err() && most < 4 << 20, "{most} bytes");
    }
}

/// A file of F16 values that is never whole in memory.
struct Halves;

impl gguf::Source for Halves {
    fn len_bytes(&self) -> u64 {
        u64::MAX
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        (offset / 2..)
            .zip(buf.chunks_exact_mut(2))
            .for_each(|(i, half)| half.copy_from_slice(&[i as u8, 0x38 + (i / 256 % 4) as u8]));
        Ok(())
    }
}

#[test]
fn weights_become_nf4_in_parts() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (rows, cols) = (4096, 4096);
    let mut weights = Weights::new(&Executor::Cpu);
    let source = TensorBytes::At(Arc::new(Halves), 0).quantized("w", GgmlType::F16, GgmlType::NF4);
    weights.matrix("w", GgmlType::NF4, rows, cols, &source).unwrap();
    let (loaded, most) = HEAP.most_during(|| weights.load().unwrap());
    // The F16 values are 32 MiB, and 64 MiB in f32. Each core has parts of half a MiB.
    let (bytes, cores) = (loaded.bytes(), std::thread::available_parallelism().map_or(1, usize::from));
    assert_eq!(bytes, u64::from(rows * cols / 64 * 36));
    assert!(most < bytes as usize + cores * (1 << 20) + (1 << 20), "{most} bytes for {bytes} and {cores} cores");
}

#[test]
fn a_removed_adapter_gives_its_memory_back() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let tiny = Tiny::qwen3().mixed();
    let file = Lora::whole(&tiny, 64, 1).peft(GgmlType::F32, "");
    for executor in both() {
        let model = tiny.on(&executor);
        let mut session = model.session(exact(16)).unwrap();
        let speak = |session: &mut Session| {
            session.reset();
            session.feed(&[1, 2, 3]).unwrap();
            common::logits(session);
        };
        // The factors are in the GPU's memory or in the host's.
        let held = || if executor.kind() == "gpu" { allocated(&executor) } else { HEAP.live_bytes() as u64 };
        speak(&mut session);
        let before = held();
        for _ in 0..5 {
            let without = held();
            let adapter = model.adapter(&file).unwrap();
            let bytes = adapter.bytes();
            assert!(held() >= without + bytes, "{bytes} bytes of factors on {}", executor.name());
            session.set_adapters(vec![Applied { adapter, scale: 1.0 }]).unwrap();
            speak(&mut session);
            session.set_adapters(vec![]).unwrap();
            speak(&mut session);
            let left = held().saturating_sub(before);
            assert!(left < bytes / 10, "{left} of {bytes} bytes stay on {}", executor.name());
        }
    }
}

#[test]
fn a_tokenizer_takes_at_most_sixteen_times_its_vocabulary() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let long = |n: usize, len: usize| format!("{n:08}{}", "a".repeat(len - 8));
    // Number of tokens, their lengths and their types.
    for (count, len, kind) in
        [(90, 60_000, 3), (90, 60_000, 4), (9_000, 1_000, 3), (9_000, 1_000, 4), (9_000, 1_000, 1), (500_000, 8, 4)]
    {
        let tokens: Vec<String> = bytes.clone().chain((0..count).map(|n| long(n, len))).collect();
        // A type and a score of 4 bytes each, and the length of the text in 8 bytes.
        let stored = tokens.iter().map(|text| 16 + text.len()).sum::<usize>();
        for model in ["llama", "gemma4"] {
            let make = || {
                Tokenizer::from_parts(&Parts {
                    model,
                    tokens: tokens.iter().map(String::as_bytes).collect(),
                    token_type: Some((0..tokens.len()).map(|id| if id < 256 { 6 } else { kind }).collect()),
                    scores: Some(vec![0.0; tokens.len()]),
                    merges: Some(vec![]),
                    ..Parts::default()
                })
            };
            let (tokenizer, most) = HEAP.most_during(make);
            assert!(
                most <= 16 * stored + (64 << 20),
                "{most} bytes for {stored} bytes: {count} tokens of {len} bytes, type {kind}"
            );
            let ids = tokenizer.unwrap().encode(&tokens[300], Special::Parse).unwrap();
            assert_eq!(ids.contains(&300), len <= 1024 && kind != 1, "{count} tokens of {len} bytes, type {kind}");
        }
    }
}
