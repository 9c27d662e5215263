//! One sequence: its ids, and how many of them the states hold.

use crate::error::Error;

#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// What was fed and drawn, in order.
    pub tokens: Vec<u32>,
    /// Positions whose keys and values the states hold; while steps run ahead of what was read, more than `tokens`.
    pub evaluated: usize,
}

impl Sequence {
    /// Appends ids, all or none.
    pub fn feed(&mut self, ids: &[u32], vocabulary: u32, context: usize) -> Result<(), Error> {
        if let Some(&id) = ids.iter().find(|&&id| id >= vocabulary) {
            return Err(Error::TokenId { id, vocabulary });
        }
        let needed = self.tokens.len() + ids.len();
        if needed > context {
            return Err(Error::ContextOverflow { needed, limit: context });
        }
        self.tokens.extend_from_slice(ids);
        Ok(())
    }

    /// Forgets everything after the first `tokens` tokens.
    pub fn rollback(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        self.settle();
    }

    /// Forgets what was evaluated, but no token.
    pub fn stale(&mut self) {
        self.evaluated = 0;
    }

    /// Forgets the steps that ran ahead of the tokens.
    pub fn settle(&mut self) {
        self.evaluated = self.evaluated.min(self.tokens.len());
    }

    /// Sees to it that there is a token to evaluate, for a draw needs one: the last, again if it must be.
    pub fn reread(&mut self) {
        self.evaluated = self.evaluated.min(self.tokens.len().saturating_sub(1));
    }
}
