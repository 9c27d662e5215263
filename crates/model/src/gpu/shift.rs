//! Context shift: when the context is full, old tokens are dropped if the session asks for it.

use crate::error::Error;
use crate::sequence::known;
use crate::session::Session;

/// How many of `tokens` tokens are dropped, after the first `keep`, so that one more fits. They are
/// dropped in halves of the part that is not kept, and as few as possible. So a conversation that
/// grows slowly is cut at the same place again, and its evaluated tokens stay valid.
fn left_out(tokens: usize, keep: usize, context: usize) -> usize {
    let keep = keep.min(context / 2);
    let half = ((context - keep) / 2).max(1);
    let over = (tokens + 1).saturating_sub(context);
    (over.div_ceil(half) * half).min(tokens.saturating_sub(keep.max(1)))
}

impl Session {
    /// Tokens of the conversation that shifts have dropped so far; see
    /// [`SessionOptions::shift`](crate::SessionOptions::shift).
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.memo.dropped
    }

    /// Appends tokens. They are evaluated when logits or text are requested.
    ///
    /// # Errors
    /// [`Error::TokenId`]; [`Error::ContextOverflow`], unless the context shifts. On an error
    /// nothing is appended.
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

    /// Makes the session hold exactly these tokens. What is evaluated of the longest common prefix
    /// is kept. If the context is too short, this is an error or a shift.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub fn set_prompt(&mut self, ids: &[u32]) -> Result<(), Error> {
        known(ids, self.model().summary().vocabulary)?;
        self.replace(ids)
    }

    /// If the context is full and may shift, shifts it to make room for a token. Returns whether
    /// there is room.
    pub(crate) fn shift(&mut self) -> Result<bool, Error> {
        if self.runner.options().shift.is_some() && self.tokens().len() >= self.context() {
            self.feed(&[])?;
        }
        Ok(self.tokens().len() < self.context())
    }

    /// Replaces the session's tokens with `ids`, without the tokens that a shift drops.
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
        // Ten positions, two of them kept: halves of four.
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
