//! The tests that a command line asks for.

use super::args::Args;
use std::fmt;

/// One test: reading a prompt or generating tokens, at a depth, in a number of sequences at once;
/// or training on a number of examples at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub kind: Kind,
    pub depth: u32,
    pub sequences: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Prompt(u32),
    Generate(u32),
    /// A step of training on examples of so many tokens.
    Train(u32),
}

impl Test {
    /// Positions of the context that the test needs.
    pub fn positions(&self) -> u32 {
        match self.kind {
            // The token that is drawn after the prompt takes a position too.
            Kind::Prompt(n) => self.depth.saturating_add(n).saturating_add(1),
            Kind::Generate(n) => self.depth.max(1).saturating_add(n),
            // Training has no cache.
            Kind::Train(_) => 1,
        }
    }

    /// The number of counted tokens, in all sequences together.
    pub fn tokens(&self) -> f64 {
        match self.kind {
            Kind::Prompt(n) | Kind::Generate(n) | Kind::Train(n) => f64::from(n) * f64::from(self.sequences),
        }
    }
}

/// Prints `pp512`, `tg128`, `tg128@d4096`, `tg128@d4096@b8` or `train512@b8`.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Prompt(n) => write!(f, "pp{n}")?,
            Kind::Generate(n) => write!(f, "tg{n}")?,
            Kind::Train(n) => write!(f, "train{n}")?,
        }
        if self.depth > 0 {
            write!(f, "@d{}", self.depth)?;
        }
        if self.sequences > 1 { write!(f, "@b{}", self.sequences) } else { Ok(()) }
    }
}

/// All combinations, in the order of the flags: sequences outermost, then depths. Only one sequence
/// reads prompts.
pub fn tests(args: &Args) -> Vec<Test> {
    if args.train {
        let of = |sequences: u32| {
            args.prompts.iter().filter(|&&n| n > 0).map(move |&n| Test { kind: Kind::Train(n), depth: 0, sequences })
        };
        return args.batch.iter().flat_map(|&sequences| of(sequences)).collect();
    }
    let prompts: Vec<Kind> = args.prompts.iter().filter(|&&n| n > 0).map(|&n| Kind::Prompt(n)).collect();
    let generated: Vec<Kind> = args.generate.iter().filter(|&&n| n > 0).map(|&n| Kind::Generate(n)).collect();
    let mut tests = vec![];
    for &sequences in &args.batch {
        for &depth in &args.depths {
            let kinds = prompts.iter().filter(|_| sequences == 1).chain(&generated);
            tests.extend(kinds.map(|&kind| Test { kind, depth, sequences }));
        }
    }
    tests
}
