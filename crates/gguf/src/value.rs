//! Metadata values, borrowed from the header's bytes.

use std::fmt;

use crate::Array;

macro_rules! value_types {
    ($($variant:ident = $number:literal, $name:literal, $size:expr;)*) => {
        /// The type of a metadata value or of an array's elements, with its number in the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum ValueType {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl ValueType {
            /// The type with this number.
            pub fn from_u32(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(ValueType::$variant),)*
                    _ => None,
                }
            }

            /// The name for error messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ValueType::$variant => $name,)*
                }
            }

            /// Size of one value in bytes, for types of fixed size.
            pub const fn size(self) -> Option<usize> {
                match self {
                    $(ValueType::$variant => $size,)*
                }
            }
        }
    };
}

value_types! {
    U8 = 0, "u8", Some(1);
    I8 = 1, "i8", Some(1);
    U16 = 2, "u16", Some(2);
    I16 = 3, "i16", Some(2);
    U32 = 4, "u32", Some(4);
    I32 = 5, "i32", Some(4);
    F32 = 6, "f32", Some(4);
    Bool = 7, "bool", Some(1);
    Str = 8, "string", None;
    Array = 9, "array", None;
    U64 = 10, "u64", Some(8);
    I64 = 11, "i64", Some(8);
    F64 = 12, "f64", Some(8);
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A metadata value. Strings and arrays borrow from the header.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    Str(&'a str),
    /// A string that is not UTF-8; tokens may be such strings.
    Bytes(&'a [u8]),
    Array(Array<'a>),
}

impl<'a> Value<'a> {
    /// The value's type in the file.
    pub fn ty(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F32(_) => ValueType::F32,
            Value::F64(_) => ValueType::F64,
            Value::Bool(_) => ValueType::Bool,
            Value::Str(_) | Value::Bytes(_) => ValueType::Str,
            Value::Array(_) => ValueType::Array,
        }
    }

    /// The value of any integer type, widened to i128.
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Value::U8(v) => v.into(),
            Value::I8(v) => v.into(),
            Value::U16(v) => v.into(),
            Value::I16(v) => v.into(),
            Value::U32(v) => v.into(),
            Value::I32(v) => v.into(),
            Value::U64(v) => v.into(),
            Value::I64(v) => v.into(),
            _ => return None,
        })
    }

    pub(crate) fn string(bytes: &'a [u8]) -> Self {
        std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Str)
    }

    /// A value of fixed size, from its bytes. `None` for strings, arrays and a wrong number of
    /// bytes.
    pub(crate) fn scalar(ty: ValueType, bytes: &[u8]) -> Option<Self> {
        Some(match ty {
            ValueType::U8 => Value::U8(*bytes.first()?),
            ValueType::I8 => Value::I8(*bytes.first()? as i8),
            ValueType::U16 => Value::U16(u16::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I16 => Value::I16(i16::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::U32 => Value::U32(u32::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I32 => Value::I32(i32::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::U64 => Value::U64(u64::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::I64 => Value::I64(i64::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::F32 => Value::F32(f32::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::F64 => Value::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
            ValueType::Bool => Value::Bool(*bytes.first()? != 0),
            ValueType::Str | ValueType::Array => return None,
        })
    }

    /// The type and, if it is short, the value, for error messages.
    pub fn describe(&self) -> String {
        match self {
            Value::Str(s) if s.len() <= 64 => format!("string \"{}\"", s.escape_debug()),
            Value::Str(s) => format!("a string of {} bytes", s.len()),
            Value::Bytes(b) => format!("a string of {} bytes that is not utf-8", b.len()),
            Value::Array(array) => format!("array of {} {}", array.len(), array.element_type()),
            value => format!("{} {value}", value.ty()),
        }
    }
}

/// The value without its type. Arrays show their first elements.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::U8(v) => write!(f, "{v}"),
            Value::I8(v) => write!(f, "{v}"),
            Value::U16(v) => write!(f, "{v}"),
            Value::I16(v) => write!(f, "{v}"),
            Value::U32(v) => write!(f, "{v}"),
            Value::I32(v) => write!(f, "{v}"),
            Value::U64(v) => write!(f, "{v}"),
            Value::I64(v) => write!(f, "{v}"),
            Value::F32(v) => write!(f, "{v:?}"),
            Value::F64(v) => write!(f, "{v:?}"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Str(v) => write!(f, "\"{}\"", v.escape_debug()),
            Value::Bytes(v) => write!(f, "b\"{}\"", v.escape_ascii()),
            Value::Array(array) => {
                f.write_str("[")?;
                for (i, value) in array.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(if array.len() > SHOWN { ", ...]" } else { "]" })
            }
        }
    }
}

/// Number of array elements that `Display` shows.
const SHOWN: usize = 8;
