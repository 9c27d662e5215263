//! Files as Ollama's converter writes them: the same models as from other converters, with other
//! metadata.

use crate::common::{Tiny, exact, gpu, ids, worst};
use gguf::{Array, GgmlType, Gguf, GgufBuilder};
use kernels::Executor;
use model::ModelFile;
use std::path::Path;

/// The logits of a few tokens, and the number of tokens in the vocabulary.
fn logits_on(file: &GgufBuilder, executor: &Executor) -> (Vec<f32>, usize) {
    let file = ModelFile::new(Gguf::from_bytes(file.to_bytes().unwrap()).unwrap()).unwrap();
    let model = file.on(executor.clone()).unwrap();
    let mut session = model.session(exact(16)).unwrap();
    session.feed(&ids(20, 2)).unwrap();
    let mut all = vec![];
    session.logits(|_, rows, _| all.extend_from_slice(rows)).unwrap();
    (all, model.tokenizer().vocab_size())
}

#[track_caller]
fn same(a: &GgufBuilder, b: &GgufBuilder, what: &str) {
    assert!(logits_on(a, &Executor::Cpu) == logits_on(b, &Executor::Cpu), "{what}");
}

fn with_tensor(
    file: GgufBuilder<'static>,
    name: &str,
    dims: &[u64],
    ty: GgmlType,
    values: &[f32],
) -> GgufBuilder<'static> {
    file.tensor(name.to_string(), dims, ty, gguf::quantize(ty, values, dims[0] as usize).unwrap())
}

#[test]
fn experts_whose_gates_stand_apart_and_whose_factors_have_an_older_name_are_the_same() {
    let tiny = Tiny::gemma4_experts();
    let mut moved = vec![];
    let mut file = tiny.edited(tiny.metadata(), |name, spec| {
        let stays = !["ffn_gate_up_exps.weight", "ffn_down_exps.scale"].iter().any(|end| name.ends_with(end));
        if !stays {
            moved.push((name.to_string(), spec.dims.clone(), spec.ty, spec.values.clone()));
        }
        stays
    });
    assert_eq!(moved.len(), 4, "two of each layer");
    for (name, dims, ty, values) in moved {
        if let Some(layer) = name.strip_suffix("ffn_down_exps.scale") {
            file = with_tensor(file, &format!("{layer}ffn_gate_inp.per_expert_scale"), &dims, ty, &values);
            continue;
        }
        let half = (dims[0] * dims[1] / 2) as usize;
        for (n, part) in ["gate", "up"].into_iter().enumerate() {
            let of_each = values.chunks_exact(2 * half).flat_map(|expert| expert[n * half..][..half].to_vec());
            let dims = [dims[0], dims[1] / 2, dims[2]];
            file = with_tensor(file, &name.replace("gate_up", part), &dims, ty, &of_each.collect::<Vec<f32>>());
        }
    }
    same(&tiny.file(), &file, "on the CPU");
    let apart = worst(&logits_on(&tiny.file(), &gpu()).0, &logits_on(&file, &gpu()).0);
    assert!(apart <= 5e-5, "{apart:e} on a GPU");
}

#[test]
fn qwen3moe_without_the_length_of_its_experts_and_with_another_name_for_the_norm_is_the_same() {
    let tiny = Tiny::qwen3moe();
    let theirs = tiny.metadata().remove("qwen3moe.expert_feed_forward_length");
    same(&tiny.file(), &tiny.edited(theirs.set("qwen3moe.norm_top_k_prob", true), |_, _| true), "normed");
    let usual = tiny.edited(tiny.metadata().set("qwen3moe.expert_weights_norm", false), |_, _| true);
    let theirs = tiny.edited(tiny.metadata().set("qwen3moe.norm_top_k_prob", false), |_, _| true);
    same(&usual, &theirs, "not normed");
    assert!(logits_on(&usual, &Executor::Cpu) != logits_on(&tiny.file(), &Executor::Cpu));
}

#[test]
fn qwen2moe_without_the_lengths_of_its_experts_is_the_same() {
    let tiny = Tiny::qwen2moe();
    let theirs = tiny
        .metadata()
        .remove("qwen2moe.expert_feed_forward_length")
        .remove("qwen2moe.expert_shared_feed_forward_length");
    same(&tiny.file(), &tiny.edited(theirs, |_, _| true), "without lengths");
}

