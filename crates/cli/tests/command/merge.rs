//! `weft merge`: adapters added to the weights of the tiny model.

use crate::tiny::{self, Model};
use crate::{lora, run};
use gguf::{GgmlType, Gguf, GgufBuilder};

/// The target of the adapter of [`lora::builder`].
const TARGET: &str = "blk.0.attn_q.weight";

/// The logits of three tokens.
fn logits(model: &str, adapters: &[&str]) -> Vec<f32> {
    let out = format!("{model}.npy");
    let words = ["logits", model, "--device", "cpu", "--tokens", "1,2,3", "-o", &out];
    run(&words.into_iter().chain(adapters.iter().flat_map(|adapter| ["--lora", adapter])).collect::<Vec<_>>()).good();
    let bytes = std::fs::read(out).unwrap();
    let values = &bytes[bytes.len() - 12 * tiny::VOCABULARY..];
    values.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The tiny model with its tensor [`TARGET`] in a type whose bytes are all zero.
fn with_type(ty: GgmlType) -> GgufBuilder<'static> {
    let tiny = Gguf::from_bytes(tiny::builder(0.5).to_bytes().unwrap()).unwrap();
    let file = GgufBuilder::new().copy_metadata(&tiny).set("general.file_type", 0u32);
    tiny.tensors().iter().fold(file, |file, tensor| match tensor.name() {
        TARGET => file.tensor(TARGET, tensor.shape(), ty, vec![0; ty.row_bytes(tensor.elements() as usize).unwrap()]),
        name => file.tensor(name, tensor.shape(), GgmlType::F32, tiny.tensor_bytes(tensor).unwrap().to_vec()),
    })
}

#[test]
fn a_merged_model_gives_the_logits_of_its_adapters_and_differs_in_their_targets_only() {
    let model = Model::new(&tiny::builder(0.5).set("general.file_type", 0u32));
    let (adapter, out) = (lora::gguf(&model, "a.gguf", 32), model.beside("out.gguf"));
    let half = format!("{adapter}:0.5");
    for adapters in [&[adapter.as_str()][..], &[&adapter, &half]] {
        let words = [&["merge", model.path()], adapters, &["-o", &out, "--json"]].concat();
        let report = run(&words).json();
        assert_eq!(
            (&report["tensors"], &report["type"], &report["file"]),
            (&1.into(), &"SAME".into(), &out.as_str().into())
        );
        assert_eq!(report["bytes"], std::fs::metadata(&out).unwrap().len());
        assert_eq!(report["adapters"].as_array().unwrap().len(), adapters.len());
        let (plain, tuned) = (logits(model.path(), &[]), logits(model.path(), adapters));
        let difference = apart(&logits(&out, &[]), &tuned);
        assert!(difference <= 1e-4 && apart(&plain, &tuned) > 0.1, "{difference}");
    }
    let [base, merged] = [model.path(), &out].map(|path| Gguf::open(path).unwrap());
    let values = |file: &Gguf| file.metadata().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>();
    assert_eq!(values(&base), values(&merged));
    let bytes = |file: &Gguf| -> Vec<(String, Vec<u8>)> {
        let read = |tensor: &gguf::TensorInfo| {
            let mut bytes = vec![0; tensor.bytes as usize];
            file.read_tensor(tensor, 0, &mut bytes).unwrap();
            (tensor.name().to_string(), bytes)
        };
        file.tensors().iter().map(read).collect()
    };
    let changed: Vec<String> =
        bytes(&base).into_iter().zip(bytes(&merged)).filter(|(a, b)| a != b).map(|(a, _)| a.0).collect();
    assert_eq!(changed, [TARGET]);
    let said = run(&["merge", model.path(), &adapter, "-o", &out]).good();
    assert!(said.ends_with("out.gguf: 0.1 MB, 1 tensor changed\n"), "{said}");
}

#[test]
fn the_type_of_changed_tensors_is_kept_or_chosen() {
    let model = Model::new(&with_type(GgmlType::Q8_0));
    let (adapter, out) = (lora::gguf(&model, "a.gguf", 32), model.beside("out.gguf"));
    for (ty, found) in
        [("same", GgmlType::Q8_0), ("q5_1", GgmlType::Q5_1), ("BF16", GgmlType::BF16), ("F32", GgmlType::F32)]
    {
        run(&["merge", model.path(), &adapter, "-o", &out, "--type", ty]).good();
        let file = Gguf::open(&out).unwrap();
        assert_eq!(file.tensor(TARGET).unwrap().ty().unwrap(), found);
        // Most weights are F32 still.
        assert_eq!(file.get::<u32>("general.file_type").unwrap(), 0);
        let tuned = logits(model.path(), &[&adapter]);
        let difference = apart(&logits(&out, &[]), &tuned);
        assert!(difference <= if found == GgmlType::F32 { 1e-4 } else { 0.5 }, "{ty}: {difference}");
    }
    // Rows of 32 elements are no superblocks of 256.
    for (ty, found) in [("Q4_K", GgmlType::Q5_0), ("Q5_K", GgmlType::Q5_1), ("Q6_K", GgmlType::Q8_0)] {
        let words = ["merge", model.path(), &adapter, "-o", &out, "--type", ty];
        let merged = run(&words);
        let note = format!("weft: {TARGET}: rows of 32 elements are no multiple of 256, so {found} replaces {ty}\n");
        assert_eq!((merged.code, merged.err), (0, note));
        assert_eq!(Gguf::open(&out).unwrap().tensor(TARGET).unwrap().ty().unwrap(), found);
        assert_eq!(run(&[&words[..], &["--json"]].concat()).json()["fallbacks"][TARGET], found.name());
    }
    let bad = run(&["merge", model.path(), &adapter, "-o", &out, "--type", "IQ2_XS"]);
    assert!(bad.code == 2 && bad.err.contains("must be one of F32, F16"), "{}", bad.err);
}

