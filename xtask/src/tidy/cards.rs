//! Numbers that were measured on a card: they are in the table of thresholds and beside it.

use super::Files;

/// The cards.
const CARDS: [&str; 2] = ["H100", "H200"];

/// The table, and the folder of the constants beside it.
const TABLE: &str = "crates/kernels/src/caps/table.rs";
const CONSTANTS: &str = "crates/kernels/src/caps/table/";

/// Finds other sources of the crates that name a card, and constants without a unit or a card.
pub fn cards(files: &Files, found: &mut Vec<String>) {
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))) {
        let constants = path.starts_with(CONSTANTS);
        if !path.starts_with("crates/") || !path.contains("/src/") || path == TABLE {
            continue;
        }
        let mut comment = String::new();
        for (n, line) in (1..).zip(text.lines().map(str::trim_start)) {
            let card = CARDS.iter().find(|card| line.contains(**card)).filter(|_| !constants);
            found.extend(
                card.map(|card| {
                    format!("{path}:{n}: {card}; a number that a card measured is a constant in {CONSTANTS}")
                }),
            );
            match line.strip_prefix("///") {
                Some(text) => comment += text,
                None => {
                    let says = ["Unit: ", "Card: "].iter().all(|word| comment.contains(word));
                    let declares = ["pub const", "pub(crate) const"].iter().any(|w| line.starts_with(w));
                    if constants && declares && !says {
                        found.push(format!("{path}:{n}: no unit or no card"));
                    }
                    comment.clear();
                }
            }
        }
    }
}
