//! What differs between a native host, which has threads, and a browser.

#[cfg(target_arch = "wasm32")]
pub use one_thread::*;
#[cfg(not(target_arch = "wasm32"))]
pub use threads::*;

#[cfg(not(target_arch = "wasm32"))]
mod threads {
    use rayon::prelude::*;

    /// A function that fills whole rows of a tensor, from this row on, with values.
    pub type Fill<'a> = Box<dyn Fn(usize, &mut [f32]) -> gguf::Result<()> + Send + Sync + 'a>;

    /// Number of items that [`map`] takes at a time.
    pub fn threads() -> usize {
        rayon::current_num_threads()
    }

    /// The results of `f`, in the order of the items. `scratch` makes what a thread reuses.
    pub fn map<T: Send, S, R: Send, E: Send>(
        items: Vec<T>,
        scratch: impl Fn() -> S + Send + Sync,
        f: impl Fn(&mut S, T) -> Result<R, E> + Send + Sync,
    ) -> Result<Vec<R>, E> {
        items.into_par_iter().map_init(scratch, f).collect()
    }
}

#[cfg(target_arch = "wasm32")]
mod one_thread {
    /// A function that fills whole rows of a tensor, from this row on, with values.
    pub type Fill<'a> = Box<dyn Fn(usize, &mut [f32]) -> gguf::Result<()> + 'a>;

    /// Number of items that [`map`] takes at a time.
    pub fn threads() -> usize {
        1
    }

    /// The results of `f`, in the order of the items. `scratch` makes what is reused.
    pub fn map<T, S, R, E>(
        items: Vec<T>,
        scratch: impl Fn() -> S,
        f: impl Fn(&mut S, T) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let mut scratch = scratch();
        items.into_iter().map(|item| f(&mut scratch, item)).collect()
    }
}
