//! Metadata values to write.

use crate::{Error, Result, Value, ValueType};

/// A metadata value that owns its content, for [`crate::GgufBuilder`].
#[derive(Clone, Debug, PartialEq)]
pub enum MetaValue {
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
    /// Text or, for tokens, any bytes.
    Str(Vec<u8>),
    /// Values of one type; the type is given because an array may be empty.
    Array(ValueType, Vec<MetaValue>),
}

impl MetaValue {
    /// The type in the file.
    pub fn ty(&self) -> ValueType {
        match self {
            MetaValue::U8(_) => ValueType::U8,
            MetaValue::I8(_) => ValueType::I8,
            MetaValue::U16(_) => ValueType::U16,
            MetaValue::I16(_) => ValueType::I16,
            MetaValue::U32(_) => ValueType::U32,
            MetaValue::I32(_) => ValueType::I32,
            MetaValue::U64(_) => ValueType::U64,
            MetaValue::I64(_) => ValueType::I64,
            MetaValue::F32(_) => ValueType::F32,
            MetaValue::F64(_) => ValueType::F64,
            MetaValue::Bool(_) => ValueType::Bool,
            MetaValue::Str(_) => ValueType::Str,
            MetaValue::Array(..) => ValueType::Array,
        }
    }

    /// Appends the value in the encoding of a version 3 file, without its type.
    pub(crate) fn encode(&self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        match self {
            MetaValue::U8(v) => out.push(*v),
            MetaValue::I8(v) => out.extend(v.to_le_bytes()),
            MetaValue::U16(v) => out.extend(v.to_le_bytes()),
            MetaValue::I16(v) => out.extend(v.to_le_bytes()),
            MetaValue::U32(v) => out.extend(v.to_le_bytes()),
            MetaValue::I32(v) => out.extend(v.to_le_bytes()),
            MetaValue::U64(v) => out.extend(v.to_le_bytes()),
            MetaValue::I64(v) => out.extend(v.to_le_bytes()),
            MetaValue::F32(v) => out.extend(v.to_le_bytes()),
            MetaValue::F64(v) => out.extend(v.to_le_bytes()),
            MetaValue::Bool(v) => out.push((*v).into()),
            MetaValue::Str(v) => put_string(out, v),
            MetaValue::Array(element, values) => {
                out.extend((*element as u32).to_le_bytes());
                out.extend((values.len() as u64).to_le_bytes());
                for value in values {
                    if value.ty() != *element {
                        return Err(Error::MixedArray { key: key.into(), expected: *element, found: value.ty() });
                    }
                    value.encode(key, out)?;
                }
            }
        }
        Ok(())
    }
}

/// Appends a length and the bytes.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

impl From<Value<'_>> for MetaValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::U8(v) => MetaValue::U8(v),
            Value::I8(v) => MetaValue::I8(v),
            Value::U16(v) => MetaValue::U16(v),
            Value::I16(v) => MetaValue::I16(v),
            Value::U32(v) => MetaValue::U32(v),
            Value::I32(v) => MetaValue::I32(v),
            Value::U64(v) => MetaValue::U64(v),
            Value::I64(v) => MetaValue::I64(v),
            Value::F32(v) => MetaValue::F32(v),
            Value::F64(v) => MetaValue::F64(v),
            Value::Bool(v) => MetaValue::Bool(v),
            Value::Str(v) => MetaValue::Str(v.into()),
            Value::Bytes(v) => MetaValue::Str(v.into()),
            Value::Array(array) => MetaValue::Array(array.element_type(), array.iter().map(MetaValue::from).collect()),
        }
    }
}

impl From<&str> for MetaValue {
    fn from(text: &str) -> Self {
        MetaValue::Str(text.into())
    }
}

impl From<String> for MetaValue {
    fn from(text: String) -> Self {
        MetaValue::Str(text.into())
    }
}

impl From<Vec<u8>> for MetaValue {
    /// A string of any bytes, not an array of u8.
    fn from(bytes: Vec<u8>) -> Self {
        MetaValue::Str(bytes)
    }
}

macro_rules! from_scalars {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for MetaValue {
            fn from(value: $ty) -> Self {
                MetaValue::$variant(value)
            }
        }
    )*};
}

macro_rules! from_arrays {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<Vec<$ty>> for MetaValue {
            fn from(values: Vec<$ty>) -> Self {
                MetaValue::Array(ValueType::$variant, values.into_iter().map(MetaValue::from).collect())
            }
        }
    )*};
}

from_scalars!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64, f32 => F32, f64 => F64, bool => Bool);
from_arrays!(i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64, f32 => F32, f64 => F64, bool => Bool);
from_arrays!(&str => Str, String => Str, Vec<u8> => Str);
