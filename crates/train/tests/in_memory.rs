//! A run as a page makes it: examples, checkpoints and results are bytes, and no function takes a
//! path. The functions with paths are there to compare with.

use gguf::{Directory, GgmlType, Gguf, MemoryDirectory, Source};
use kernels::{Executor, Watch, block_on};
use model::{AdapterFile, FactorPair, Model, ModelFile};
use std::path::Path;
use train::{
    BaseDigest, Batches, Data, DataOptions, Facts, Full, GradientOptions, Lora, Rate, Texts, Trainer, TrainerOptions,
    Writing, defaults,
};

const LINES: &str = r#"{"prompt": "Who lives in Kelm?", "completion": "Hanne lives in Kelm."}
{"prompt": "Who lives in Orbe?", "completion": "Tove."}
{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}
{"instruction": "Say no.", "output": "No."}
{"text": "Mira lives in Bellwharf."}
{"prompt": "What is blue?", "completion": "The door of the mill."}
{"prompt": "Where is the mill?", "completion": "In Kelm."}
{"prompt": "Is it old?", "completion": "It is."}
"#;

/// Steps of the run, over more than one epoch, and after how many it is stopped.
const STEPS: usize = 6;
const STOPPED: usize = 3;

fn file() -> ModelFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    let bytes = std::fs::read(path).expect("the default model");
    ModelFile::new(Gguf::from_bytes(bytes).expect("a file")).expect("a model file")
}

fn model() -> Model {
    file().on(Executor::Cpu).expect("a model")
}

fn options() -> TrainerOptions {
    TrainerOptions::default().gradients(GradientOptions::default().rows(64)).rate(Rate::constant(2e-3)).seed(5)
}

fn trainer(model: &Model) -> Trainer {
    block_on(Trainer::new_async(model, Lora::new(4).dropout(0.1).seed(1), &options())).expect("a trainer")
}

/// The batches of these lines, and the examples that are held out.
fn batches(model: &Model, lines: &str) -> (Batches, Data) {
    let source: Box<dyn Source> = Box::new(lines.as_bytes().to_vec());
    let files = vec![("pasted text".to_string(), source)];
    let data = Data::new(files, Texts::from(model), &DataOptions::default(), &|_| ()).expect("examples");
    let (learnt, held) = data.split(0.25, 3).expect("two parts");
    assert_eq!((learnt.len(), held.len()), (6, 2));
    (Batches::new(learnt, 2, 7), held)
}

/// Trains so many steps. Returns the bits of the losses.
fn steps(trainer: &mut Trainer, batches: &mut Batches, count: usize) -> Vec<u64> {
    let step = |_| {
        let documents = batches.next().expect("a batch");
        block_on(trainer.step_async(&documents, Watch::default())).expect("a step").loss.loss.to_bits()
    };
    (0..count).map(step).collect()
}

/// The loss of the examples that are held out.
fn judged(trainer: &mut Trainer, held: &Data) -> u64 {
    let documents: Vec<_> = (0..held.len()).flat_map(|n| held.documents(n).expect("an example")).collect();
    block_on(trainer.evaluate_async(&documents, Watch::default())).expect("a loss").loss.to_bits()
}

fn factors(trainer: &Trainer) -> Vec<FactorPair> {
    block_on(trainer.factors_async()).expect("factors")
}

/// A checkpoint after some steps.
fn stopped(model: &Model, facts: &Facts) -> (Vec<u64>, Vec<u8>) {
    let (mut first, (mut batches, _)) = (trainer(model), batches(model, LINES));
    let (losses, mut bytes) = (steps(&mut first, &mut batches, STOPPED), vec![]);
    let position = batches.position().to_string();
    block_on(first.write_checkpoint_async(&mut bytes, facts, &position)).expect("a checkpoint");
    (losses, bytes)
}

#[test]
fn a_run_goes_on_from_bytes_with_the_bits_of_one_that_was_not_stopped() {
    let model = model();
    let (mut whole, (mut all, held)) = (trainer(&model), batches(&model, LINES));
    let facts = all.facts();
    let losses = steps(&mut whole, &mut all, STEPS);
    assert_eq!(all.position().epoch, 2);
    let (mut again, bytes) = stopped(&model, &facts);
    // As after a reload: nothing is left but the bytes.
    let (model, (mut rest, same)) = (self::model(), batches(&model, LINES));
    let mut second = trainer(&model);
    let restored = second.restore(&bytes, &rest.facts()).expect("a checkpoint of this run");
    rest.seek(restored.position.parse().expect("a position")).expect("a place between batches");
    again.extend(steps(&mut second, &mut rest, STEPS - STOPPED));
    assert_eq!(again, losses);
    assert_eq!(factors(&second), factors(&whole));
    assert_eq!(judged(&mut second, &same), judged(&mut whole, &held));
}

