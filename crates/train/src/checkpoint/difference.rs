//! The facts that must be equal when a run goes on, and their differences.

use std::collections::BTreeMap;

/// What must be the same when a run goes on, by name.
pub type Facts = BTreeMap<String, String>;

/// The facts about the model and about what is trained, which a refusal names first.
const FIRST: [&str; 9] = ["method", "model", "base", "weights", "rank", "targets", "alpha", "rslora", "init"];

/// Digits of a digest. Such a value says nothing to people.
const DIGEST_DIGITS: usize = 64;

/// Something that a checkpoint and this run do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: String,
    /// The value in the checkpoint.
    pub kept: Option<String>,
    /// The value of this run.
    pub now: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, kept, now } = self;
        let is_digest =
            |text: &String| text.len() == DIGEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (what.as_str(), kept, now) {
            ("weights", ..) => write!(f, "the weights of the model differ"),
            ("model", ..) => write!(f, "the metadata or the tensors of the model differ"),
            (_, Some(kept), Some(now)) if is_digest(kept) && is_digest(now) => write!(f, "{what} differs"),
            (_, Some(kept), Some(now)) => write!(f, "{what} was {kept}, now {now}"),
            (_, Some(kept), None) => write!(f, "{what} was {kept}, now not given"),
            (_, None, Some(now)) => write!(f, "{what} was not given, now {now}"),
            (_, None, None) => write!(f, "{what} differs"),
        }
    }
}

/// The facts in which a checkpoint and a run differ: first what the model and the method are, and
/// the trained tensors only if nothing explains them.
pub fn differences(kept: &Facts, now: &Facts) -> Vec<Difference> {
    let names = kept.keys().chain(now.keys().filter(|name| !kept.contains_key(*name)));
    let difference =
        |name: &String| Difference { what: name.clone(), kept: kept.get(name).cloned(), now: now.get(name).cloned() };
    let mut all: Vec<_> = names.map(difference).filter(|d| d.kept != d.now).collect();
    all.sort_by_key(|of| FIRST.iter().position(|first| *first == of.what).unwrap_or(FIRST.len()));
    if all.len() > 1 {
        all.retain(|of| of.what != "trained");
    }
    all
}
