//! Contexts that run full: what is forgotten, for those who ask for it.

use crate::error::Error;
use crate::sequence::known;
use crate::session::Session;

/// How many tokens after the first `keep` are left out of `tokens` tokens, so that one more has room: as few halves of what is not
/// kept as will do. A conversation that grows by little is cut at the same place again, and keeps what was evaluated of it.
fn left_out(tokens: usize, keep: usize, context: usize) -> usize {
    let keep = keep.min(context / 2);
    let half = ((context - keep) / 2).max(1);
    let over = (tokens + 1).saturating_sub(context);
    (over.div_ceil(half) * half).min(tokens.saturating_sub(keep.max(1)))
}

impl Session {
    /// Tokens that shifts left out of the conversation so far; see [`SessionOptions::shift`](crate::SessionOptions::shift).
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.memo.dropped
    }

    /// Appends tokens; they are evaluated when logits or text are asked for.
    ///
    /// # Errors
    /// [`Error::TokenId`]; [`Error::ContextOverflow`], unless the context shifts. Nothing is appended then.
    pub fn feed(&mut self, ids: &[u32]) -> Result<(), Error> {
        let vocabulary = self.model().summary().vocabulary;
        let shifts = self.runner.options().shift.is_some() && self.tokens().len() + ids.len() >= self.context();
        if !shifts {
            return self.sequence.feed(ids, vocabulary, self.context());
        }
        known(ids, vocabulary)?;
        let dropped = self.memo.dropped;
        self.replace(&[self.tokens(), ids].concat())?;
        self.memo.dropped += dropped;
        Ok(())
    }

    /// Makes the session hold exactly these tokens, keeping what it has evaluated of their longest common prefix. More than the
    /// context holds are an error, or shifted.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub fn set_prompt(&mut self, ids: &[u32]) -> Result<(), Error> {
        known(ids, self.model().summary().vocabulary)?;
        self.replace(ids)
    }

    /// Makes room for a token where the context is full and may shift; tells whether there is room now.
    pub(crate) fn shift(&mut self) -> Result<bool, Error> {
        if self.runner.options().shift.is_some() && self.tokens().len() >= self.context() {
            self.feed(&[])?;
        }
        Ok(self.tokens().len() < self.context())
    }

    /// Holds these tokens, those that must go left out.
    fn replace(&mut self, ids: &[u32]) -> Result<(), Error> {
        let context = self.context();
        let (keep, out) = match self.runner.options().shift {
            Some(keep) => ((keep as usize).min(context / 2), left_out(ids.len(), keep as usize, context)),
            None => (ids.len(), 0),
        };
        let needed = ids.len() - out;
        if needed > context {
            return Err(Error::ContextOverflow { needed, limit: context });
        }
        let keep = keep.min(ids.len() - out);
        let ids = [&ids[..keep], &ids[keep + out..]].concat();
        let common = self.tokens().iter().zip(&ids).take_while(|(a, b)| a == b).count();
        self.sequence.rollback(common);
        self.sequence.tokens = ids;
        self.memo.dropped = out;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::left_out;

    #[test]
    fn halves_are_left_out_until_one_more_token_has_room() {
        // Ten positions, of which two are kept: halves of four.
        let out = |tokens| left_out(tokens, 2, 10);
        assert_eq!([8, 9, 10, 13, 14, 100].map(out), [0, 0, 4, 4, 8, 92]);
        assert_eq!(left_out(10, 9, 10), 2, "half of the context is kept at most");
        assert_eq!(left_out(1, 0, 1), 0, "a token stays");
    }

    #[test]
    fn what_is_left_out_step_by_step_is_what_is_left_out_at_once() {
        for (context, keep) in [(8, 0), (10, 3), (33, 7), (100, 60)] {
            let (mut held, mut out) = (0, 0);
            for tokens in 1..500 {
                held += 1;
                let more = left_out(held, keep, context);
                (held, out) = (held - more, out + more);
                assert_eq!(left_out(tokens, keep, context), out, "{tokens} tokens in {context}");
                assert!(held < context);
            }
        }
    }
}
