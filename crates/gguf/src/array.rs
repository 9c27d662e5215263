//! Metadata arrays, read in place.

use crate::{Error, FromValue, Result, Value, ValueType};

/// A metadata array. It borrows its bytes from the header. The parser has checked that every
/// element lies inside the header.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    pub(crate) key: &'a str,
    pub(crate) element: ValueType,
    pub(crate) len: usize,
    /// The bytes from the first element to at least the end of the last.
    pub(crate) bytes: &'a [u8],
    /// The start of every string in `bytes`. Empty for other element types and for nested arrays.
    pub(crate) starts: &'a [u32],
    /// True if lengths take 8 bytes (versions 2 and 3), false if they take 4 (version 1).
    pub(crate) wide: bool,
}

impl<'a> Array<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ValueType {
        self.element
    }

    /// Element `i`. Takes constant time, except in nested arrays of strings or arrays.
    pub fn get(&self, i: usize) -> Option<Value<'a>> {
        if i >= self.len {
            return None;
        }
        if let Some(size) = self.element.size() {
            return Value::scalar(self.element, self.bytes.get(i * size..(i + 1) * size)?);
        }
        match self.starts.get(i) {
            Some(&start) => self.walk_from(start as usize).string().map(Value::string),
            None => self.iter().nth(i),
        }
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (array, mut walk) = (*self, self.walk_from(0));
        (0..self.len).map_while(move |_| walk.value(array.element, array.key))
    }

    /// The elements as text. Fails if they are not strings. An element that is not UTF-8 gives an
    /// error in its place.
    pub fn strs(&self) -> Result<impl Iterator<Item = Result<&'a str>> + use<'a>> {
        let key = self.key;
        Ok(self.byte_strs()?.enumerate().map(move |(i, bytes)| {
            std::str::from_utf8(bytes).map_err(|_| Error::KeyType {
                key: format!("{key}[{i}]"),
                expected: "utf-8 text".into(),
                found: format!("\"{}\"", bytes.escape_ascii()),
            })
        }))
    }

    /// The elements as raw bytes, for tokens that need not be UTF-8. Fails if they are not strings.
    pub fn byte_strs(&self) -> Result<impl Iterator<Item = &'a [u8]> + use<'a>> {
        if self.element != ValueType::Str {
            return Err(self.mismatch("an array of string", Value::Array(*self).describe()));
        }
        let mut walk = self.walk_from(0);
        Ok((0..self.len).map_while(move |_| walk.string()))
    }

    /// The elements as i32, converted as [`FromValue`] says. Fails if an element does not fit.
    pub fn i32s(&self) -> Result<impl Iterator<Item = i32> + use<'a>> {
        self.numbers()
    }

    /// The elements as u32, converted as [`FromValue`] says. Fails if an element does not fit.
    pub fn u32s(&self) -> Result<impl Iterator<Item = u32> + use<'a>> {
        self.numbers()
    }

    /// The elements as f32, converted as [`FromValue`] says. Fails if an element does not fit.
    pub fn f32s(&self) -> Result<impl Iterator<Item = f32> + use<'a>> {
        self.numbers()
    }

    /// The elements as bools, converted as [`FromValue`] says. Fails if an element does not fit.
    pub fn bools(&self) -> Result<impl Iterator<Item = bool> + use<'a>> {
        self.numbers()
    }

    /// The elements as `T`. All elements are checked before the first is returned.
    fn numbers<T: FromValue<'a>>(&self) -> Result<impl Iterator<Item = T> + use<'a, T>> {
        if let Some((i, value)) = self.iter().enumerate().find(|(_, value)| T::from_value(*value).is_none()) {
            return Err(
                self.mismatch(&format!("an array of {}", T::expected()), format!("{} at index {i}", value.describe()))
            );
        }
        Ok(self.iter().filter_map(T::from_value))
    }

    fn mismatch(&self, expected: &str, found: String) -> Error {
        Error::KeyType { key: self.key.to_owned(), expected: expected.to_owned(), found }
    }

    fn walk_from(&self, start: usize) -> Walk<'a> {
        Walk { rest: self.bytes.get(start..).unwrap_or_default(), wide: self.wide }
    }
}

/// A reader of checked bytes. Its methods return `None` at the end of the bytes.
#[derive(Clone, Copy)]
struct Walk<'a> {
    rest: &'a [u8],
    wide: bool,
}

impl<'a> Walk<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        if self.wide {
            u64::from_le_bytes(self.take(8)?.try_into().ok()?).try_into().ok()
        } else {
            u32::from_le_bytes(self.take(4)?.try_into().ok()?).try_into().ok()
        }
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        self.take(len)
    }

    fn value(&mut self, ty: ValueType, key: &'a str) -> Option<Value<'a>> {
        match (ty, ty.size()) {
            (_, Some(size)) => Value::scalar(ty, self.take(size)?),
            (ValueType::Str, _) => self.string().map(Value::string),
            _ => {
                let element = ValueType::from_u32(u32::from_le_bytes(self.take(4)?.try_into().ok()?))?;
                let len = self.length()?;
                let array = Array { key, element, len, bytes: self.rest, starts: &[], wide: self.wide };
                self.skip(element, len)?;
                Some(Value::Array(array))
            }
        }
    }

    fn skip(&mut self, element: ValueType, len: usize) -> Option<()> {
        match element.size() {
            Some(size) => self.take(len.checked_mul(size)?).map(drop),
            None => (0..len).try_for_each(|_| self.value(element, "").map(drop)),
        }
    }
}
