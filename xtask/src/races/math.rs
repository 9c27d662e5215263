//! Operators and functions of scalars and vectors.

use super::types::Kind;
use super::value::Value;
use anyhow::bail;
use naga::{BinaryOperator as Binary, MathFunction as Math, RelationalFunction as Relational, UnaryOperator as Unary};

fn f(word: u32) -> f32 {
    f32::from_bits(word)
}

/// A function of f32 as one of words, rounded to the type.
fn float1(kind: Kind, of: impl Fn(f32) -> f32) -> impl Fn(u32) -> u32 {
    move |a| kind.rounded(of(f(a)))
}

fn float2(kind: Kind, of: impl Fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |a, b| kind.rounded(of(f(a), f(b)))
}

pub fn unary(op: Unary, kind: Kind, a: &Value) -> Value {
    match (op, kind) {
        (Unary::Negate, Kind::F32 | Kind::F16) => a.map(|a| a ^ 0x8000_0000),
        (Unary::Negate, _) => a.map(u32::wrapping_neg),
        (Unary::LogicalNot, _) => a.map(|a| u32::from(a == 0)),
        (Unary::BitwiseNot, _) => a.map(|a| !a),
    }
}

pub fn binary(op: Binary, kind: Kind, a: &Value, b: &Value) -> Value {
    if kind.is_float() {
        return float_binary(op, kind, a, b);
    }
    let signed = kind == Kind::I32;
    let compare = |of: fn(&i64, &i64) -> bool| {
        let wide = move |word: u32| if signed { i64::from(word as i32) } else { i64::from(word) };
        a.zip(b, move |a, b| u32::from(of(&wide(a), &wide(b))))
    };
    match op {
        Binary::Add => a.zip(b, u32::wrapping_add),
        Binary::Subtract => a.zip(b, u32::wrapping_sub),
        Binary::Multiply => a.zip(b, u32::wrapping_mul),
        // As WGSL defines it: division by zero leaves the dividend, and no remainder.
        Binary::Divide if signed => a.zip(b, |a, b| if b == 0 { a } else { (a as i32).wrapping_div(b as i32) as u32 }),
        Binary::Modulo if signed => a.zip(b, |a, b| if b == 0 { 0 } else { (a as i32).wrapping_rem(b as i32) as u32 }),
        Binary::Divide => a.zip(b, |a, b| a.checked_div(b).unwrap_or(a)),
        Binary::Modulo => a.zip(b, |a, b| a.checked_rem(b).unwrap_or(0)),
        Binary::Equal => a.zip(b, |a, b| u32::from(a == b)),
        Binary::NotEqual => a.zip(b, |a, b| u32::from(a != b)),
        Binary::Less => compare(|a, b| a < b),
        Binary::LessEqual => compare(|a, b| a <= b),
        Binary::Greater => compare(|a, b| a > b),
        Binary::GreaterEqual => compare(|a, b| a >= b),
        Binary::And | Binary::LogicalAnd => a.zip(b, |a, b| a & b),
        Binary::InclusiveOr | Binary::LogicalOr => a.zip(b, |a, b| a | b),
        Binary::ExclusiveOr => a.zip(b, |a, b| a ^ b),
        Binary::ShiftLeft => a.zip(b, |a, b| a << (b & 31)),
        Binary::ShiftRight if signed => a.zip(b, |a, b| ((a as i32) >> (b & 31)) as u32),
        Binary::ShiftRight => a.zip(b, |a, b| a >> (b & 31)),
    }
}

fn float_binary(op: Binary, kind: Kind, a: &Value, b: &Value) -> Value {
    let compare = |of: fn(&f32, &f32) -> bool| a.zip(b, move |a, b| u32::from(of(&f(a), &f(b))));
    match op {
        Binary::Add => a.zip(b, float2(kind, |a, b| a + b)),
        Binary::Subtract => a.zip(b, float2(kind, |a, b| a - b)),
        Binary::Multiply => a.zip(b, float2(kind, |a, b| a * b)),
        Binary::Divide => a.zip(b, float2(kind, |a, b| a / b)),
        Binary::Modulo => a.zip(b, float2(kind, |a, b| a % b)),
        Binary::Equal => compare(|a, b| a == b),
        Binary::NotEqual => compare(|a, b| a != b),
        Binary::Less => compare(|a, b| a < b),
        Binary::LessEqual => compare(|a, b| a <= b),
        Binary::Greater => compare(|a, b| a > b),
        Binary::GreaterEqual => compare(|a, b| a >= b),
        _ => unreachable!("{op:?} of floats"),
    }
}

