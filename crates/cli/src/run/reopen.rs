//! A device that was lost in a chat is opened again before the next turn.

use super::talk::Talk;
use crate::exit::{line, note, plain};
use crate::lora;
use crate::progress::Bar;
use anyhow::{Error, Result};
use kernels::Error as Failure;

/// The line that tells why a turn has no answer: what happened, and what to do.
pub fn told(error: &Error) -> String {
    match error.downcast_ref() {
        Some(model::Error::Kernels(Failure::DeviceLost { what, reason })) => {
            let reason = crate::exit::one_line(reason);
            format!(
                "the GPU device was lost in {what} ({reason}); the answer is dropped: ask again, and the device is opened again"
            )
        }
        Some(model::Error::Kernels(Failure::OutOfMemory { .. })) => {
            format!("{}; the answer is dropped, and the conversation before it goes on", line(error))
        }
        Some(model::Error::ContextOverflow { needed, limit }) => format!(
            "the context is full: it has {limit} positions, and {needed} are needed; /reset forgets the conversation, /set ctx N enlarges it"
        ),
        Some(model::Error::Snapshot(model::SnapshotError::Adapters { .. })) => {
            format!("{}: see /lora", plain(error))
        }
        _ => line(error),
    }
}

impl Talk {
    /// If the device was lost, chooses a device again, loads the weights and the adapters onto it,
    /// and moves the session there. The session then reads its tokens again.
    pub fn reopen(&mut self) -> Result<()> {
        let lost = self.session.model().executor();
        if !lost.is_lost() {
            return Ok(());
        }
        let (source, before, file) = (&self.args.source, lost.name(), self.session.model().to_file());
        let executor = source.located(self.args.place.device.open(&file, &self.opening))?;
        let name = executor.name();
        let bar = Bar::bytes(format!("loading onto {name}"));
        let model = source.named(file.on_with(executor, &|progress| bar.show(progress)))?;
        let adapters =
            self.session.adapters().iter().map(|applied| lora::again(applied, &model)).collect::<Result<_>>()?;
        source.named(self.session.move_to(&model, adapters))?;
        if name != before {
            note(&format!("{before} is gone; the chat goes on on {name}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_failed_says_what_to_do_in_one_line() {
        let told = |error: Failure| told(&Error::new(model::Error::from(error)).context("m.gguf"));
        let lost = told(Failure::DeviceLost { what: "a step".to_string(), reason: "Unknown:\n reset".to_string() });
        assert_eq!(
            lost,
            "the GPU device was lost in a step (Unknown: reset); the answer is dropped: ask again, and the device is opened again"
        );
        let full = told(Failure::OutOfMemory { what: "a state of 2048 positions".to_string(), bytes: 9 });
        assert!(
            full.starts_with("m.gguf: out of memory while allocating 9 bytes for a state of 2048 positions"),
            "{full}"
        );
        assert!(
            full.ends_with(
                "(see --ctx, --kv and --device); the answer is dropped, and the conversation before it goes on"
            ),
            "{full}"
        );
        assert_eq!(told(Failure::Cancelled), "m.gguf: cancelled");
        let long = told(Failure::ContextOverflow { needed: 9, capacity: 8 });
        assert!(long.ends_with("/reset forgets the conversation, /set ctx N enlarges it"), "{long}");
    }
}
