//! Choice of the next token, and stop strings.

use kernels::SampleParams;

/// Sampling parameters. The order is: penalties, top-k, top-p, min-p, temperature.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 always takes the most probable token.
    pub temperature: f32,
    /// Keeps the k most probable tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the smallest set of tokens with at least this probability together; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens whose probability is below this fraction of the highest; 0 drops none.
    pub min_p: f32,
    /// Divides the logits of tokens seen before; 1 has no effect.
    pub repetition_penalty: f32,
    /// Subtracted from a token's logit for each earlier occurrence.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of every token seen before.
    pub presence_penalty: f32,
    /// The number of latest tokens that count as seen.
    pub last_n: u32,
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            last_n: 64,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Always the most probable token.
    #[must_use]
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// The parameters in the kernels' form, for one sequence slot.
    pub(crate) fn params(&self, sequence: u32) -> SampleParams {
        SampleParams {
            repetition: self.repetition_penalty,
            frequency: self.frequency_penalty,
            presence: self.presence_penalty,
            last_n: self.last_n,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            temperature: self.temperature,
            seed: [self.seed as u32, (self.seed >> 32) as u32],
            sequence,
            ..SampleParams::default()
        }
    }
}

/// Finds stop strings in streamed text. Holds text back while it may be the start of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stops {
    strings: Vec<String>,
    held: String,
}

impl Stops {
    pub fn new(strings: &[String]) -> Self {
        Self { strings: strings.iter().filter(|s| !s.is_empty()).cloned().collect(), held: String::new() }
    }

    /// Adds text. Returns the text that can be shown, and the stop string if one was found.
    pub fn push(&mut self, text: &str) -> (String, Option<String>) {
        self.held.push_str(text);
        let found = self.strings.iter().filter_map(|s| self.held.find(s.as_str()).map(|at| (at, s))).min();
        if let Some((at, stop)) = found {
            let stop = stop.clone();
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), Some(stop));
        }
        let mut keep = 0;
        for stop in &self.strings {
            let partial = (1..stop.len()).filter(|&n| stop.is_char_boundary(n)).rev().find(|&n| self.held.ends_with(&stop[..n]));
            keep = keep.max(partial.unwrap_or(0));
        }
        let rest = self.held.split_off(self.held.len() - keep);
        (std::mem::replace(&mut self.held, rest), None)
    }

    /// The text that is still held back, at the end of the stream.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::Stops;

    #[test]
    fn a_stop_string_across_pieces_is_found_and_nothing_of_it_shown() {
        let mut stops = Stops::new(&["END".to_string(), "stop".to_string()]);
        assert_eq!(stops.push("one E"), ("one ".to_string(), None));
        assert_eq!(stops.push("N"), (String::new(), None));
        assert_eq!(stops.push("D two"), (String::new(), Some("END".to_string())));
    }

    #[test]
    fn a_false_start_is_shown_later() {
        let mut stops = Stops::new(&["END".to_string()]);
        assert_eq!(stops.push("EN"), (String::new(), None));
        assert_eq!(stops.push("Glish é"), ("ENGlish é".to_string(), None));
        assert_eq!(stops.push("E"), (String::new(), None));
        assert_eq!(stops.finish(), "E");
    }
}
