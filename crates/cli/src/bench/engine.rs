//! Runs a test: in one session, or in a batch of several sequences.

use kernels::Profile;
use model::{Applied, Batch, Error, GenerateOptions, Model, Sampling, Session, SessionOptions};

/// The ids of each sequence, by its number.
type Ids<'a> = &'a dyn Fn(u32) -> Vec<u32>;

pub enum Engine {
    One(Box<Session>),
    Many(Box<Batch>),
}

impl Engine {
    /// Makes an engine with this number of sequences.
    pub fn new(model: &Model, options: &SessionOptions, sequences: u32, adapters: &[Applied]) -> Result<Self, Error> {
        let options = options.clone().sequences(sequences);
        if sequences == 1 {
            let mut session = model.session(options)?;
            session.set_adapters(adapters.to_vec())?;
            return Ok(Self::One(Box::new(session)));
        }
        let mut batch = model.batch(options)?;
        batch.set_adapters(adapters.to_vec())?;
        Ok(Self::Many(Box::new(batch)))
    }

    /// Resets every sequence and evaluates its `ids`.
    pub fn begin(&mut self, ids: Ids<'_>) -> Result<(), Error> {
        match self {
            Self::One(session) => {
                session.reset();
                session.feed(&ids(0))?;
                session.prefill(None)
            }
            Self::Many(batch) => {
                for sequence in 0..batch.sequences() {
                    batch.release(sequence);
                    batch.feed(sequence, &ids(sequence))?;
                }
                batch.step(&[Sampling::greedy()]).map(drop)
            }
        }
    }

    /// Goes back to `depth` tokens in every sequence and times the dispatches of the step that
    /// reads their `ids`.
    pub fn profile(&mut self, depth: u32, ids: Ids<'_>) -> Result<Profile, Error> {
        self.rewind(depth);
        match self {
            Self::One(session) => {
                session.feed(&ids(0))?;
                session.profile()
            }
            Self::Many(batch) => {
                for sequence in 0..batch.sequences() {
                    batch.feed(sequence, &ids(sequence))?;
                }
                batch.profile()
            }
        }
    }

    /// Goes back to `depth` tokens in every sequence, after all steps that were submitted ahead
    /// have ended.
    pub fn rewind(&mut self, depth: u32) {
        match self {
            Self::One(session) => session.rollback(depth as usize),
            Self::Many(batch) => (0..batch.sequences()).for_each(|sequence| batch.rollback(sequence, depth as usize)),
        }
    }

    /// Reads the `prompt` of every sequence and draws `steps` tokens in it; returns the total
    /// number of drawn tokens.
    pub fn run(&mut self, prompt: Ids<'_>, steps: u32) -> Result<usize, Error> {
        match self {
            Self::One(session) => {
                session.feed(&prompt(0))?;
                let options = GenerateOptions::default()
                    .sampling(Sampling::greedy())
                    .max_tokens(Some(steps as usize))
                    .ignore_end(true);
                session.generate_with(options)?.try_fold(0, |drawn, token| token.map(|_| drawn + 1))
            }
            Self::Many(batch) => {
                for sequence in 0..batch.sequences() {
                    batch.feed(sequence, &prompt(sequence))?;
                }
                (0..steps).try_fold(0, |drawn, _| Ok(drawn + batch.step(&[Sampling::greedy()])?.len()))
            }
        }
    }
}