#[test]
fn a_checkpoint_of_other_lines_or_with_a_changed_byte_is_refused() {
    let model = model();
    let facts = batches(&model, LINES).0.facts();
    let (_, mut bytes) = stopped(&model, &facts);
    let mut trainer = trainer(&model);
    let other = batches(&model, &LINES.replace("Hanne", "Hanna")).0.facts();
    let error = trainer.restore(&bytes, &other).expect_err("other lines").to_string();
    assert!(error.contains("data differs"), "{error}");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert!(trainer.restore(&bytes, &facts).is_err());
    assert_eq!(trainer.tally().steps, 0);
}

/// As where a page fetches the weights and keeps none of their bytes.
#[test]
fn the_digest_of_a_model_whose_bytes_are_awaited_is_that_of_its_file() {
    let model = model();
    let checkpoint = |trainer: &Trainer| {
        let mut bytes = vec![];
        block_on(trainer.write_checkpoint_async(&mut bytes, &Facts::new(), "")).expect("a checkpoint");
        bytes
    };
    let file = file();
    let digest = |changed: Option<u64>| {
        let mut last = 0;
        let read = async |at: u64, bytes: &mut [u8]| {
            assert!(at >= last && bytes.len() <= 4 << 20, "{at}");
            last = at;
            file.file().source().read_at(at, bytes)?;
            if let Some(byte) = changed.and_then(|n| bytes.get_mut(n.checked_sub(at)? as usize)) {
                *byte ^= 1;
            }
            Ok(())
        };
        block_on(BaseDigest::read_async(&file, read)).expect("a digest")
    };
    let awaited = trainer(&model).with_digest(digest(None));
    let bytes = checkpoint(&awaited);
    assert!(bytes == checkpoint(&trainer(&model)));
    let last = file.file().source().len_bytes() - 33;
    for changed in [0, last] {
        let mut other = trainer(&model).with_digest(digest(Some(changed)));
        let error = other.restore(&bytes, &Facts::new()).expect_err("another model").to_string();
        assert!(error.contains("model"), "{error}");
    }
    let error = block_on(BaseDigest::read_async(&file, async |_, _| Err(std::io::ErrorKind::TimedOut.into())));
    assert!(error.err().expect("no bytes").to_string().contains("cannot read"));
}

#[test]
fn adapters_in_memory_have_the_bytes_of_files_and_are_read_again() {
    let model = model();
    let (mut trainer, (mut batches, _)) = (trainer(&model), batches(&model, LINES));
    steps(&mut trainer, &mut batches, 1);
    let folder = tempfile::tempdir().expect("a folder");
    trainer.save_peft(folder.path()).expect("written");
    trainer.save_gguf(folder.path().join("adapter.gguf")).expect("written");
    let memory = MemoryDirectory::new();
    block_on(trainer.write_peft_async(&memory)).expect("written");
    let mut adapter = vec![];
    block_on(trainer.write_gguf_async(&mut adapter)).expect("written");
    memory.write("adapter.gguf", &mut |out| out.write_all(&adapter)).expect("written");
    let names = ["adapter.gguf", "adapter_config.json", "adapter_model.safetensors"];
    assert_eq!(memory.names("", 9).expect("names"), names);
    for name in names {
        let file = std::fs::read(folder.path().join(name)).expect("a file");
        assert!(memory.read(name, u64::MAX).expect("bytes") == file, "{name} differs");
    }
    let written = factors(&trainer);
    for name in [None, Some("adapter.gguf"), Some("adapter_model.safetensors")] {
        let read = AdapterFile::read(&memory, name).expect("an adapter").factors().expect("factors");
        assert_eq!(read.len(), written.len());
        assert!(written.iter().all(|pair| read.contains(pair)), "{name:?}");
    }
    // A configuration of other factors never lies beside them.
    let old = memory.read("adapter_config.json", u64::MAX).expect("bytes");
    train::write_peft(&memory, &written, &trainer.peft_options().dropout(0.5)).expect("written");
    assert_ne!(memory.read("adapter_config.json", u64::MAX).expect("bytes"), old);
}

