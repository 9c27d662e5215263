//! The printable alphabet in which byte-level vocabularies spell bytes (GPT-2's
//! `bytes_to_unicode`).
//!
//! Bytes that are printable in Latin-1 keep their character. The other 68 take U+0100 upwards, in
//! order: space is `Ġ`, newline is `Ċ`.

/// The character that spells each byte.
pub(super) fn byte_to_char() -> [char; 256] {
    let mut next = 0x100;
    std::array::from_fn(|byte| match byte {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => byte as u8 as char,
        _ => {
            next += 1;
            char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
    })
}

/// The map from spellings to bytes.
pub(super) struct Alphabet {
    /// The byte for each of U+0000 to U+0143, if there is one.
    bytes: [Option<u8>; 0x144],
}

impl Alphabet {
    pub fn new() -> Self {
        let mut bytes = [None; 0x144];
        for (byte, c) in byte_to_char().into_iter().enumerate() {
            bytes[c as usize] = Some(byte as u8);
        }
        Alphabet { bytes }
    }

    /// The bytes that a token spells. A token with any character outside the alphabet stands for
    /// its own text.
    pub fn decode(&self, token: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(token) else { return token.to_vec() };
        let bytes: Option<Vec<u8>> = text.chars().map(|c| self.bytes.get(c as usize).copied().flatten()).collect();
        bytes.unwrap_or_else(|| token.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character_and_comes_back() {
        let alphabet = Alphabet::new();
        for (byte, c) in byte_to_char().into_iter().enumerate() {
            assert_eq!(alphabet.decode(c.to_string().as_bytes()), [byte as u8]);
        }
        assert_eq!(byte_to_char()[b' ' as usize], 'Ġ');
        assert_eq!(byte_to_char()[b'\n' as usize], 'Ċ');
        assert_eq!(byte_to_char()[0xAD], 'Ń');
    }

    #[test]
    fn text_outside_the_alphabet_stands_for_itself() {
        let alphabet = Alphabet::new();
        assert_eq!(alphabet.decode("Ġ世".as_bytes()), "Ġ世".as_bytes());
        assert_eq!(alphabet.decode(b"\xFF"), b"\xFF");
    }
}
