//! Adapters: both file forms, merging by hand, and swapping, scaling and removing, on both
//! executors.

use crate::common::{Tiny, both, drawn, exact, gpu, greedy, ids, logits, open, run, webgpu, worst};
use crate::lora::{Lora, Over, safetensors};
use gguf::GgmlType;
use kernels::Executor;
use model::{Adapter, AdapterError, AdapterFile, Applied, Model, Sampling};
use std::sync::Arc;

/// The largest difference between sums with factors and sums with merged weights.
const ROUNDING: f32 = 3e-5;

fn applied(adapter: &Arc<Adapter>, scale: f32) -> Applied {
    Applied { adapter: Arc::clone(adapter), scale }
}

/// The logits of a prompt with these adapters.
fn with(model: &Model, adapters: &[Applied], chunk: u32) -> Vec<f32> {
    let mut session = model.session(exact(chunk)).unwrap();
    session.set_adapters(adapters.to_vec()).unwrap();
    session.feed(&ids(17, 3)).unwrap();
    logits(&mut session).0
}

/// The scale of a factor pair's product.
type Scale<'a> = &'a dyn Fn(&Over) -> f32;

/// The model with these adapters merged, each with its scale.
fn merged(tiny: &Tiny, executor: &Executor, adapters: &[(&Lora, Scale<'_>)]) -> Model {
    let file = tiny.edited(tiny.metadata(), |name, spec| {
        adapters.iter().for_each(|(lora, scale)| lora.merge(name, spec, scale));
        true
    });
    open(&file).unwrap().on(executor.clone()).unwrap()
}

#[test]
fn both_forms_give_what_merged_weights_give_in_prefill_and_decode() {
    // Gemma 4 has an embedding per layer, and layers without keys and values of their own.
    for tiny in [Tiny::qwen3().f32(), Tiny::qwen2().f32(), Tiny::gemma4().f32()] {
        let lora = Lora::whole(&tiny, 3, 5);
        let (layers, bound) = match tiny.architecture {
            "gemma4" => (6 * 7 - 2 * 2 + 2 * 6 + 1, ROUNDING.max(tiny.rounding())),
            _ => (14, ROUNDING),
        };
        for executor in [Executor::Cpu, gpu(), webgpu()] {
            let model = tiny.on(&executor);
            let merged = merged(&tiny, &executor, &[(&lora, &|_| 2.0)]);
            let peft = model.adapter(&lora.peft(GgmlType::F32, "")).unwrap();
            let gguf = model.adapter(&lora.gguf(tiny.architecture, GgmlType::F32)).unwrap();
            assert_eq!((peft.len(), gguf.len(), peft.bytes(), peft.note()), (layers, layers, gguf.bytes(), None));
            for chunk in [64, 1] {
                let expected = with(&merged, &[], chunk);
                let got = with(&model, &[applied(&peft, 1.0)], chunk);
                assert_eq!(got, with(&model, &[applied(&gguf, 1.0)], chunk));
                let apart = (worst(&expected, &got), worst(&with(&model, &[], chunk), &got));
                assert!(apart.0 < bound && apart.1 > 0.5, "{} on {}: {apart:?}", tiny.architecture, executor.name());
            }
        }
    }
}

/// PEFT's form with these additional tensors of [4, 4], and every name changed by `rename`.
fn peft_with(lora: &Lora, more: &[&str], rename: impl Fn(&str) -> String) -> Result<AdapterFile, AdapterError> {
    let mut tensors = lora.tensors(GgmlType::F32);
    for name in more {
        tensors.insert(format!("base_model.model.{name}"), (safetensors::Dtype::F32, vec![4, 4], vec![0; 64]));
    }
    let tensors = tensors.into_iter().map(|(name, tensor)| (rename(&name), tensor)).collect();
    AdapterFile::from_peft(&lora.config(""), Box::new(safetensors(&tensors)))
}

const TOWERS: [&str; 5] = [
    "model.vision_tower.encoder.layers.0.self_attn.q_proj.lora_A.weight",
    "model.vision_tower.encoder.layers.0.self_attn.q_proj.lora_B.weight",
    "model.audio_tower.layers.0.self_attn.q_proj.lora_A.weight",
    "model.multi_modal_projector.linear.lora_A.weight",
    "model.embed_vision.embedding_projection.lora_B.weight",
];

const OTHER_LAYERS: [&str; 4] = [
    "model.layers.0.mlp.experts.2.up_proj.lora_A.weight",
    "model.layers.0.mlp.experts.2.up_proj.lora_B.weight",
    "model.layers.0.mlp.gate.lora_A.weight",
    "model.altup_projections.0.lora_B.weight",
];

#[test]
fn factors_without_a_place_are_left_out_and_told() {
    let tiny = Tiny::gemma4().f32();
    let lora = Lora::whole(&tiny, 4, 5);
    let shared = ["layers.4.self_attn.k_proj", "layers.4.self_attn.v_proj", "layers.5.self_attn.v_proj"];
    let shared: Vec<String> =
        shared.iter().flat_map(|module| ["A", "B"].map(|side| format!("model.{module}.lora_{side}.weight"))).collect();
    let shared: Vec<&str> = shared.iter().map(String::as_str).collect();
    let more = [&TOWERS[..], &OTHER_LAYERS, &shared].concat();
    let model = tiny.on(&Executor::Cpu);
    let expected = with(&model, &[applied(&model.adapter(&lora.peft(GgmlType::F32, "")).unwrap(), 1.0)], 16);
    let file = peft_with(&lora, &more, str::to_string).unwrap();
    let adapter = model.adapter(&file).unwrap();
    assert_eq!(with(&model, &[applied(&adapter, 1.0)], 16), expected);
    let said = adapter.note().unwrap().to_string();
    for part in [
        "factors of towers and projectors (model.audio_tower.layers.0.self_attn.q_proj, model.embed_vision.embedding_projection and 2 more): ",
        "factors of experts, routers and projections of streams (model.altup_projections.0, model.layers.0.mlp.experts.2.up_proj and 1 \
         more): these layers take none",
        "factors of keys and values (blk.4.attn_k.weight, blk.4.attn_v.weight and 1 more): the layer takes them from an earlier layer",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // The same note without loading, and the factors that are left.
    let mut checked = open(&tiny.file()).unwrap().check(&Executor::Cpu).unwrap();
    assert_eq!(checked.adapt(&file, 1.0).unwrap(), adapter.note());
    let (factors, note) = checked.factors_of(&file).unwrap();
    assert_eq!((factors.len(), note), (adapter.len(), adapter.note()));
    assert_eq!(model.factors_of(&file).unwrap().0, factors);
    // llama.cpp's form has other names of towers and experts.
    let builder =
        lora.builder("gemma4", GgmlType::F32).tensor_f32("blk.1.ffn_up_exps.weight.lora_b", &[4, 4, 2], &[0.0; 32]);
    let builder = builder.tensor_f32("v.blk.0.attn_q.weight.lora_a", &[4, 4], &[0.0; 16]);
    let builder = builder.tensor_f32("blk.5.attn_k.weight.lora_a", &[4, 4], &[0.0; 16]).tensor_f32(
        "blk.5.attn_k.weight.lora_b",
        &[4, 4],
        &[0.0; 16],
    );
    let file = AdapterFile::from_gguf(gguf::Gguf::from_bytes(builder.to_bytes().unwrap()).unwrap()).unwrap();
    let adapter = model.adapter(&file).unwrap();
    assert_eq!(with(&model, &[applied(&adapter, 1.0)], 16), expected);
    let said = adapter.note().unwrap().to_string();
    assert!(said.contains("(v.blk.0.attn_q.weight)") && said.contains("(blk.5.attn_k.weight)"), "{said}");
    assert!(said.contains("(blk.1.ffn_up_exps.weight)"), "{said}");
}

/// PEFT stores the table beside factors of embed_tokens or lm_head.
#[test]
fn copies_of_the_table_are_left_out_if_they_have_its_shape() {
    let tiny = Tiny::qwen2().f32();
    let (model, lora) = (tiny.on(&Executor::Cpu), Lora::whole(&tiny, 4, 5));
    let expected = with(&model, &[applied(&model.adapter(&lora.peft(GgmlType::F32, "")).unwrap(), 1.0)], 16);
    let of = |rows: usize| {
        let mut tensors = lora.tensors(GgmlType::F32);
        for name in ["model.embed_tokens", "lm_head"] {
            let copy = (safetensors::Dtype::BF16, vec![rows, 64], vec![0; 2 * rows * 64]);
            tensors.insert(format!("base_model.model.{name}.base_layer.weight"), copy);
        }
        model.adapter(&AdapterFile::from_peft(&lora.config(""), Box::new(safetensors(&tensors))).unwrap())
    };
    let adapter = of(300).unwrap();
    assert_eq!(with(&model, &[applied(&adapter, 1.0)], 16), expected);
    let said = adapter.note().unwrap().to_string();
    assert!(said.contains("copies of weights of the base (base_model.model.lm_head.base_layer.weight, "), "{said}");
    let error = of(301).err().expect("a longer table").to_string();
    assert!(
        error.contains("base_layer.weight is [301, 64], a copy of a weight of the base, but this model's is [300, 64]"),
        "{error}"
    );
}

#[test]
fn an_adapter_of_which_nothing_applies_is_refused() {
    let tiny = Tiny::gemma4().f32();
    let none = Lora { over: vec![], ..Lora::whole(&tiny, 4, 5) };
    let error = peft_with(&none, &TOWERS, str::to_string).err().expect("refused").to_string();
    assert!(
        error.starts_with(
            "no factor of the adapter applies: it has factors of towers and projectors (model.audio_tower"
        ),
        "{error}"
    );
    let shared = ["A", "B"].map(|side| format!("model.layers.5.self_attn.k_proj.lora_{side}.weight"));
    let file = peft_with(&none, &[&shared[0], &shared[1]], str::to_string).unwrap();
    let error = tiny.on(&Executor::Cpu).adapter(&file).err().expect("refused").to_string();
    assert!(
        error.contains("no factor of the adapter applies: it has factors of keys and values (blk.5.attn_k.weight)"),
        "{error}"
    );
    // A layer that the model does not have is no layer that shares.
    let beyond = shared.map(|name| name.replace(".5.", ".6."));
    let file = peft_with(&none, &[&beyond[0], &beyond[1]], str::to_string).unwrap();
    let error = tiny.on(&Executor::Cpu).adapter(&file).err().expect("refused").to_string();
    assert!(error.contains("blk.6.attn_k.weight, which this gemma4 model does not have"), "{error}");
}

#[test]
fn gemma3n_leaves_shared_keys_out_even_where_the_file_has_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens/gemma3n/gemma3n-F16.gguf");
    let golden = gguf::Gguf::open(path).unwrap();
    let copied = golden.tensors().iter().fold(gguf::GgufBuilder::new().copy_metadata(&golden), |file, tensor| {
        let mut bytes = vec![0; tensor.bytes as usize];
        golden.read_tensor(tensor, 0, &mut bytes).unwrap();
        let file = file.tensor(tensor.name(), tensor.shape(), tensor.ty().unwrap(), bytes.clone());
        match tensor.name() {
            "blk.3.attn_k.weight" | "blk.3.attn_v.weight" => {
                file.tensor(tensor.name().replace(".3.", ".5."), tensor.shape(), tensor.ty().unwrap(), bytes)
            }
            _ => file,
        }
    });
    let model = open(&copied).unwrap().on(Executor::Cpu).unwrap();
    let [cols, rows] = *golden.tensor("blk.3.attn_k.weight").unwrap().shape() else { panic!("a matrix") };
    let width = golden.get::<u32>("gemma3n.embedding_length").unwrap() as usize;
    let builder = Lora { alpha: 8.0, rank: 4, over: vec![] }.builder("gemma3n", GgmlType::F32);
    let builder =
        ["blk.0", "blk.5"].into_iter().fold(builder, |file, layer| {
            file.tensor_f32(format!("{layer}.attn_k.weight.lora_a"), &[cols, 4], &vec![0.1; 4 * cols as usize])
                .tensor_f32(format!("{layer}.attn_k.weight.lora_b"), &[4, rows], &vec![0.1; 4 * rows as usize])
        });
    let router = [&vec![0.1; 4 * width][..], &[0.1; 16]];
    let builder = builder.tensor_f32("blk.0.altup_router.weight.lora_a", &[width as u64, 4], router[0]);
    let builder = builder.tensor_f32("blk.0.altup_router.weight.lora_b", &[4, 4], router[1]);
    let file = AdapterFile::from_gguf(gguf::Gguf::from_bytes(builder.to_bytes().unwrap()).unwrap()).unwrap();
    let adapter = model.adapter(&file).unwrap();
    let said = adapter.note().unwrap().to_string();
    assert!(adapter.len() == 2 && said.contains("factors of keys and values (blk.5.attn_k.weight)"), "{said}");
}

#[test]
fn names_of_a_state_dict_with_the_name_of_the_adapter_load() {
    let tiny = Tiny::qwen3().f32();
    let (model, lora) = (tiny.on(&Executor::Cpu), Lora::whole(&tiny, 4, 5));
    let of = |file: &AdapterFile| with(&model, &[applied(&model.adapter(file).unwrap(), 1.0)], 16);
    let expected = of(&lora.peft(GgmlType::F32, ""));
    for adapter in ["default", "french"] {
        let file = peft_with(&lora, &[], |name| name.replace(".weight", &format!(".{adapter}.weight"))).unwrap();
        assert_eq!(of(&file), expected);
    }
    let both = peft_with(&lora, &["model.layers.0.self_attn.q_proj.lora_A.other.weight"], str::to_string);
    assert!(
        both.err().expect("refused").to_string().contains("is a second one for the same factor of blk.0.attn_q.weight")
    );
}

#[test]
fn any_subset_of_layers_will_do() {
    let tiny = Tiny::qwen3().f32();
    let model = tiny.on(&Executor::Cpu);
    for linears in [&["attn_v"][..], &["attn_q", "attn_output"], &["ffn_gate", "ffn_up", "ffn_down"]] {
        let mut lora = Lora::random(&tiny, 4, 6, linears);
        lora.over.remove(0);
        let adapter = model.adapter(&lora.peft(GgmlType::F32, "")).unwrap();
        let apart = worst(
            &with(&merged(&tiny, &Executor::Cpu, &[(&lora, &|_| 2.0)]), &[], 64),
            &with(&model, &[applied(&adapter, 1.0)], 64),
        );
        assert!(apart < ROUNDING && adapter.len() == 2 * linears.len() - 1, "{linears:?}: {apart:e}");
    }
}

#[test]
fn adapters_add_up_each_with_its_own_scale() {
    let tiny = Tiny::qwen3().f32();
    let (one, two) = (Lora::whole(&tiny, 3, 7), Lora::random(&tiny, 8, 8, &["attn_q", "ffn_down"]));
    for executor in both() {
        let model = tiny.on(&executor);
        let [a, b] = [&one, &two].map(|lora| model.adapter(&lora.peft(GgmlType::F32, "")).unwrap());
        let expected = with(&merged(&tiny, &executor, &[(&one, &|_| -1.0), (&two, &|_| 2.5)]), &[], 16);
        let got = with(&model, &[applied(&a, -0.5), applied(&b, 1.25)], 16);
        assert!(worst(&expected, &got) < ROUNDING, "{:e} on {}", worst(&expected, &got), executor.name());
        let halves = with(&model, &[applied(&a, 0.5), applied(&a, 0.5)], 16);
        assert!(worst(&with(&model, &[applied(&a, 1.0)], 16), &halves) < ROUNDING, "twice the same");
    }
}

#[test]
fn a_scale_of_0_and_a_removed_adapter_leave_the_model_as_it_was() {
    let tiny = Tiny::qwen3();
    for executor in both() {
        let model = tiny.on(&executor);
        let adapter = model.adapter(&Lora::whole(&tiny, 4, 9).peft(GgmlType::F32, "")).unwrap();
        let plain = with(&model, &[], 16);
        assert_eq!(with(&model, &[applied(&adapter, 0.0)], 16), plain);
        let mut session = model.session(exact(16)).unwrap();
        session.set_adapters(vec![applied(&adapter, 1.0)]).unwrap();
        session.feed(&ids(17, 3)).unwrap();
        assert_ne!(logits(&mut session).0, plain);
        session.set_adapters(vec![]).unwrap();
        assert_eq!((session.evaluated(), session.tokens().len()), (0, 17));
        assert_eq!(logits(&mut session).0, plain, "the whole prompt is read again");
        // Only the caller holds the adapter now.
        assert_eq!(Arc::strong_count(&adapter), 1);
    }
}

#[test]
fn a_conversation_goes_on_as_if_the_new_adapter_had_read_all_of_it() {
    let tiny = Tiny::qwen3();
    for executor in both() {
        let model = tiny.on(&executor);
        let [a, b] = [1, 2].map(|seed| model.adapter(&Lora::whole(&tiny, 4, seed).peft(GgmlType::F32, "")).unwrap());
        let mut session = model.session(exact(16)).unwrap();
        session.feed(&ids(40, 1)).unwrap();
        for adapters in
            [vec![applied(&a, 1.0)], vec![applied(&b, 1.0)], vec![applied(&b, 0.5), applied(&a, 1.0)], vec![]]
        {
            session.set_adapters(adapters.clone()).unwrap();
            let mut fresh = model.session(exact(16)).unwrap();
            fresh.set_adapters(adapters.clone()).unwrap();
            fresh.feed(session.tokens()).unwrap();
            let expected = run(&mut fresh, greedy(8));
            assert_eq!(
                drawn(&run(&mut session, greedy(8))),
                drawn(&expected),
                "{} on {}",
                adapters.len(),
                executor.name()
            );
            // Applying the same adapters again changes nothing and keeps the evaluated positions.
            let evaluated = session.evaluated();
            session.set_adapters(adapters).unwrap();
            assert!(session.evaluated() == evaluated && evaluated > 40);
        }
    }
}

#[test]
fn sessions_and_batches_of_one_model_have_adapters_of_their_own() {
    let tiny = Tiny::qwen3();
    for executor in both() {
        let model = tiny.on(&executor);
        let adapter = model.adapter(&Lora::whole(&tiny, 4, 4).gguf("qwen3", GgmlType::F32)).unwrap();
        let alone = |adapters: &[Applied], seed| {
            let mut session = model.session(exact(16)).unwrap();
            session.set_adapters(adapters.to_vec()).unwrap();
            session.feed(&ids(10, seed)).unwrap();
            drawn(&run(&mut session, greedy(6)))
        };
        let mut batch = model.batch(exact(16).sequences(2)).unwrap();
        (0..2).for_each(|n| batch.feed(n, &ids(10, u64::from(n))).unwrap());
        let draw = |batch: &mut model::Batch| -> Vec<u32> {
            let steps = (0..6).map(|_| batch.step(&[Sampling::greedy()]).unwrap());
            steps.map(|draws| draws[1].id).collect()
        };
        let plain = draw(&mut batch);
        batch.set_adapters(vec![applied(&adapter, 1.0)]).unwrap();
        (0..2).for_each(|n| batch.rollback(n, 10));
        let adapted = draw(&mut batch);
        assert_eq!(
            (&plain, &adapted),
            (&alone(&[], 1), &alone(&[applied(&adapter, 1.0)], 1)),
            "on {}",
            executor.name()
        );
        assert_ne!(plain, adapted);
    }
}

#[test]
fn ranks_and_scales_by_module_and_by_the_root_of_the_rank() {
    let tiny = Tiny::qwen3().f32();
    let model = tiny.on(&Executor::Cpu);
    let mut lora = Lora::random(&tiny, 4, 10, &["attn_q", "ffn_up"]);
    let wide = Lora::random(&tiny, 16, 11, &["ffn_up"]);
    lora.over.retain(|over| over.linear.0 == "attn_q");
    lora.over.extend(wide.over);
    let more =
        r#", "use_rslora": true, "rank_pattern": {"up_proj": 16}, "alpha_pattern": {"layers.1.self_attn.q_proj": 3}"#;
    let adapter = model.adapter(&lora.peft(GgmlType::F32, more)).unwrap();
    let scale = |over: &Over| match (over.linear.0, over.layer) {
        ("ffn_up", _) => 8.0 / 4.0,
        (_, 1) => 3.0 / 2.0,
        _ => 8.0 / 2.0,
    };
    let expected = with(&merged(&tiny, &Executor::Cpu, &[(&lora, &scale)]), &[], 64);
    let got = with(&model, &[applied(&adapter, 1.0)], 64);
    assert!(worst(&expected, &got) < ROUNDING, "{:e}", worst(&expected, &got));
}

#[test]
fn factors_of_16_and_8_bits_are_read_as_they_are() {
    let tiny = Tiny::qwen3();
    let lora = Lora::whole(&tiny, 32, 12);
    for executor in both() {
        let model = tiny.on(&executor);
        let of = |file: &AdapterFile| {
            let adapter = model.adapter(file).unwrap();
            (with(&model, &[applied(&adapter, 1.0)], 16), adapter.bytes())
        };
        let whole = of(&lora.peft(GgmlType::F32, ""));
        for ty in [GgmlType::F16, GgmlType::BF16, GgmlType::Q8_0] {
            let small = of(&lora.gguf("qwen3", ty));
            // The factors rounded to the type, as f32.
            let mut rounded = lora.clone();
            for values in rounded.over.iter_mut().flat_map(|over| [&mut over.a, &mut over.b]) {
                let bytes = gguf::quantize(ty, values, 32).unwrap();
                gguf::dequantize(ty, &bytes, values).unwrap();
            }
            let apart = worst(&of(&rounded.peft(GgmlType::F32, "")).0, &small.0);
            assert!(
                apart < ROUNDING && small.1 < whole.1 * 3 / 5,
                "{ty} on {}: {apart:e}, {} bytes",
                executor.name(),
                small.1
            );
            if ty != GgmlType::Q8_0 {
                assert_eq!(of(&lora.peft(ty, "")), small, "both forms");
            }
        }
    }
}

#[test]
fn what_an_adapter_takes_is_foretold() {
    let tiny = Tiny::qwen3();
    let file = Lora::whole(&tiny, 5, 13).peft(GgmlType::F32, "");
    for executor in both() {
        let options = exact(64).context(500);
        let mut checked = open(&tiny.file()).unwrap().check(&executor).unwrap();
        let before = checked.needs(&options).unwrap();
        checked.adapt(&file, 1.0).unwrap();
        let after = checked.needs(&options).unwrap();
        let model = tiny.on(&executor);
        let adapter = model.adapter(&file).unwrap();
        assert_eq!(after.weights.0, model.weight_bytes() + adapter.bytes());
        assert_eq!(after.intermediates.0 != before.intermediates.0, executor.kind() == "gpu", "{before:?} {after:?}");
        // The session already fills the allowed memory, so no adapter fits.
        let options = options.memory_bytes(Some(before.total().0));
        let mut session = model.session(options).unwrap();
        let error = session.set_adapters(vec![applied(&adapter, 1.0)]).unwrap_err();
        assert!(matches!(error, model::Error::TooLarge { .. }) && session.adapters().is_empty(), "{error}");
    }
}
