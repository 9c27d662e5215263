//! Conversions from metadata values to Rust types. A value that does not fit is not converted.

use crate::{Array, Value};

/// A type that a metadata value can be read as.
///
/// Writers store the same key in different types, so numbers convert if the value fits:
///
/// * to an integer type: every integer, and every float without a fraction, within its range
/// * to f32 and f64: every integer and every float, rounded to the nearest number of the type; f32
///   does not fit numbers beyond its range, nor numbers that it would round to zero
/// * to bool: the integers 0 and 1
///
/// No other conversion is made: neither a text nor a bool converts to a number.
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
                whole(value)?.try_into().ok()
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
    &'a str, "string", Value::Str(v) => v;
    String, "string", Value::Str(v) => v.to_owned();
    &'a [u8], "string", Value::Str(v) => v.as_bytes(), Value::Bytes(v) => v;
    Array<'a>, "array", Value::Array(v) => v;
}

impl<'a> FromValue<'a> for bool {
    fn expected() -> String {
        "bool".into()
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        match (value, value.as_integer()) {
            (Value::Bool(v), _) => Some(v),
            (_, Some(v @ 0..=1)) => Some(v == 1),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for f32 {
    fn expected() -> String {
        "f32".into()
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        if let Value::F32(v) = value {
            return Some(v);
        }
        let wide = f64::from_value(value)?;
        let rounded = wide as f32;
        (rounded.is_finite() == wide.is_finite() && (rounded == 0.0) == (wide == 0.0)).then_some(rounded)
    }
}

impl<'a> FromValue<'a> for f64 {
    fn expected() -> String {
        "f64".into()
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::F32(v) => Some(v.into()),
            Value::F64(v) => Some(v),
            _ => value.as_integer().map(|v| v as f64),
        }
    }
}

/// An integer, or a float without a fraction.
fn whole(value: Value<'_>) -> Option<i128> {
    match value {
        // The largest magnitude keeps the cast exact. No integer type of the format goes beyond it.
        Value::F32(_) | Value::F64(_) => {
            f64::from_value(value).filter(|v| v.fract() == 0.0 && v.abs() <= 2f64.powi(64)).map(|v| v as i128)
        }
        _ => value.as_integer(),
    }
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