#[test]
fn factors_of_one_use_of_tied_embeddings_untie_them() {
    let model = Model::new(&tiny::builder(0.5));
    let out = model.beside("out.gguf");
    let (rank, v) = (3u64, tiny::VOCABULARY as u64);
    let values = |len: u64, step: f32| (0..len).map(|i| (i as f32 * step).sin()).collect::<Vec<f32>>();
    let empty = || {
        ["general.type", "adapter.type"]
            .into_iter()
            .zip(["adapter", "lora"])
            .fold(GgufBuilder::new(), |f, (k, v)| f.set(k, v))
    };
    let empty = || empty().set("general.architecture", "qwen3").set("adapter.lora.alpha", 1.5f32);
    let rows = |file: GgufBuilder<'static>| {
        let file = file.tensor_f32("token_embd.weight.lora_a", &[rank, v], &values(rank * v, 0.7));
        file.tensor_f32("token_embd.weight.lora_b", &[rank, 32], &values(rank * 32, 0.3))
    };
    let head = |file: GgufBuilder<'static>| {
        let file = file.tensor_f32("output.weight.lora_a", &[32, rank], &values(rank * 32, 0.9));
        file.tensor_f32("output.weight.lora_b", &[rank, v], &values(rank * v, 0.5))
    };
    let mut seen = vec![logits(model.path(), &[])];
    for file in [rows(empty()), head(empty()), head(rows(empty()))] {
        let adapter = model.beside("a.gguf");
        file.save(&adapter).unwrap();
        run(&["merge", model.path(), &adapter, "-o", &out]).good();
        let tuned = logits(model.path(), &[&adapter]);
        let difference = apart(&logits(&out, &[]), &tuned);
        assert!(difference <= 1e-4, "{difference}");
        assert!(seen.iter().all(|other| apart(other, &tuned) > 0.1));
        seen.push(tuned);
        assert!(Gguf::open(&out).unwrap().find_tensor("output.weight").is_some());
    }
}

#[test]
fn a_type_that_cannot_be_written_names_the_tensor_and_the_way_out() {
    let model = Model::new(&with_type(GgmlType::IQ4_NL));
    let (adapter, out) = (lora::gguf(&model, "a.gguf", 32), model.beside("out.gguf"));
    let line = run(&["merge", model.path(), &adapter, "-o", &out]).failed(1);
    assert!(
        line.contains("blk.0.attn_q.weight is IQ4_NL, which can be read but not written")
            && line.ends_with("(see --type)\n"),
        "{line}"
    );
    assert!(!std::path::Path::new(&out).exists());
    run(&["merge", model.path(), &adapter, "-o", &out, "--type", "F16"]).good();
    assert!(apart(&logits(&out, &[]), &logits(model.path(), &[&adapter])) <= 0.02);
}

#[test]
fn what_goes_wrong_is_one_line_and_leaves_nothing_behind() {
    let model = Model::new(&tiny::builder(0.5));
    let (adapter, out) = (lora::gguf(&model, "a.gguf", 32), model.beside("out.gguf"));
    let merge = |adapter: &str, out: &str| run(&["merge", model.path(), adapter, "-o", out]).failed(1);
    let (base, before) = (model.path(), std::fs::read(&adapter).unwrap());
    assert!(merge(&adapter, base).contains("tiny.gguf is also an input"));
    assert!(merge(&adapter, &adapter).contains("a.gguf is also an input"));
    assert_eq!(std::fs::read(&adapter).unwrap(), before);
    let folder = model.beside("peft");
    lora::write_peft(folder.as_ref());
    assert!(merge(&folder, &format!("{folder}/adapter_model.safetensors")).contains("is also an input"));
    let line = merge(&lora::gguf(&model, "wide.gguf", 48), &out);
    assert!(line.contains("wide.gguf") && line.contains("[2, 32]"), "{line}");
    lora::builder(32).set("general.architecture", "gemma3").save(model.beside("gemma.gguf")).unwrap();
    let line = merge(&model.beside("gemma.gguf"), &out);
    assert!(line.contains("the adapter is for gemma3 models; this is a qwen3 model"), "{line}");
    assert!(merge(&model.beside("none.gguf"), &out).contains("none.gguf"));
    assert!(run(&["merge", &model.beside("no.gguf"), &adapter, "-o", &out]).failed(1).contains("no such file"));
    let line = merge(&adapter, &model.beside("no/out.gguf"));
    assert!(line.contains("no/out.gguf: there is no folder"), "{line}");
    assert!(merge(&adapter, model.folder.path().to_str().unwrap()).contains("is a directory; name a file"));
    if cfg!(target_os = "linux") {
        let line = merge(&adapter, "/dev/full");
        assert!(line.contains("/dev/full: cannot write: No space left"), "{line}");
    }
    // B has a factor so large that the sum is no finite number of the type.
    let huge = lora::builder(32).set("adapter.lora.alpha", 1e9f32);
    huge.save(model.beside("huge.gguf")).unwrap();
    let line = run(&["merge", base, &model.beside("huge.gguf"), "-o", &out, "--type", "F16"]).failed(1);
    assert!(line.contains("tensor blk.0.attn_q.weight would hold") && line.contains("no finite F16"), "{line}");
    assert!(!std::path::Path::new(&out).exists());
    let hidden = std::fs::read_dir(model.folder.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(hidden.count(), 0, "a temporary file is left");
}
