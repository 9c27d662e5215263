//! Tests of requests that are too large for a device, and of a lost device.

use super::{Class, Device, Limits, Select, Without};
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::states::States;
use crate::graph::tensor::StateKind;
use crate::native::run;
use crate::platform::block_on;
use std::sync::OnceLock;

const STORAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE;

/// A new device, for a test that makes its device unusable.
fn own() -> Device {
    Device::auto().expect("an adapter, if only the software one")
}

/// One device for all tests of a process. Drivers have hung when many devices were opened and
/// closed at once.
pub fn device() -> Device {
    static SHARED: OnceLock<Device> = OnceLock::new();
    SHARED.get_or_init(own).clone()
}

fn works(device: &Device) -> bool {
    run::scale(device, &[1.0, 2.0], 3.0).is_ok_and(|y| y == [3.0, 6.0])
}

#[test]
fn a_buffer_past_the_limit_is_refused_with_its_name() {
    let device = device();
    let limit = device.caps().max_buffer_bytes;
    match block_on(device.buffer("an absurd buffer", limit + 1, STORAGE)) {
        Err(Error::BindingTooLarge { what, bytes, limit: told }) => {
            assert!(what == "an absurd buffer" && bytes > limit && told == limit);
        }
        other => panic!("{other:?}"),
    }
    assert!(works(&device));
}

#[test]
fn features_that_are_left_out_make_another_device() {
    let open = |limits| Device::open(&Select::Best, limits).expect("an adapter, if only the software one");
    let without = |names: &str| Limits::Adapter.without(names.parse().expect("names"));
    let (all, fewer) = (open(Limits::Adapter), open(without("coop,subgroups")));
    assert!(all.caps().subgroups && !fewer.caps().subgroups && fewer.caps().subgroup_size == 0);
    assert_ne!(all.table_key(), fewer.table_key());
    assert!(works(&fewer));
    assert_eq!(without(" f16 ,coop"), without("coop").without("f16".parse().expect("a name")));
    assert_eq!(
        (without(""), Limits::WebGpu.without("f16".parse().expect("a name"))),
        (Limits::Adapter, Limits::WebGpu)
    );
    assert_eq!("coop,matrices".parse::<Without>(), Err("\"matrices\" is not coop, subgroups or f16".to_string()));
}

/// A browser frees a buffer only when it is destroyed, so the last handle destroys it, even if
/// wgpu's own handle is still held.
#[test]
fn the_last_handle_of_a_buffer_destroys_it() {
    let device = device();
    let buffer = block_on(device.buffer("a buffer", 16, wgpu::BufferUsages::COPY_DST)).expect("room");
    let (second, raw) = (buffer.clone(), wgpu::Buffer::clone(&buffer));
    let refused = || {
        let scopes = device.scopes([wgpu::ErrorFilter::Validation]);
        device.0.queue.write_buffer(&raw, 0, &[0; 16]);
        device.0.queue.submit([]);
        let [error] = super::buffer::caught(scopes);
        block_on(error)
    };
    drop(buffer);
    assert!(refused().is_none(), "another handle is held");
    drop(second);
    assert!(refused().is_some());
}

/// Allocates buffers of the largest size, without using them, until an allocation fails.
fn hoard() {
    let (device, mut taken) = (own(), vec![]);
    let refused =
        (0..1 << 16).find_map(|_| match block_on(device.buffer("a hoard", device.caps().max_buffer_bytes, STORAGE)) {
            Ok(buffer) => {
                taken.push(buffer);
                None
            }
            Err(error) => Some(error),
        });
    assert!(
        matches!(&refused, Some(Error::OutOfMemory { what, .. }) if what == "a hoard"),
        "{refused:?} after {}",
        taken.len()
    );
    drop(taken);
    block_on(device.flush("a test")).expect("a device that works");
    assert!(works(&device));
}

/// A software adapter can allocate almost without limit, because the operating system promises more
/// memory than it has. So this test runs in a child process with a memory limit.
#[test]
fn memory_that_is_not_there_is_an_error_and_what_was_taken_comes_back() {
    const CHILD: &str = "WEFT_TEST_HOARD";
    if cfg!(not(unix)) || device().adapter().class != Class::Software || std::env::var_os(CHILD).is_some() {
        return hoard();
    }
    let name = "device::tests::memory_that_is_not_there_is_an_error_and_what_was_taken_comes_back";
    let limited = "ulimit -v 16000000 && exec \"$0\" --exact \"$1\"";
    let exe = std::env::current_exe().expect("this test");
    let child = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(exe)
        .arg(name)
        .env(CHILD, "1")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn states_that_do_not_fit_leave_the_device_usable() {
    let device = device();
    let kinds = [StateKind::kv(cpu_ref::KvType::F32, 1 << 20)];
    let states = States::new(&Executor::from(&device), &kinds, 1, u32::MAX);
    assert!(matches!(states.map(|s| s.bytes()), Err(Error::BindingTooLarge { .. })));
    assert!(works(&device));
}

#[test]
fn a_device_that_went_away_says_so_in_every_call() {
    let device = own();
    assert!(works(&device));
    device.0.device.destroy();
    for _ in 0..2 {
        let lost = run::silu(&device, &[1.0]);
        assert!(matches!(&lost, Err(Error::DeviceLost { what, .. }) if !what.is_empty()), "{lost:?}");
    }
    assert!(works(&own()), "another device of the same adapter opens");
}

/// wgpu reports a loss only when no work is in flight any more. Calls fail in other ways before.
#[test]
fn a_device_that_goes_away_in_the_middle_of_work_says_so_too() {
    let values = vec![1.0; 1 << 20];
    for wait in 0..24 {
        let device = own();
        assert!(works(&device));
        let work = || loop {
            if let Err(error) = run::silu(&device, &values) {
                return error;
            }
        };
        let ended = std::thread::scope(|scope| {
            let working = [(); 4].map(|()| scope.spawn(work));
            std::thread::sleep(std::time::Duration::from_millis(wait));
            device.0.device.destroy();
            working.map(|thread| thread.join().expect("no panic"))
        });
        for error in ended {
            assert!(matches!(&error, Error::DeviceLost { .. }), "after {wait} ms: {error:?}");
        }
        assert!(device.is_lost());
    }
}
