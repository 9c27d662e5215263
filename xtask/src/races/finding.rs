//! What the analysis may find.

use super::shadow::{Mark, WHOLE};
use std::fmt::{self, Display, Formatter};

/// What is wrong with a shader, at byte offsets in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Two accesses that nothing orders.
    Race { what: String, first: Mark, second: Mark },
    /// A barrier that only some invocations reach.
    Apart { at: u32 },
    /// A cooperative matrix whose position differs between the invocations of a subgroup.
    Unlike { at: u32 },
    /// An access past an end.
    Outside { what: String, at: u32 },
    /// More steps than the analysis takes.
    Endless,
}

impl Finding {
    /// The offsets in the text.
    pub fn places(&self) -> Vec<u32> {
        match self {
            Self::Race { first, second, .. } => vec![first.at, second.at],
            Self::Apart { at } | Self::Unlike { at } | Self::Outside { at, .. } => vec![*at],
            Self::Endless => vec![],
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let who = |mark: &Mark| match mark.who & WHOLE {
            0 => format!("invocation {}", mark.who),
            _ => format!("subgroup {}", mark.subgroup),
        };
        match self {
            Self::Race { what, first, second } => {
                write!(f, "race on {what} between {} and {}", who(first), who(second))
            }
            Self::Apart { .. } => f.write_str("a barrier that only some invocations reach"),
            Self::Unlike { .. } => f.write_str("a matrix at places that the invocations of a subgroup do not share"),
            Self::Outside { what, .. } => write!(f, "an access past the end of {what}"),
            Self::Endless => f.write_str("more steps than the analysis takes"),
        }
    }
}

impl std::error::Error for Finding {}
