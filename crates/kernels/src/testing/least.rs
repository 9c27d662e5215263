//! The case with the least work that reaches a shader.

use crate::caps::Caps;
use crate::kernel::random::Gen;
use crate::testing::drawn::Drawn;
use crate::testing::parity::Case;
use crate::testing::sweep::Target;

/// Cases that are drawn. The choices of the one with the least work are then lowered.
const DRAWN: usize = 4;

/// Seeds that are tried for these cases.
const SEEDS: u64 = 1000;

/// The width of outputs, if there is a choice. All results of a narrower row may be sums that
/// almost cancel, whose errors are large beside them.
const WIDTH: u32 = 16;

/// A case with its work.
struct Weighed {
    /// Whether an output is narrow, and the work.
    weight: (bool, u64),
    seed: u64,
    choices: Vec<u32>,
    case: Case,
}

impl Target {
    /// The case with the least work among some that reach the shader: the best of a few, with its
    /// choices lowered one by one as long as that makes the work less. `None` if no case reaches
    /// the shader.
    #[must_use]
    pub fn least(&self, caps: &Caps) -> Option<(Drawn, Case)> {
        let drawn = (0..SEEDS).filter_map(|seed| self.weighed(caps, seed, &[])).take(DRAWN);
        let mut best = drawn.min_by_key(|of| of.weight)?;
        loop {
            let before = best.weight;
            let mut at = 0;
            while at < best.choices.len() {
                let choice = best.choices[at];
                for less in [0, 1, 2, choice / 4, choice / 2, choice.saturating_sub(1)]
                    .into_iter()
                    .filter(|less| *less < choice)
                {
                    let mut choices = best.choices.clone();
                    choices[at] = less;
                    if let Some(of) = self.weighed(caps, best.seed, &choices).filter(|of| of.weight < best.weight) {
                        best = of;
                        break;
                    }
                }
                at += 1;
            }
            if best.weight == before {
                break;
            }
        }
        let Weighed { seed, choices, case, .. } = best;
        Some((
            Drawn { stem: self.stem, portable: !self.shader.subgroups, split: false, seed, choices, fills: vec![] },
            case,
        ))
    }

    /// The case of a seed whose first choices are given, if it reaches the shader.
    fn weighed(&self, caps: &Caps, seed: u64, choices: &[u32]) -> Option<Weighed> {
        let mut g = Gen::given(seed, choices, &[]).only(self.format());
        let case = (self.make)(&mut g);
        let (work, shaders) = case.work(caps, !self.shader.subgroups).ok()?;
        let narrow = case.rec.outputs.iter().any(|t| t.shape.width() < WIDTH);
        shaders.contains(&self.shader).then(|| Weighed {
            weight: (narrow, work),
            seed,
            choices: g.taken().to_vec(),
            case,
        })
    }
}
