//! Cases as data: the choices that make them, how proptest draws and shrinks them, and their text.

use crate::graph::operation::Operation;
use crate::graph::tensor::Tensor;
use crate::kernel::random::{Fill, Gen};
use crate::testing::cases;
use crate::testing::parity::{Case, MakeCase};
use crate::testing::shrinking::Shrinking;
use gguf::GgmlType;
use proptest::prelude::Rng as _;
use proptest::strategy::{NewTree, Strategy};
use proptest::test_runner::TestRunner;
use std::fmt::{self, Debug, Formatter, Write as _};

#[cfg(not(target_arch = "wasm32"))]
pub use crate::testing::blocking::{config, holds};

/// A case of an operation. Its `Debug` text is a Rust literal.
#[derive(Clone, PartialEq, Eq)]
pub struct Drawn {
    /// The stem of the operation in [`cases`].
    pub stem: &'static str,
    /// Whether kernels are portable.
    pub portable: bool,
    /// Whether everything that can be split is split ([`Case::compare_split`]).
    pub split: bool,
    /// The seed of the values, and of the choices and blocks after the given ones.
    pub seed: u64,
    /// Shapes, rows and kinds: numbers below a count, of which 0 is the simplest.
    pub choices: Vec<u32>,
    /// The forms of the blocks of values.
    pub fills: Vec<Fill>,
}

impl Drawn {
    /// The case of a seed, with all its choices. `only` is the format of all weights, if given.
    ///
    /// # Panics
    /// When no operation has this stem.
    #[must_use]
    pub fn of(stem: &'static str, seed: u64, only: Option<GgmlType>) -> Self {
        Self { stem, portable: true, split: false, seed, choices: vec![], fills: vec![] }.settled(only).0
    }

    /// This case, run with portable kernels or not, and split or not.
    #[must_use]
    pub fn run(self, portable: bool, split: bool) -> Self {
        Self { portable, split, ..self }
    }

    fn make(&self) -> MakeCase {
        let Self { stem, .. } = self;
        cases().iter().find(|(name, _)| name == stem).unwrap_or_else(|| panic!("{stem}: no operation has this stem")).1
    }

    fn source(&self) -> Gen {
        Gen::given(self.seed, &self.choices, &self.fills)
    }

    /// The case.
    ///
    /// # Panics
    /// When no operation has this stem.
    #[must_use]
    pub fn case(&self) -> Case {
        self.make()(&mut self.source())
    }

    /// This case with exactly the choices that it takes, and the lengths of its blocks.
    pub(crate) fn settled(mut self, only: Option<GgmlType>) -> (Self, Vec<u32>) {
        let mut g = self.source().only(only);
        self.make()(&mut g);
        self.choices = g.taken().to_vec();
        self.fills.truncate(g.blocks().len());
        (self, g.blocks().to_vec())
    }

    /// The operations of the case with their shapes, for readers, as the lines of a comment.
    fn operations(&self) -> String {
        let shape = |t: &Tensor| {
            let heads = if t.shape.heads == 1 { String::new() } else { format!("{}, ", t.shape.heads) };
            format!("[{}, {heads}{}]", t.shape.rows, t.shape.dim)
        };
        let list = |of: &[Tensor]| of.iter().map(shape).collect::<Vec<_>>().join(" ");
        let case = self.case();
        let of = case.rec.nodes().iter().map(|node| {
            let io = node.op.io();
            let made = if io.writes.is_empty() { String::new() } else { format!(" -> {}", list(&io.writes)) };
            format!("// {} {}{made}\n", node.op.name(), list(&io.reads))
        });
        let rows = case.input.positions.len();
        format!("// {rows} of {} rows:\n{}", case.rec.capacity().step, of.collect::<String>())
    }

    /// The case as a Rust literal below a comment with its operations. A comment beside each choice
    /// has its value.
    #[must_use]
    pub fn literal(&self) -> String {
        let mut g = self.source().noted();
        self.make()(&mut g);
        let Self { stem, portable, split, seed, choices, fills } = self;
        let mut noted = String::new();
        for (n, choice) in choices.iter().enumerate() {
            let note = g.notes().get(n).map(|note| format!(" /* {note} */"));
            write!(noted, "{}{choice}{}", if n > 0 { ", " } else { "" }, note.unwrap_or_default())
                .expect("a string takes everything");
        }
        let fills: Vec<_> = fills.iter().map(|fill| format!("Fill::{fill:?}")).collect();
        format!(
            "{}Drawn {{\n    stem: {stem:?},\n    portable: {portable},\n    split: {split},\n    seed: {seed},\n    \
             choices: vec![{noted}],\n    fills: vec![{}],\n}},\n",
            self.operations(),
            fills.join(", "),
        )
    }

    /// The text of a list of literals with this one added before its last line that is a bracket.
    /// `None` if the list has it.
    #[must_use]
    pub fn added_to(&self, list: &str) -> Option<String> {
        let literal: String = self.literal().lines().map(|line| format!("        {line}\n")).collect();
        let end = list.rfind("    ]\n").filter(|_| !list.contains(&literal))?;
        Some(format!("{}{literal}{}", &list[..end], &list[end..]))
    }
}

impl Debug for Drawn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.literal())
    }
}

/// Draws cases of any of these operations.
#[derive(Clone, Debug)]
pub struct Draws(pub Vec<&'static str>);

impl Draws {
    /// Draws cases of all operations.
    #[must_use]
    pub fn all() -> Self {
        Self(cases().iter().map(|(stem, _)| *stem).collect())
    }
}

impl Strategy for Draws {
    type Tree = Shrinking;
    type Value = Drawn;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let rng = runner.rng();
        let stem = self.0[(rng.next_u64() % self.0.len() as u64) as usize];
        let (seed, portable) = (rng.next_u64(), rng.next_u64() & 1 == 1);
        Ok(Shrinking::of(Drawn::of(stem, seed, None).run(portable, false)))
    }
}
