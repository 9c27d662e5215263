//! How types are made of scalars, in values and in buffers.

use anyhow::bail;
use half::f16;
use naga::{ArraySize, Handle, Module, Scalar, ScalarKind, Type, TypeInner};

/// The type of a scalar. Every scalar is kept in a word; an f16 is kept as an f32.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    U32,
    I32,
    F32,
    F16,
    Bool,
}

impl Kind {
    pub fn of(scalar: Scalar) -> anyhow::Result<Self> {
        Ok(match (scalar.kind, scalar.width) {
            (ScalarKind::Uint, 4) => Self::U32,
            (ScalarKind::Sint, 4) => Self::I32,
            (ScalarKind::Float, 4) => Self::F32,
            (ScalarKind::Float, 2) => Self::F16,
            (ScalarKind::Bool, _) => Self::Bool,
            _ => bail!("scalars {scalar:?} are not interpreted"),
        })
    }

    pub fn bytes(self) -> usize {
        if self == Self::F16 { 2 } else { 4 }
    }

    /// The word of a scalar in a buffer.
    pub fn read(self, bytes: &[u8], at: usize) -> u32 {
        match self {
            Self::F16 => f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32().to_bits(),
            _ => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]),
        }
    }

    pub fn write(self, word: u32, bytes: &mut [u8], at: usize) {
        match self {
            Self::F16 => bytes[at..at + 2].copy_from_slice(&f16::from_f32(f32::from_bits(word)).to_le_bytes()),
            _ => bytes[at..at + 4].copy_from_slice(&word.to_le_bytes()),
        }
    }

    /// The word that is kept for an f32.
    pub fn rounded(self, value: f32) -> u32 {
        if self == Self::F16 { f16::from_f32(value).to_f32().to_bits() } else { value.to_bits() }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16)
    }
}

/// A place within a composite: scalars of a value and bytes of a buffer before it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub scalars: usize,
    pub bytes: usize,
}

/// The types of a module.
pub struct Types {
    /// Invocations per subgroup, which share the elements of a cooperative matrix.
    pub subgroup: usize,
}

impl Types {
    fn inner(module: &Module, ty: Handle<Type>) -> &TypeInner {
        &module.types[ty].inner
    }

    /// Number of scalars per invocation.
    pub fn scalars(&self, module: &Module, inner: &TypeInner) -> anyhow::Result<usize> {
        Ok(match inner {
            TypeInner::Scalar(_) | TypeInner::Atomic(_) => 1,
            TypeInner::Vector { size, .. } => *size as usize,
            TypeInner::Matrix { columns, rows, .. } => *columns as usize * *rows as usize,
            TypeInner::CooperativeMatrix { columns, rows, .. } => {
                (*columns as usize * *rows as usize).div_ceil(self.subgroup)
            }
            TypeInner::Array { base, size: ArraySize::Constant(count), .. } => {
                count.get() as usize * self.scalars(module, Self::inner(module, *base))?
            }
            TypeInner::Array { .. } => 0,
            TypeInner::Struct { members, .. } => {
                let each = members.iter().map(|member| self.scalars(module, Self::inner(module, member.ty)));
                each.sum::<anyhow::Result<_>>()?
            }
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => 1,
            _ => bail!("types {inner:?} are not interpreted"),
        })
    }

    /// The type of the scalars, of types with only one.
    pub fn kind(inner: &TypeInner) -> Option<Kind> {
        match inner {
            TypeInner::Scalar(scalar)
            | TypeInner::Atomic(scalar)
            | TypeInner::Vector { scalar, .. }
            | TypeInner::Matrix { scalar, .. }
            | TypeInner::CooperativeMatrix { scalar, .. }
            | TypeInner::ValuePointer { scalar, .. } => Kind::of(*scalar).ok(),
            _ => None,
        }
    }

    /// The offset in bytes and the type of every scalar of a type in a buffer.
    pub fn parts(&self, module: &Module, inner: &TypeInner) -> anyhow::Result<Vec<(usize, Kind)>> {
        let mut found = vec![];
        self.add_parts(module, inner, 0, &mut found)?;
        Ok(found)
    }

    fn add_parts(
        &self,
        module: &Module,
        inner: &TypeInner,
        at: usize,
        found: &mut Vec<(usize, Kind)>,
    ) -> anyhow::Result<()> {
        let mut many = |count: usize, ty| {
            (0..count).try_for_each(|n| {
                let place = self.place(module, inner, n)?;
                self.add_parts(module, Self::inner(module, ty), at + place.bytes, found)
            })
        };
        match inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => found.push((at, Kind::of(*scalar)?)),
            TypeInner::Vector { size, scalar } => {
                let kind = Kind::of(*scalar)?;
                found.extend((0..*size as usize).map(|n| (at + n * kind.bytes(), kind)));
            }
            TypeInner::Matrix { columns, rows, scalar } => {
                let kind = Kind::of(*scalar)?;
                for column in 0..*columns as usize {
                    let start = at + self.place(module, inner, column)?.bytes;
                    found.extend((0..*rows as usize).map(|n| (start + n * kind.bytes(), kind)));
                }
            }
            TypeInner::Array { base, size: ArraySize::Constant(count), .. } => many(count.get() as usize, *base)?,
            TypeInner::Struct { members, .. } => {
                for (n, member) in members.iter().enumerate() {
                    let place = self.place(module, inner, n)?;
                    self.add_parts(module, Self::inner(module, member.ty), at + place.bytes, found)?;
                }
            }
            _ => bail!("values {inner:?} in buffers are not interpreted"),
        }
        Ok(())
    }

    /// The offset of an element or a member, in scalars and in bytes.
    pub fn place(&self, module: &Module, inner: &TypeInner, index: usize) -> anyhow::Result<Place> {
        Ok(match inner {
            TypeInner::Vector { scalar, .. } | TypeInner::ValuePointer { scalar, size: Some(_), .. } => {
                Place { scalars: index, bytes: index * Kind::of(*scalar)?.bytes() }
            }
            TypeInner::Matrix { rows, scalar, .. } => {
                let (rows, bytes) = (*rows as usize, Kind::of(*scalar)?.bytes());
                Place { scalars: index * rows, bytes: index * bytes * if rows == 3 { 4 } else { rows } }
            }
            TypeInner::Array { base, stride, .. } => Place {
                scalars: index * self.scalars(module, Self::inner(module, *base))?,
                bytes: index * *stride as usize,
            },
            TypeInner::Struct { members, .. } => {
                let before = members[..index].iter().map(|member| self.scalars(module, Self::inner(module, member.ty)));
                Place { scalars: before.sum::<anyhow::Result<_>>()?, bytes: members[index].offset as usize }
            }
            _ => bail!("an element of {inner:?} is not interpreted"),
        })
    }
}
