//! Which tests a command line asks for.

use super::Args;
use std::fmt;

/// One test: a prompt read, or tokens generated, after some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub kind: Kind,
    pub depth: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Prompt(u32),
    Generate(u32),
}

impl Test {
    /// Positions of the context that the test needs.
    pub fn positions(&self) -> u32 {
        match self.kind {
            // The token that is drawn after a prompt has a place too.
            Kind::Prompt(n) => self.depth + n + 1,
            Kind::Generate(n) => self.depth.max(1) + n,
        }
    }

    /// Tokens that are counted.
    pub fn tokens(&self) -> u32 {
        match self.kind {
            Kind::Prompt(n) | Kind::Generate(n) => n,
        }
    }
}

/// `pp512`, `tg128`, `tg128@d4096`.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Prompt(n) => write!(f, "pp{n}")?,
            Kind::Generate(n) => write!(f, "tg{n}")?,
        }
        if self.depth > 0 { write!(f, "@d{}", self.depth) } else { Ok(()) }
    }
}

/// All combinations, in the order of the flags, depths outermost.
pub fn tests(args: &Args) -> Vec<Test> {
    let prompts = args.prompts.iter().filter(|&&n| n > 0).map(|&n| Kind::Prompt(n));
    let kinds: Vec<Kind> = prompts.chain(args.generate.iter().filter(|&&n| n > 0).map(|&n| Kind::Generate(n))).collect();
    args.depths.iter().flat_map(|&depth| kinds.iter().map(move |&kind| Test { kind, depth })).collect()
}
