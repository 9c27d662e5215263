//! What a model has no use for in an adapter.

use std::fmt;

/// The largest number of names that a message lists.
const LISTED: usize = 2;

/// The most characters of a name in a message.
const NAME: usize = 100;

/// Names of what is left out of an adapter, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Modules of towers and projectors. This version runs the text model.
    pub towers: Vec<String>,
    /// Modules of the text model that take no factors in this version: experts, routers, and the
    /// projections of the streams of Gemma 3n. A file of GGUF stacks several of them in one tensor.
    pub other_layers: Vec<String>,
    /// Weights that make keys and values, in layers that take them from an earlier layer.
    pub keys_and_values: Vec<String>,
    /// Weights of the base that the file repeats. They are no factors, and the model has them.
    pub copies: Vec<String>,
}

impl LeftOut {
    /// Number of weights that are left out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.towers.len() + self.other_layers.len() + self.keys_and_values.len() + self.copies.len()
    }

    /// Whether all factors apply.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (&self.towers, "factors of towers and projectors", ": only the text model runs"),
            (&self.other_layers, "factors of experts, routers and projections of streams", ": these layers take none"),
            (&self.keys_and_values, "factors of keys and values", ": the layer takes them from an earlier layer"),
            (&self.copies, "copies of weights of the base", ""),
        ];
        let reasons = reasons.into_iter().filter(|(names, ..)| !names.is_empty());
        let said: Vec<String> = reasons.map(|(names, what, why)| format!("{what} ({}){why}", few(names))).collect();
        f.write_str(&said.join("; "))
    }
}

/// The first of these names, and the number of the others.
fn few(names: &[String]) -> String {
    let short = |name: &String| name.chars().take(NAME).collect::<String>();
    let first = names.iter().take(LISTED).map(short).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_first_and_counts_the_others() {
        let names = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        let left = |towers, keys_and_values| {
            LeftOut { towers: names(towers), keys_and_values: names(keys_and_values), ..LeftOut::default() }.to_string()
        };
        assert_eq!(left(1, 0), "factors of towers and projectors (t0): only the text model runs");
        assert_eq!(left(0, 2), "factors of keys and values (t0, t1): the layer takes them from an earlier layer");
        assert_eq!(
            left(5, 3),
            "factors of towers and projectors (t0, t1 and 3 more): only the text model runs; factors of keys and values (t0, t1 and 1 \
             more): the layer takes them from an earlier layer"
        );
        let long = LeftOut { towers: vec!["x".repeat(5000)], ..LeftOut::default() };
        assert!(long.to_string().len() < 200 && LeftOut::default().is_empty());
    }
}
