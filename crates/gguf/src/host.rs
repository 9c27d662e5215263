//! What differs between a native host, whose threads share functions and files, and a browser,
//! where these belong to the one thread that made them.

#[cfg(target_arch = "wasm32")]
pub use one_thread::*;
#[cfg(not(target_arch = "wasm32"))]
pub use threads::*;

#[cfg(not(target_arch = "wasm32"))]
mod threads {
    use crate::Progress;
    use std::io::{self, Write};
    use std::pin::Pin;

    /// `Send` on a native host. Every type has it in a browser.
    pub trait MaybeSend: Send {}
    impl<T: Send + ?Sized> MaybeSend for T {}

    /// `Sync` on a native host. Every type has it in a browser.
    pub trait MaybeSync: Sync {}
    impl<T: Sync + ?Sized> MaybeSync for T {}

    /// A function that gets how far some work is. In a browser it need not be `Sync`.
    pub type Report<'a> = &'a (dyn Fn(Progress) + Sync);

    /// A [`Report`] that the work owns.
    pub type BoxReport<'a> = Box<dyn Fn(Progress) + Send + Sync + 'a>;

    /// A function that gets how far a part of some work is. In a browser it need not be `Sync`.
    pub type PartReport<'a, Part> = &'a (dyn Fn(Part, Progress) + Sync);

    /// A function that writes the data of a tensor.
    pub(crate) type WriteData<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'a;

    /// A boxed future. In a browser it need not be `Send`.
    pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
}

#[cfg(target_arch = "wasm32")]
mod one_thread {
    use crate::Progress;
    use std::io::{self, Write};
    use std::pin::Pin;

    /// `Send` on a native host. Every type has it in a browser.
    pub trait MaybeSend {}
    impl<T: ?Sized> MaybeSend for T {}

    /// `Sync` on a native host. Every type has it in a browser.
    pub trait MaybeSync {}
    impl<T: ?Sized> MaybeSync for T {}

    /// A function that gets how far some work is. On a native host it is `Sync`.
    pub type Report<'a> = &'a dyn Fn(Progress);

    /// A [`Report`] that the work owns.
    pub type BoxReport<'a> = Box<dyn Fn(Progress) + 'a>;

    /// A function that gets how far a part of some work is. On a native host it is `Sync`.
    pub type PartReport<'a, Part> = &'a dyn Fn(Part, Progress);

    /// A function that writes the data of a tensor.
    pub(crate) type WriteData<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;

    /// A boxed future. On a native host it is `Send`.
    pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
}
