//! The metadata section: the position of every value in the header.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::{Array, Error, Result, Value, ValueType};

/// The longest key, by the format's specification.
pub const MAX_KEY_BYTES: u64 = 65_535;

/// How deep arrays may nest. No known model nests them at all.
const MAX_DEPTH: usize = 8;

/// Positions of keys and values in the header's bytes, in the order of the file.
#[derive(Default)]
pub struct Metadata {
    entries: Vec<Entry>,
    /// Indices of `entries`, sorted by key.
    by_key: Vec<u32>,
    wide: bool,
}

struct Entry {
    key: Range<u32>,
    value: Stored,
}

enum Stored {
    Scalar { ty: ValueType, at: u32 },
    Str(Range<u32>),
    Array { element: ValueType, len: u32, at: u32, starts: Box<[u32]> },
}

impl Metadata {
    /// Parses and checks `count` pairs.
    pub fn parse(cursor: &mut Cursor<'_>, count: usize) -> Result<Self> {
        let mut entries = Vec::new();
        for _ in 0..count {
            let key = narrow(cursor.name("key", MAX_KEY_BYTES)?);
            let ty = value_type(cursor, &key)?;
            let value = match (ty, ty.size()) {
                (_, Some(size)) => {
                    let at = cursor.take(size as u64, "metadata value")?;
                    check_bools(cursor, &key, ty, at.clone())?;
                    Stored::Scalar { ty, at: at.start as u32 }
                }
                (ValueType::Str, _) => Stored::Str(narrow(cursor.string("metadata string")?)),
                _ => array(cursor, &key)?,
            };
            entries.push(Entry { key, value });
        }
        let mut metadata = Self { entries, by_key: Vec::new(), wide: cursor.wide };
        metadata.index(cursor.bytes())?;
        Ok(metadata)
    }

    fn index(&mut self, header: &[u8]) -> Result<()> {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_unstable_by_key(|&i| self.key(header, i));
        let twice = order.windows(2).find(|pair| self.key(header, pair[0]) == self.key(header, pair[1]));
        if let Some(pair) = twice {
            return Err(Error::Duplicate { what: "key", name: self.key(header, pair[0]).into() });
        }
        self.by_key = order;
        Ok(())
    }

    /// All pairs in the order of the file. `header` is the bytes of the parsed header.
    pub fn iter<'a>(&'a self, header: &'a [u8]) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        (0..self.entries.len() as u32).map(move |i| (self.key(header, i), self.value(header, i)))
    }

    /// The value of a key.
    pub fn get<'a>(&'a self, header: &'a [u8], key: &str) -> Option<Value<'a>> {
        let found = self.by_key.binary_search_by(|&i| self.key(header, i).cmp(key)).ok()?;
        Some(self.value(header, self.by_key[found]))
    }

    fn key<'a>(&self, header: &'a [u8], i: u32) -> &'a str {
        text(header, &self.entries[i as usize].key)
    }

    fn value<'a>(&'a self, header: &'a [u8], i: u32) -> Value<'a> {
        let entry = &self.entries[i as usize];
        match &entry.value {
            Stored::Scalar { ty, at } => {
                let at = *at as usize;
                let bytes = &header[at..at + ty.size().unwrap_or(0)];
                Value::scalar(*ty, bytes).unwrap_or(Value::Bytes(bytes))
            }
            Stored::Str(range) => Value::string(&header[widen(range)]),
            Stored::Array { element, len, at, starts } => Value::Array(Array {
                key: text(header, &entry.key),
                element: *element,
                len: *len as usize,
                bytes: &header[*at as usize..],
                starts,
                wide: self.wide,
            }),
        }
    }
}

fn array(cursor: &mut Cursor<'_>, key: &Range<u32>) -> Result<Stored> {
    let element = value_type(cursor, key)?;
    let len = cursor.count("array elements", least_bytes(cursor, element))?;
    let at = cursor.pos() as u32;
    let mut starts = Vec::new();
    match element {
        ValueType::Str => {
            for _ in 0..len {
                starts.push(cursor.pos() as u32 - at);
                cursor.string("string in an array")?;
            }
        }
        _ => elements(cursor, key, element, len, 1)?,
    }
    Ok(Stored::Array { element, len: len as u32, at, starts: starts.into() })
}

/// Moves past the elements of an array that is nested in `depth` arrays.
fn elements(cursor: &mut Cursor<'_>, key: &Range<u32>, element: ValueType, len: usize, depth: usize) -> Result<()> {
    if let Some(size) = element.size() {
        let range = cursor.take(len as u64 * size as u64, "array")?;
        return check_bools(cursor, key, element, range);
    }
    if element == ValueType::Str {
        return (0..len).try_for_each(|_| cursor.string("string in an array").map(drop));
    }
    if depth == MAX_DEPTH {
        return Err(Error::Nesting { key: text(cursor.bytes(), key).into(), limit: MAX_DEPTH });
    }
    for _ in 0..len {
        let element = value_type(cursor, key)?;
        let len = cursor.count("array elements", least_bytes(cursor, element))?;
        elements(cursor, key, element, len, depth + 1)?;
    }
    Ok(())
}

/// The minimum size of an element in bytes.
fn least_bytes(cursor: &Cursor<'_>, element: ValueType) -> u64 {
    match element {
        ValueType::Str => cursor.length_bytes(),
        ValueType::Array => 4 + cursor.length_bytes(),
        _ => element.size().unwrap_or(1) as u64,
    }
}

fn value_type(cursor: &mut Cursor<'_>, key: &Range<u32>) -> Result<ValueType> {
    let found = cursor.u32("value type")?;
    ValueType::from_u32(found).ok_or_else(|| Error::UnknownValueType { key: text(cursor.bytes(), key).into(), found })
}

fn check_bools(cursor: &Cursor<'_>, key: &Range<u32>, ty: ValueType, range: Range<usize>) -> Result<()> {
    if ty != ValueType::Bool {
        return Ok(());
    }
    match cursor.bytes()[range].iter().find(|&&byte| byte > 1) {
        Some(&found) => Err(Error::BadBool { key: text(cursor.bytes(), key).into(), found }),
        None => Ok(()),
    }
}

/// A key, whose bytes were checked to be UTF-8 when it was parsed.
fn text<'a>(header: &'a [u8], range: &Range<u32>) -> &'a str {
    std::str::from_utf8(&header[widen(range)]).unwrap_or_default()
}

/// The header is shorter than 2^28 bytes.
fn narrow(range: Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

fn widen(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
