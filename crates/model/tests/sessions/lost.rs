//! A device that is lost in the middle of an answer: the tokens stay, and a session that moves to
//! another device answers as one that was never interrupted.

use crate::common::{Tiny, drawn, exact, greedy, ids, run};
use crate::lora::Lora;
use gguf::GgmlType;
use kernels::{Device, Executor};
use model::{AdapterFile, Applied, Error, Model, Sampling, Session};

/// A new device, because the test loses it.
fn own() -> (Device, Executor) {
    let device = Device::auto().expect("an adapter, if only the software one");
    (device.clone(), Executor::Gpu(device))
}

/// The same weights on a device that is opened again.
fn again(model: &Model) -> Model {
    model.to_file().on(own().1).unwrap()
}

fn session(model: &Model, prompt: &[u32], adapters: Vec<Applied>) -> Session {
    let mut session = model.session(exact(16)).unwrap();
    session.set_adapters(adapters).unwrap();
    session.feed(prompt).unwrap();
    session
}

#[track_caller]
fn is_lost(error: &Error) {
    assert!(matches!(error, Error::Kernels(kernels::Error::DeviceLost { .. })), "{error}");
}

/// Reads tokens of an answer, loses the device after the seventh, and reads until the error.
fn interrupted(session: &mut Session, device: &Device) -> Vec<u32> {
    let (mut read, mut failed) = (vec![], None);
    for token in session.generate_with(greedy(20)).unwrap() {
        match token {
            Ok(token) => read.push(token.id),
            Err(error) => failed = Some(error),
        }
        if read.len() == 7 {
            device.lose();
        }
    }
    is_lost(&failed.expect("an answer without a device ends with an error"));
    assert!((7..20).contains(&read.len()), "{read:?}");
    read
}

#[test]
fn an_answer_goes_on_where_its_device_was_lost() {
    // Gemma 3 has rings, which the answer wraps.
    for tiny in [Tiny::qwen3(), Tiny::gemma3()] {
        let (device, executor) = own();
        let (model, prompt) = (tiny.on(&executor), ids(70, 4));
        let free = drawn(&run(&mut session(&model, &prompt, vec![]), greedy(20)));
        let mut cut = session(&model, &prompt, vec![]);
        let read = interrupted(&mut cut, &device);
        assert_eq!(cut.tokens(), [&prompt[..], &read].concat(), "what was read stays");
        assert!(executor.is_lost() && model.executor().is_lost());
        is_lost(&cut.generate_with(greedy(1)).unwrap().next().unwrap().unwrap_err());
        cut.move_to(&again(&model), vec![]).unwrap();
        assert!(cut.evaluated() == 0 && !cut.model().executor().is_lost());
        assert_eq!(drawn(&run(&mut cut, greedy(20 - read.len()))), free[read.len()..], "{}", tiny.architecture);
        // The same conversation goes on from the CPU to a device, and back.
        for executor in [Executor::Cpu, own().1, Executor::Cpu] {
            cut.move_to(&model.to_file().on(executor).unwrap(), vec![]).unwrap();
            cut.rollback(prompt.len() + 3);
            assert_eq!(drawn(&run(&mut cut, greedy(17))), free[3..]);
        }
    }
}

#[test]
fn a_prompt_whose_device_was_lost_is_read_again() {
    let (device, executor) = own();
    let (model, prompt) = (Tiny::qwen3().on(&executor), ids(200, 6));
    let free = drawn(&run(&mut session(&model, &prompt, vec![]), greedy(5)));
    let mut cut = session(&model, &prompt, vec![]);
    let lose = |progress: model::Progress| {
        if progress.done >= 48 {
            device.lose()
        }
    };
    is_lost(&cut.prefill(Some(&lose)).unwrap_err());
    assert_eq!(cut.tokens(), prompt);
    cut.move_to(&again(&model), vec![]).unwrap();
    assert_eq!(drawn(&run(&mut cut, greedy(5))), free);
}

#[test]
fn adapters_are_loaded_again_beside_the_weights() {
    let tiny = Tiny::qwen3();
    let (device, executor) = own();
    let (model, prompt) = (tiny.on(&executor), ids(20, 3));
    let load = |model: &Model| {
        let file: AdapterFile = Lora::whole(&tiny, 3, 5).gguf(tiny.architecture, GgmlType::F32);
        vec![Applied { adapter: model.adapter(&file).unwrap(), scale: 0.5 }]
    };
    let free = drawn(&run(&mut session(&model, &prompt, load(&model)), greedy(20)));
    assert_ne!(free, drawn(&run(&mut session(&model, &prompt, vec![]), greedy(20))), "the adapter has an effect");
    let mut cut = session(&model, &prompt, load(&model));
    let read = interrupted(&mut cut, &device);
    let opened = again(&model);
    let old = cut.adapters().to_vec();
    assert!(matches!(cut.move_to(&opened, old), Err(Error::Adapter(_))), "adapters of the lost device");
    assert_eq!(cut.tokens().len(), prompt.len() + read.len(), "nothing changes after an error");
    cut.move_to(&opened, load(&opened)).unwrap();
    assert_eq!(drawn(&run(&mut cut, greedy(20 - read.len()))), free[read.len()..]);
}

#[test]
fn a_batch_goes_on_where_its_device_was_lost() {
    let (device, executor) = own();
    let model = Tiny::qwen3().on(&executor);
    let batch = |model: &Model| {
        let mut batch = model.batch(exact(16).sequences(2)).unwrap();
        (0..2).for_each(|n| batch.feed(n, &ids(9 + n as usize, n.into())).unwrap());
        batch
    };
    let sampling = [Sampling::greedy()];
    let (mut free, mut cut) = (batch(&model), batch(&model));
    (0..12).for_each(|_| drop(free.step(&sampling).unwrap()));
    (0..5).for_each(|_| drop(cut.step(&sampling).unwrap()));
    device.lose();
    is_lost(&(0..9).find_map(|_| cut.step(&sampling).err()).expect("a step without a device"));
    cut.move_to(&again(&model), vec![]).unwrap();
    while cut.tokens(0).len() < free.tokens(0).len() {
        cut.step(&sampling).unwrap();
    }
    assert_eq!([0, 1].map(|n| cut.tokens(n)), [0, 1].map(|n| free.tokens(n)));
}

#[test]
fn a_session_without_its_device_is_saved_with_its_tokens() {
    let (device, executor) = own();
    let (model, prompt) = (Tiny::qwen3().on(&executor), ids(20, 4));
    let free = drawn(&run(&mut session(&model, &prompt, vec![]), greedy(20)));
    let mut cut = session(&model, &prompt, vec![]);
    cut.set_note("kept");
    let read = interrupted(&mut cut, &device);
    let mut saved = vec![];
    cut.save(&mut saved).unwrap();
    let mut loaded = again(&model).session(exact(16)).unwrap();
    loaded.load(&mut &saved[..]).unwrap();
    assert_eq!((loaded.tokens(), loaded.note(), loaded.evaluated()), (cut.tokens(), b"kept".as_slice(), 0));
    assert_eq!(drawn(&run(&mut loaded, greedy(20 - read.len()))), free[read.len()..]);
}

#[test]
fn weights_of_another_file_are_refused() {
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let mut session = session(&model, &ids(20, 4), vec![]);
    session.prefill(None).unwrap();
    let other = Tiny { seed: 9, ..Tiny::qwen3() }.on(&Executor::Cpu);
    assert!(matches!(session.move_to(&other, vec![]), Err(Error::OtherModel)));
    assert_eq!((session.tokens().len(), session.evaluated()), (20, 20));
}
