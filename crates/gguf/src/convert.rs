//! Conversions from metadata values to Rust types. A conversion that would lose information fails.

use crate::{Array, Value};

/// A type that a metadata value can be read as.
///
/// Integers convert between widths and signs if the value fits (some files store u32 for a key that
/// is usually u64). f32 converts to f64, and f64 to f32 if no precision is lost. No other
/// conversion is made.
pub trait FromValue<'a>: Sized {
    /// The name of the expected type, for error messages.
    fn expected() -> String;

    /// The converted value, or `None` if it is of another type or out of range.
    fn from_value(value: Value<'a>) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl<'a> FromValue<'a> for $ty {
            fn expected() -> String {
                stringify!($ty).into()
            }

            fn from_value(value: Value<'a>) -> Option<Self> {
                value.as_integer()?.try_into().ok()
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

macro_rules! exact {
    ($($ty:ty, $expected:literal, $($pattern:pat $(if $guard:expr)? => $result:expr),+;)*) => {$(
        impl<'a> FromValue<'a> for $ty {
            fn expected() -> String {
                $expected.into()
            }

            fn from_value(value: Value<'a>) -> Option<Self> {
                match value {
                    $($pattern $(if $guard)? => Some($result),)+
                    _ => None,
                }
            }
        }
    )*};
}

exact! {
    bool, "bool", Value::Bool(v) => v;
    f32, "f32", Value::F32(v) => v, Value::F64(v) if v as f32 as f64 == v => v as f32;
    f64, "f64", Value::F64(v) => v, Value::F32(v) => v.into();
    &'a str, "string", Value::Str(v) => v;
    String, "string", Value::Str(v) => v.to_owned();
    &'a [u8], "string", Value::Str(v) => v.as_bytes(), Value::Bytes(v) => v;
    Array<'a>, "array", Value::Array(v) => v;
}

impl<'a> FromValue<'a> for Value<'a> {
    fn expected() -> String {
        "a value".into()
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        Some(value)
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Vec<T> {
    fn expected() -> String {
        format!("array of {}", T::expected())
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Array(array) => array.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}
