//! A value that the first caller makes. Concurrent callers wait until it is ready.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

#[derive(Debug)]
pub(super) struct Once<T> {
    value: OnceLock<T>,
    making: Mutex<Making>,
}

#[derive(Debug, Default)]
struct Making {
    /// Whether a caller makes the value now.
    active: bool,
    waiting: Vec<Waker>,
}

/// The right to make the value. If its caller gives up, a waiting caller makes the value.
struct Turn<'a, T>(&'a Once<T>);

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut making = self.0.making();
        making.active = false;
        let waiting = std::mem::take(&mut making.waiting);
        drop(making);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), making: Mutex::default() }
    }
}

impl<T> Once<T> {
    fn making(&self) -> MutexGuard<'_, Making> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, if it is ready.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Makes the value, or waits for the caller that makes it.
    pub async fn get_or_make<F: Future<Output = T>>(&self, make: impl FnOnce() -> F) -> &T {
        if let Some(turn) = self.turn().await {
            let value = make().await;
            let _ = self.value.set(value);
            drop(turn);
        }
        self.value.get().expect("made by this caller or another")
    }

    /// The right to make the value; `None` if the value is ready.
    async fn turn(&self) -> Option<Turn<'_, T>> {
        poll_fn(|cx| {
            let mut making = self.making();
            if self.value.get().is_some() {
                return Poll::Ready(None);
            }
            if making.active {
                if !making.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    making.waiting.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            making.active = true;
            Poll::Ready(Some(Turn(self)))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Signal, block_on};
    use std::pin::pin;
    use std::task::Context;

    #[test]
    fn a_waiting_caller_gets_the_value_or_makes_it_if_the_first_caller_gives_up() {
        let once = Once::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let (ready, given_up) = (Signal::new(), Signal::<u32>::new());
        let set = ready.setter();
        {
            let mut first = pin!(once.get_or_make(|| given_up));
            assert!(first.as_mut().poll(cx).is_pending());
            let mut waiting = Box::pin(once.get_or_make(|| async { unreachable!("another caller makes it") }));
            assert!(waiting.as_mut().poll(cx).is_pending());
        }
        assert_eq!(once.get(), None);
        let mut second = pin!(once.get_or_make(|| ready));
        let mut third = pin!(once.get_or_make(|| async { unreachable!("the second caller makes it") }));
        assert!(second.as_mut().poll(cx).is_pending() && third.as_mut().poll(cx).is_pending());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| *block_on(once.get_or_make(|| async { 5 })));
            set(4);
            assert_eq!(second.as_mut().poll(cx), Poll::Ready(&4));
            assert_eq!((third.as_mut().poll(cx), waits.join().expect("it is woken")), (Poll::Ready(&4), 4));
        });
    }
}
