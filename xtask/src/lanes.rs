//! Work on several threads: the next free thread takes the next item.

use anyhow::Result;
use kernels::{Class, Device};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// One thread per core.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Most threads that share a GPU.
const MOST_OF_GPU: usize = 16;

/// The threads that run shaders on devices like this one, each on a device of its own. A software
/// driver uses only a few threads per device. A GPU waits most of the time for the compiler of its
/// driver, which takes a thread.
pub fn for_device(device: &Device) -> usize {
    if device.adapter().class == Class::Software { cores() } else { cores().min(MOST_OF_GPU) }
}

/// Runs `work` for every item, in order, on this number of threads. Each thread starts with a value
/// that `begin` makes for it.
///
/// # Errors
/// Returns the first error of any thread. Items that have not started by then are skipped.
pub fn each<T: Sync, S>(
    threads: usize,
    items: &[T],
    begin: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, &T) -> Result<()> + Sync,
) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lane = || -> Result<()> {
        let mut state = begin()?;
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !stop.load(Ordering::Relaxed))
        {
            work(&mut state, item).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..threads.clamp(1, items.len().max(1))).map(|_| scope.spawn(lane)).collect();
        let ends: Vec<Result<()>> =
            lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|panic| resume_unwind(panic))).collect();
        ends.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::each;
    use anyhow::ensure;
    use std::sync::Mutex;

    #[test]
    fn every_item_is_done_once_and_an_error_is_told() {
        let items: Vec<u32> = (0..100).collect();
        let done = Mutex::new(vec![]);
        let note = |_: &mut (), item: &u32| {
            done.lock().unwrap().push(*item);
            Ok(())
        };
        each(3, &items, || Ok(()), note).unwrap();
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert_eq!(done, items);
        let refuse = |_: &mut (), item: &u32| {
            ensure!(*item != 50, "not this one");
            Ok(())
        };
        let error = each(3, &items, || Ok(()), refuse).unwrap_err();
        assert_eq!(error.to_string(), "not this one");
        assert!(each(3, &items, || anyhow::bail!("no device"), |_: &mut (), _| Ok(())).is_err());
    }
}