pub fn relational(fun: Relational, a: &Value) -> Value {
    match fun {
        Relational::All => a.fold(|a, b| a & b),
        Relational::Any => a.fold(|a, b| a | b),
        Relational::IsNan => a.map(|a| u32::from(f(a).is_nan())),
        Relational::IsInf => a.map(|a| u32::from(f(a).is_infinite())),
    }
}

/// A conversion of scalars, or the same bits as another type.
pub fn convert(from: Kind, to: Kind, converts: bool, a: &Value) -> Value {
    match (from, to) {
        _ if !converts || from == to => a.clone(),
        (_, Kind::Bool) if from.is_float() => a.map(|a| u32::from(f(a) != 0.0)),
        (_, Kind::Bool) => a.map(|a| u32::from(a != 0)),
        (Kind::F32 | Kind::F16, Kind::F32 | Kind::F16) => a.map(float1(to, |a| a)),
        (Kind::F32 | Kind::F16, Kind::I32) => a.map(|a| f(a) as i32 as u32),
        (Kind::F32 | Kind::F16, _) => a.map(|a| f(a) as u32),
        (Kind::I32, Kind::F32 | Kind::F16) => a.map(|a| to.rounded(a as i32 as f32)),
        (_, Kind::F32 | Kind::F16) => a.map(|a| to.rounded(a as f32)),
        _ => a.clone(),
    }
}

/// A function of up to three values, all of this type.
pub fn call(fun: Math, kind: Kind, args: &[&Value]) -> anyhow::Result<Value> {
    match *args {
        [a] => of_one(fun, kind, a),
        [a, b] => of_two(fun, kind, a, b),
        [a, b, c] => of_three(fun, kind, a, b, c),
        _ => bail!("{fun:?} of {} values is not interpreted", args.len()),
    }
}

fn of_one(fun: Math, kind: Kind, a: &Value) -> anyhow::Result<Value> {
    let float = |of: fn(f32) -> f32| Ok(a.map(float1(kind, of)));
    let bytes = |of: fn(u8) -> u32| {
        Ok(Value::joined((0..4).map(|n| a.map(move |a| of(a.to_le_bytes()[n]))).collect::<Vec<_>>().iter()))
    };
    match fun {
        Math::Abs if kind == Kind::I32 => Ok(a.map(|a| (a as i32).wrapping_abs() as u32)),
        Math::Abs if kind == Kind::U32 => Ok(a.clone()),
        Math::Abs => Ok(a.map(|a| a & 0x7fff_ffff)),
        Math::Saturate => float(|a| a.clamp(0.0, 1.0)),
        Math::Cos => float(f32::cos),
        Math::Sin => float(f32::sin),
        Math::Tanh => float(f32::tanh),
        Math::Ceil => float(f32::ceil),
        Math::Floor => float(f32::floor),
        Math::Round => float(f32::round_ties_even),
        Math::Trunc => float(f32::trunc),
        Math::Fract => float(|a| a - a.floor()),
        Math::Exp => float(f32::exp),
        Math::Exp2 => float(f32::exp2),
        Math::Log => float(f32::ln),
        Math::Log2 => float(f32::log2),
        Math::Sqrt => float(f32::sqrt),
        Math::InverseSqrt => float(|a| a.sqrt().recip()),
        Math::Sign if kind.is_float() => float(|a| if a == 0.0 { 0.0 } else { a.signum() }),
        Math::CountOneBits => Ok(a.map(u32::count_ones)),
        Math::CountLeadingZeros => Ok(a.map(u32::leading_zeros)),
        Math::CountTrailingZeros => Ok(a.map(u32::trailing_zeros)),
        Math::FirstLeadingBit if kind == Kind::U32 => Ok(a.map(|a| 31_u32.wrapping_sub(a.leading_zeros()))),
        Math::FirstTrailingBit => Ok(a.map(|a| if a == 0 { u32::MAX } else { a.trailing_zeros() })),
        Math::Unpack4xI8 => bytes(|byte| byte as i8 as i32 as u32),
        Math::Unpack4xU8 => bytes(u32::from),
        Math::Unpack2x16float => {
            let half = |shift: u32| a.map(move |a| half::f16::from_bits((a >> shift) as u16).to_f32().to_bits());
            Ok(Value::joined([half(0), half(16)].iter()))
        }
        Math::Pack2x16float => {
            let half = |n: usize| a.part(n, 1).map(|a| u32::from(half::f16::from_f32(f(a)).to_bits()));
            Ok(half(0).zip(&half(1), |low, high| low | high << 16))
        }
        Math::Pack4xI8 | Math::Pack4xU8 => Ok(packed(a, |word| word as u8)),
        Math::Pack4xI8Clamp => Ok(packed(a, |word| (word as i32).clamp(-128, 127) as u8)),
        Math::Pack4xU8Clamp => Ok(packed(a, |word| word.min(255) as u8)),
        _ => bail!("{fun:?} of {kind:?} is not interpreted"),
    }
}

