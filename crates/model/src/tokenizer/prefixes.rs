//! Finds which of many patterns a text begins with.

struct Pattern {
    text: Box<[u8]>,
    id: u32,
    /// The longest other pattern that this one begins with.
    within: Option<u32>,
}

/// Sorted patterns, each with its id. They take a few times the memory of their texts; an automaton
/// can take a thousand times as much.
pub(crate) struct Prefixes {
    patterns: Vec<Pattern>,
    /// `[b]..[b + 1]` are the patterns that begin with byte b.
    begins: [u32; 257],
}

impl Prefixes {
    /// The patterns are not empty. Of equal patterns, the lowest id is found.
    pub fn new(mut texts: Vec<(Box<[u8]>, u32)>) -> Self {
        texts.sort();
        texts.dedup_by(|later, first| later.0 == first.0);
        let mut patterns: Vec<Pattern> = Vec::with_capacity(texts.len());
        for (text, id) in texts {
            let mut within = patterns.len().checked_sub(1).map(|last| last as u32);
            while let Some(at) = within.filter(|&at| !text.starts_with(&patterns[at as usize].text)) {
                within = patterns[at as usize].within;
            }
            patterns.push(Pattern { text, id, within });
        }
        let begins = std::array::from_fn(|byte| patterns.partition_point(|p| usize::from(p.text[0]) < byte) as u32);
        Prefixes { patterns, begins }
    }

    /// The length and the id of the longest pattern that `text` begins with. The time is
    /// at most proportional to the length of the longest pattern.
    pub fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        let first = usize::from(*text.first()?);
        let (start, end) = (self.begins[first] as usize, self.begins[first + 1] as usize);
        // In this order, every pattern that the text begins with comes before or at the text. The
        // last pattern before or at the text is that pattern or begins with it.
        let up_to = self.patterns[start..end].partition_point(|p| *p.text <= *text);
        let last = &self.patterns[start + up_to.checked_sub(1)?];
        let shared = last.text.iter().zip(text).take_while(|(a, b)| a == b).count();
        let mut found = last;
        while found.text.len() > shared {
            found = &self.patterns[found.within? as usize];
        }
        Some((found.text.len(), found.id))
    }
}
