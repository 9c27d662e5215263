//! Tests of pipelines built by several threads, in advance, and from the bytes of another device.

use super::*;
use crate::device::tests::device;
use crate::device::{Limits, Select};
use crate::native::run;
use crate::platform::block_on;

/// A device that has built nothing.
fn fresh() -> Device {
    Device::open(&Select::Best, Limits::from_env()).expect("an adapter, if only the software one")
}

/// The first variant of some small kernels.
fn few() -> Vec<Shader> {
    let named =
        crate::language::variants().filter(|variant| ["add", "scale", "silu", "softcap"].contains(&variant.name));
    named.map(|variant| Shader::all(variant, &[0]).remove(0)).collect()
}

#[test]
fn a_kernel_is_built_once_however_many_ask() {
    let device = fresh();
    let shaders = few();
    let twice: Vec<&Shader> = shaders.iter().chain(&shaders).collect();
    let before = device.created();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| block_on(device.pipelines(twice.iter().copied())).unwrap().len());
        }
    });
    assert_eq!((device.created() - before, device.spent().pipelines), (4, 4));
}

#[test]
fn what_was_prepared_is_there_when_a_plan_needs_it_and_what_was_stopped_is_built_then() {
    let device = fresh();
    let preparing = device.prepare(few());
    assert_eq!(preparing.progress().total, 4);
    block_on(device.pipelines(few().iter())).unwrap();
    assert_eq!(preparing.progress(), Progress { done: 4, total: 4 });
    drop(preparing);
    assert_eq!(device.spent().pipelines, 4, "nothing twice");
    assert_eq!(device.prepare(few()).progress(), Progress::default(), "nothing is missing");
    let other = fresh();
    drop(other.prepare(few()));
    assert_eq!(block_on(other.pipelines(few().iter())).unwrap().len(), 4);
    assert_eq!(other.spent().pipelines, 4);
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_each_time_and_spoils_no_other() {
    let shader = few().remove(0);
    // This test opens a device of its own, because the fault stays in the pipelines of the device.
    let broken = fresh().with_source(&shader, "fn add(".to_string());
    for _ in 0..2 {
        assert!(
            matches!(block_on(broken.pipelines([&shader].into_iter())), Err(Error::Pipeline { kernel, .. }) if kernel == shader.label())
        );
    }
    assert_eq!(run::scale(&broken, &[2.0], 3.0).unwrap(), [6.0]);
}

#[test]
fn saved_pipelines_are_restored_and_damaged_or_foreign_ones_replaced() {
    let first = fresh();
    assert!(!first.restore_pipelines(None), "there is nothing to restore");
    if !first.0.features.contains(wgpu::Features::PIPELINE_CACHE) {
        assert!(first.saved_pipelines().is_none());
        return;
    }
    block_on(first.pipelines(few().iter())).unwrap();
    let saved = first.saved_pipelines().expect("something new");
    let second = fresh();
    assert!(second.restore_pipelines(Some(&saved)));
    block_on(second.pipelines(few().iter())).unwrap();
    assert!(second.saved_pipelines().is_none(), "it knows no more than it began with");
    let mut damaged = saved.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for bad in [damaged.as_slice(), b"", &saved[..saved.len() / 2], b"something else entirely"] {
        let third = fresh();
        assert!(!third.restore_pipelines(Some(bad)));
        assert_eq!(run::scale(&third, &[2.0], 3.0).unwrap(), [6.0]);
        assert!(third.saved_pipelines().is_some(), "what replaces it");
    }
}

#[test]
fn a_device_that_was_not_asked_to_remember_saves_nothing() {
    let device = fresh();
    block_on(device.pipelines(few().iter())).unwrap();
    assert!(device.saved_pipelines().is_none());
}

#[test]
fn the_name_of_a_key_is_fit_for_a_file() {
    let name = device().key_name();
    assert!(name.len() < 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
    assert!(device().key().contains(env!("CARGO_PKG_VERSION")) && device().key().contains(&device().adapter().name));
}