fn packed(a: &Value, of: impl Fn(u32) -> u8) -> Value {
    let word = |lane| u32::from_le_bytes([0, 1, 2, 3].map(|n| of(a.at(n, lane))));
    Value { lanes: a.lanes, words: (0..a.lanes).map(word).collect() }
}

fn of_two(fun: Math, kind: Kind, a: &Value, b: &Value) -> anyhow::Result<Value> {
    let dot = |of: fn(u8, u8) -> i32| {
        let sum =
            move |a: u32, b: u32| a.to_le_bytes().into_iter().zip(b.to_le_bytes()).map(|(a, b)| of(a, b)).sum::<i32>();
        Ok(a.zip(b, move |a, b| sum(a, b) as u32))
    };
    match (fun, kind) {
        (Math::Min, Kind::F32 | Kind::F16) => Ok(a.zip(b, float2(kind, f32::min))),
        (Math::Max, Kind::F32 | Kind::F16) => Ok(a.zip(b, float2(kind, f32::max))),
        (Math::Min, Kind::I32) => Ok(a.zip(b, |a, b| (a as i32).min(b as i32) as u32)),
        (Math::Max, Kind::I32) => Ok(a.zip(b, |a, b| (a as i32).max(b as i32) as u32)),
        (Math::Min, _) => Ok(a.zip(b, u32::min)),
        (Math::Max, _) => Ok(a.zip(b, u32::max)),
        (Math::Pow, _) => Ok(a.zip(b, float2(kind, f32::powf))),
        (Math::Step, _) => Ok(a.zip(b, float2(kind, |edge, x| f32::from(edge <= x)))),
        (Math::Ldexp, _) => Ok(a.zip(b, |a, b| kind.rounded(f(a) * (b as i32 as f32).exp2()))),
        (Math::Dot, Kind::F32 | Kind::F16) => Ok(a.zip(b, float2(kind, |a, b| a * b)).fold(float2(kind, |a, b| a + b))),
        (Math::Dot, _) => Ok(a.zip(b, u32::wrapping_mul).fold(u32::wrapping_add)),
        (Math::Dot4I8Packed, _) => dot(|a, b| i32::from(a as i8) * i32::from(b as i8)),
        (Math::Dot4U8Packed, _) => dot(|a, b| i32::from(a) * i32::from(b)),
        _ => bail!("{fun:?} of {kind:?} is not interpreted"),
    }
}

fn of_three(fun: Math, kind: Kind, a: &Value, b: &Value, c: &Value) -> anyhow::Result<Value> {
    match (fun, kind) {
        (Math::Clamp, _) => of_two(Math::Min, kind, &of_two(Math::Max, kind, a, b)?, c),
        (Math::Fma, _) => Ok(a.zip3(b, c, |a, b, c| kind.rounded(f(a) * f(b) + f(c)))),
        (Math::Mix, _) => Ok(a.zip3(b, c, |a, b, c| kind.rounded(f(a) * (1.0 - f(c)) + f(b) * f(c)))),
        (Math::ExtractBits, Kind::U32 | Kind::I32) => Ok(a.zip3(b, c, |a, b, c| {
            let (offset, count) = (b.min(32), c.min(32 - b.min(32)));
            let shift = 32 - count;
            match (count, kind) {
                (0, _) => 0,
                (_, Kind::I32) => (((a >> offset) << shift) as i32 >> shift) as u32,
                _ => (a >> offset) << shift >> shift,
            }
        })),
        _ => bail!("{fun:?} of {kind:?} is not interpreted"),
    }
}
