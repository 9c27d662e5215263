//! An allocator that counts the bytes that the process holds. A global allocator needs `unsafe`;
//! this one forwards every call to the system's allocator.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the calls to the system's allocator.
pub struct Counting {
    live_bytes: AtomicUsize,
    most_bytes: AtomicUsize,
}

impl Counting {
    pub const fn new() -> Self {
        Self { live_bytes: AtomicUsize::new(0), most_bytes: AtomicUsize::new(0) }
    }

    /// Bytes held now.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// The result of `f`, and the largest number of bytes held during it beyond the number at its
    /// start.
    pub fn most_during<T>(&self, f: impl FnOnce() -> T) -> (T, usize) {
        let before = self.live_bytes();
        self.most_bytes.store(before, Ordering::Relaxed);
        let value = f();
        (value, self.most_bytes.load(Ordering::Relaxed).saturating_sub(before))
    }

    fn add(&self, bytes: usize) {
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most_bytes.fetch_max(live, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's contract is ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's contract is ours.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.live_bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is ours.
        unsafe { System.dealloc(pointer, layout) }
    }
}
