//! The result of one comparison, and the rule by which it passes.

/// One comparison: the worst difference, its bound, and whether the best tokens agree.
#[derive(Clone)]
pub struct Check {
    pub mode: String,
    pub worst: f64,
    pub bound: f64,
    pub agrees: bool,
    /// Mean Kullback-Leibler divergence from the reference, in nats, where it is measured.
    pub kl: Option<f64>,
    /// How many experts are chosen that f32 does not choose, and how many are chosen.
    pub flips: Option<(usize, usize)>,
    pub seconds: f64,
}

impl Check {
    /// The result for a model that did not run.
    pub fn refused(error: &anyhow::Error) -> Self {
        Self {
            mode: format!("{error:#}"),
            worst: f64::INFINITY,
            bound: 0.0,
            agrees: true,
            kl: None,
            flips: None,
            seconds: 0.0,
        }
    }

    pub fn passes(&self) -> bool {
        self.agrees && self.worst <= self.bound
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match (self.passes(), self.agrees) {
            (true, _) => "",
            (_, false) => "  FAILED: other best tokens",
            _ if self.bound.is_nan() => {
                "  FAILED: never measured; a line of xtask/src/golden/fast.txt has the first measurement"
            }
            _ => "  FAILED",
        };
        write!(f, "{:<22} {:>10.2e} {:>8.0e}  {:>7.2}", self.mode, self.worst, self.bound, self.seconds)?;
        if let Some(kl) = self.kl {
            write!(f, "  KL {kl:.2e}")?;
        }
        if let Some((flips, all)) = self.flips {
            write!(f, "  other experts {flips} of {all}")?;
        }
        f.write_str(verdict)
    }
}

/// True if the best token is the same. If `bound` is wider than `exact`, another best token also
/// passes, provided that the reference's margin is at most twice `bound`.
pub fn same_best(got: &[f32], expected: &[f32], bound: f64, exact: f64) -> bool {
    let best = |row: &[f32]| cpu_ref::argmax(row) as usize;
    let (a, b) = (best(got), best(expected));
    let margin = f64::from(expected[b] - expected[a]);
    a == b || (bound > exact && margin <= 2.0 * bound)
}