#[test]
fn gemma3_without_an_epsilon_with_other_names_for_rope_and_with_names_of_images_is_the_same() {
    let tiny = Tiny::gemma3();
    let usual = tiny.metadata().set("gemma3.rope.freq_base", 5e5_f32).set("gemma3.rope.freq_base_swa", 9e3_f32);
    let bare = ["rope.freq_base", "rope.freq_base_swa", "attention.layer_norm_rms_epsilon"];
    let theirs = bare.iter().fold(tiny.metadata(), |file, key| file.remove(&format!("gemma3.{key}")));
    let theirs = theirs.set("gemma3.rope.global.freq_base", 5e5_f32).set("gemma3.rope.local.freq_base", 9e3_f32);
    let read = Gguf::from_bytes(tiny.file().to_bytes().unwrap()).unwrap();
    let tokens =
        read.get::<Array>("tokenizer.ggml.tokens").unwrap().strs().unwrap().map(|token| token.unwrap().to_string());
    let theirs =
        theirs.set("tokenizer.ggml.tokens", tokens.chain(["<image_soft_token>".to_string()]).collect::<Vec<_>>());
    let theirs = theirs.set("tokenizer.ggml.token_type", [vec![1_i32; 296], vec![3; 4], vec![4]].concat());
    same(&tiny.edited(usual, |_, _| true), &tiny.edited(theirs, |_, _| true), "gemma3");
}

#[test]
fn the_sizes_of_gemma3_tell_what_the_first_files_of_it_leave_out_or_get_wrong() {
    let one = Tiny { layers: 26, ..Tiny::gemma3() };
    let capped = one.edited(one.metadata().set("gemma3.final_logit_softcapping", 2.0_f32), |_, _| true);
    same(&one.file(), &capped, "the 1B model has no cap");
    let four = Tiny { layers: 34, ..Tiny::gemma3() };
    let linear = four.metadata().set("gemma3.rope.scaling.type", "linear").set("gemma3.rope.scaling.factor", 8.0_f32);
    same(&four.file(), &four.edited(linear, |_, _| true), "the 4B model divides positions by 8");
    let none = four.edited(four.metadata().set("gemma3.rope.scaling.type", "none"), |_, _| true);
    assert!(
        logits_on(&four.file(), &Executor::Cpu) != logits_on(&none, &Executor::Cpu),
        "unless the file says otherwise"
    );
}

fn gemma3n() -> Gguf {
    Gguf::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/gemma3n/gemma3n-F16.gguf")).unwrap()
}

/// The file with other metadata and with `more` additional rows in its embedding.
fn copied(file: &Gguf, metadata: GgufBuilder<'static>, more: u64) -> GgufBuilder<'static> {
    file.tensors().iter().fold(metadata, |copy, tensor| {
        let (mut dims, ty) = (tensor.shape().to_vec(), tensor.ty().unwrap());
        let mut bytes = vec![0; tensor.bytes as usize];
        file.read_tensor(tensor, 0, &mut bytes).unwrap();
        if tensor.name() == "token_embd.weight" {
            bytes.resize(bytes.len() + bytes.len() / dims[1] as usize * more as usize, 0x3c);
            dims[1] += more;
        }
        copy.tensor(tensor.name().to_string(), &dims, ty, bytes)
    })
}

#[test]
fn gemma3n_with_rows_for_images_and_without_a_cap_or_a_word_on_spaces_is_the_same() {
    let file = gemma3n();
    let usual = GgufBuilder::new().copy_metadata(&file).set("gemma3n.final_logit_softcapping", 30.0_f32);
    let rows = file.get::<Array>("tokenizer.ggml.tokens").unwrap().len();
    let theirs = ["gemma3n.final_logit_softcapping", "gemma3n.rope.freq_base_swa", "tokenizer.ggml.add_space_prefix"];
    let theirs = theirs.iter().fold(GgufBuilder::new().copy_metadata(&file), |copy, key| copy.remove(key));
    let base: f32 = file.get("gemma3n.rope.freq_base_swa").unwrap();
    let tokens =
        file.get::<Array>("tokenizer.ggml.tokens").unwrap().strs().unwrap().map(|token| token.unwrap().to_string());
    let types = file.get::<Array>("tokenizer.ggml.token_type").unwrap().i32s().unwrap();
    let scores = file.get::<Array>("tokenizer.ggml.scores").unwrap().f32s().unwrap();
    let theirs = theirs
        .set("gemma3n.rope.freq_base_local", base)
        .set("tokenizer.ggml.tokens", tokens.chain((0..3).map(|n| format!("<image{n}>"))).collect::<Vec<_>>())
        .set("tokenizer.ggml.token_type", types.chain([4; 3]).collect::<Vec<_>>())
        .set("tokenizer.ggml.scores", scores.chain([-1000.0; 3]).collect::<Vec<_>>());
    let (usual, theirs) = (copied(&file, usual, 0), copied(&file, theirs, 3));
    same(&usual, &theirs, "gemma3n");
    assert_eq!(logits_on(&theirs, &Executor::Cpu).1, rows);
    let apart = worst(&logits_on(&usual, &gpu()).0, &logits_on(&theirs, &gpu()).0);
    assert!(apart <= 1e-5, "{apart:e} on a GPU");
    let open = |file: &GgufBuilder| ModelFile::new(Gguf::from_bytes(file.to_bytes().unwrap()).unwrap()).unwrap();
    for text in ["a weaver", " and the\nloom"] {
        let special = model::tokenizer::Special::Text;
        assert_eq!(
            open(&usual).tokenizer().encode(text, special).unwrap(),
            open(&theirs).tokenizer().encode(text, special).unwrap(),
            "{text:?}"
        );
    }
}