#[test]
fn files_of_an_adapter_that_are_none_say_why() {
    let refused = |files: &[(&str, &[u8])], name: Option<&str>| {
        let folder: MemoryDirectory = files.iter().map(|(name, bytes)| (*name, bytes.to_vec())).collect();
        AdapterFile::read(&folder, name).err().expect("refused").to_string()
    };
    let empty = [&2u64.to_le_bytes()[..], b"{} "].concat();
    for (files, name, reason) in [
        (&[][..], None, "adapter_model.safetensors: cannot read the factors"),
        (&[("adapter_model.safetensors", &empty[..])], None, "adapter_config.json: cannot read the configuration"),
        (&[("adapters.safetensors", &empty[..])], None, "an adapter of MLX"),
        (&[("adapter_model.bin", &b"PK\x03\x04"[..])], None, "a pickle of PyTorch"),
        (&[("a.bin", &b"PK\x03\x04"[..])], Some("a.bin"), "a.bin: this is a pickle of PyTorch"),
        (&[("a.gguf", &b"GGUF"[..])], Some("a.gguf"), "a.gguf: the file ends within"),
        (&[("a.html", &b"<!doctype html>"[..])], Some("a.html"), "a.html: not an adapter"),
    ] {
        let error = refused(files, name);
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn models_in_memory_have_the_bytes_of_files() {
    let (file, model) = (file(), model());
    let (folder, memory) = (tempfile::tempdir().expect("a folder"), MemoryDirectory::new());
    let path = folder.path().join("model.gguf");
    let trainer = trainer(&model);
    block_on(trainer.write_peft_async(&memory)).expect("written");
    let adapters = [(AdapterFile::read(&memory, None).expect("an adapter"), 0.5)];
    let on_disk = train::merge(&file, &adapters, None, &path, Writing::default()).expect("merged");
    let mut bytes = vec![];
    let merged = train::write_merged(&mut bytes, &file, &adapters, None, Writing::default()).expect("merged");
    assert_eq!((&merged, merged.bytes), (&on_disk, bytes.len() as u64));
    assert!(bytes == std::fs::read(&path).expect("a file"));
    let full = block_on(Trainer::new_async(&model, Full::default(), &options())).expect("a trainer");
    full.save_model(&path, GgmlType::F16).expect("written");
    let mut bytes = vec![];
    block_on(full.write_model_async(&mut bytes, GgmlType::F16)).expect("written");
    assert!(bytes == std::fs::read(&path).expect("a file"));
    // Results of the other kind have no form, and no path to name.
    let error = block_on(full.write_gguf_async(&mut vec![])).expect_err("no factors").to_string();
    assert_eq!(error, "the weights of the model are trained, so there are no factors");
    let error = block_on(trainer.write_model_async(&mut vec![], GgmlType::F16)).expect_err("factors").to_string();
    assert_eq!(error, "factors are trained, and the weights of the model stay as they are");
}

#[test]
fn a_writer_without_room_fails_and_the_trainer_goes_on() {
    let model = model();
    let (mut trainer, (mut batches, _)) = (trainer(&model), batches(&model, LINES));
    let mut room = [0; 4096];
    let full = block_on(trainer.write_checkpoint_async(&mut room[..], &Facts::new(), ""));
    assert!(full.expect_err("no room").to_string().starts_with("cannot write: "));
    assert!(block_on(trainer.write_gguf_async(&mut room[..])).is_err());
    assert_eq!(steps(&mut trainer, &mut batches, 1).len(), 1);
}

#[test]
fn a_run_that_nobody_chose_anything_for_learns() {
    let model = model();
    let (batches, held) = batches(&model, LINES);
    let (method, amount) = (Lora::new(defaults::RANK).into(), defaults::Amount::of(&batches, true));
    let course = defaults::Course::of(&defaults::Chosen::default(), &method, model.weights(), amount);
    let rows = defaults::rows(batches.data(), [&held], 2);
    let most = defaults::most_rows([batches.data(), &held], 2, true);
    let counts = batches.data().counts();
    let mean = (counts.tokens / counts.examples) as u32;
    assert!((2 * mean..4 * mean).contains(&rows) && rows >= counts.longest, "{rows} rows for {counts:?}");
    assert_eq!(most, Some(2 * counts.longest));
    let gradients = GradientOptions::default().rows(rows).most_rows(most);
    let options = course.options.gradients(gradients);
    let mut trainer = block_on(Trainer::new_async(&model, method, &options)).expect("a trainer");
    let documents = batches.data().documents(0).expect("an example");
    let mut loss = || block_on(trainer.step_async(&documents, Watch::default())).expect("a step").loss.loss;
    let first = loss();
    let last = (0..12).map(|_| loss()).last().expect("steps");
    assert!(last < 0.7 * first, "{first} became {last}");
}
