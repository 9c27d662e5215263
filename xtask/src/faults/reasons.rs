//! The reasons for which a fault may leave every result unchanged. Shaders name them by tag, beside
//! their lines (`excuses.rs`); excuses for wrong parameters are in `params.rs`.

/// A reason. Lines refer to it by its tag.
pub struct Reason {
    pub tag: &'static str,
    /// The explanation for readers.
    pub why: &'static str,
    pub holds: Holds,
}

/// The cases in which a reason holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// On every device. A tag whose faults are all found is stale.
    Always,
    /// By chance: the tag is never stale.
    Chance,
    /// By chance, and only where subgroups have fewer than 32 threads.
    Narrow,
    /// Always assumed: the fault is not planted.
    Unplanted,
    /// Nowhere: a case finds the fault, though a pattern of `patterns.rs` holds for its line.
    Never,
}

const fn always(tag: &'static str, why: &'static str) -> Reason {
    Reason { tag, why, holds: Holds::Always }
}

const fn chance(tag: &'static str, why: &'static str) -> Reason {
    Reason { tag, why, holds: Holds::Chance }
}

/// All reasons, sorted by tag.
const REASONS: &[Reason] = &[
    always("alike", "The two values agree wherever the result depends on them."),
    Reason {
        tag: "apart",
        why: "Neighbours share nothing where subgroups have fewer than 32 threads.",
        holds: Holds::Narrow,
    },
    always("bits", "The bits that differ are never set or never read."),
    always("cancels", "The value is only a reference, which cancels."),
    always("clamped", "An index past the end is clamped to the last, whose result is stored or counted once more."),
    always("dropped", "Values that are loaded past the end are dropped."),
    always("empty", "An iteration past the last has nothing to add and nothing to store."),
    Reason { tag: "endless", why: "The loop never ends and blocks the GPU.", holds: Holds::Unplanted },
    always("exit", "The early return only saves work; every store has its own guard."),
    always("free", "Any choice of thread, place, number or order gives the same result."),
    always("hint", "The barrier keeps drivers from unrolling a loop and orders nothing."),
    always("later", "The owner of the place writes it again later."),
    always("list", "The list only saves a scan of the whole row, which finds the same ids."),
    always("meet", "Both ways give the same result where they meet."),
    always(
        "neutral",
        "The operation changes nothing, as with a factor of one, a sum of zero or a filter that keeps everything.",
    ),
    always("never", "The plan or the data never reach the value at which the results differ."),
    chance("order", "Lavapipe runs lanes in step and subgroups in order; on hardware chance decides."),
    always("paired", "The second pass has it again, and undoes it."),
    chance("race", "Several threads write one place, and chance decides whose value stays."),
    chance("rare", "Only few cases take the path on which the barrier matters."),
    always("rounded", "The number is rounded down to a whole unit, which one more does not change."),
    Reason { tag: "seen", why: "A case finds the fault, unlike in other lines of this form.", holds: Holds::Never },
    always("small", "The difference is too small to show in the result."),
    always("surplus", "Nothing reads the results of threads, heads or columns beyond their number."),
    always("synced", "Every caller has another barrier before it writes the memory again."),
    always(
        "tested",
        "Another test shows it: tests/format_parity.rs reads every byte, tests/sampling.rs follows the drawn id.",
    ),
    always("twice", "The same value is loaded, stored or counted more than once, which changes nothing."),
    always("unowned", "The results of rows past the end or of another part are not stored."),
    always("unused", "The kernel does not use the value in this case."),
    always("weightless", "Keys past the end or outside the mask have zero weight."),
    always("whole", "Grids are exact below 65,535 rows, so that no workgroup lies past the end."),
    always("zeros", "The values past the end are zero."),
];

/// The reason of a tag.
pub fn of(tag: &str) -> Option<&'static Reason> {
    REASONS.iter().find(|reason| reason.tag == tag)
}

#[cfg(test)]
mod tests {
    use super::super::excuses::Excuses;
    use super::REASONS;

    #[test]
    fn every_tag_stands_beside_a_line_and_has_one_sentence() {
        let mut tags = vec![];
        for path in crate::files::all().unwrap() {
            tags.extend(Excuses::of(&path, &crate::workspace::read(&path).unwrap()).unwrap().tags());
        }
        for (n, reason) in REASONS.iter().enumerate() {
            assert!(tags.contains(&reason.tag), "no shader line names {}", reason.tag);
            assert!(reason.why.ends_with('.') && !reason.why.contains(". "), "{}", reason.tag);
            assert!(
                REASONS[..n].iter().all(|before| before.tag < reason.tag),
                "{} is out of order or occurs twice",
                reason.tag
            );
        }
    }
}
