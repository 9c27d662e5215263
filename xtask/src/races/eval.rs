//! Expressions.

use super::machine::{Frame, Item, Machine};
use super::math;
use super::memory::{Pointer, Root, gathered};
use super::types::{Kind, Types};
use super::value::{Mask, Value};
use anyhow::{Context as _, bail};
use naga::{AddressSpace, ArraySize, Expression, GlobalVariable, Handle, Literal, TypeInner};
use std::rc::Rc;

/// The largest index of an element. Larger ones are past every end.
const MOST: u32 = 1 << 26;

impl<'a> Machine<'a> {
    /// Evaluates an expression in the invocations of `mask`. In the others the result means
    /// nothing.
    pub fn evaluate(&mut self, frame: &mut Frame<'a>, handle: Handle<Expression>, mask: &Mask) -> anyhow::Result<Item> {
        let function = frame.body.function;
        let kind = |of: Handle<Expression>| frame.body.of[of.index()].kind.context("no type of scalars");
        let value = match &function.expressions[handle] {
            Expression::FunctionArgument(n) => return Ok(frame.arguments[*n as usize].clone()),
            Expression::LocalVariable(local) => return Ok(Self::start(Root::Local(frame.locals + local.index()), 0)),
            Expression::GlobalVariable(global) => return self.global(*global),
            Expression::Access { base, index } => return self.access(frame, *base, *index, mask),
            Expression::AccessIndex { base, index } => return self.access_index(frame, *base, *index),
            Expression::Literal(literal) => literal_of(literal)?,
            Expression::Constant(constant) => self.constant(self.program.module.constants[*constant].init)?,
            Expression::ZeroValue(ty) => Value::zeros(self.scalars(&self.program.module.types[*ty].inner)?),
            Expression::Compose { components, .. } => {
                let parts =
                    components.iter().map(|part| self.value(frame, *part)).collect::<anyhow::Result<Vec<_>>>()?;
                Value::joined(parts.iter().map(|part| &**part))
            }
            Expression::Splat { size, value } => {
                let value = self.value(frame, *value)?;
                Value::joined(std::iter::repeat_n(&*value, *size as usize))
            }
            Expression::Swizzle { size, vector, pattern } => {
                let vector = self.value(frame, *vector)?;
                let parts: Vec<_> =
                    pattern[..*size as usize].iter().map(|&part| vector.part(part as usize, 1)).collect();
                Value::joined(parts.iter())
            }
            Expression::Load { pointer } => {
                if let Some(range) = function.expressions.get_span(handle).to_range() {
                    self.at = range.start as u32;
                }
                let from = self.pointer(frame, *pointer)?;
                self.load(&from, &frame.body.of[pointer.index()], mask)?
            }
            Expression::Unary { op, expr } => math::unary(*op, kind(*expr)?, &*self.value(frame, *expr)?),
            Expression::Binary { op, left, right } => {
                let (kind, left, right) = (kind(*left)?, self.value(frame, *left)?, self.value(frame, *right)?);
                math::binary(*op, kind, &left, &right)
            }
            Expression::Select { condition, accept, reject } => {
                let (condition, accept, reject) =
                    (self.value(frame, *condition)?, self.value(frame, *accept)?, self.value(frame, *reject)?);
                condition.zip3(
                    &accept,
                    &reject,
                    |condition, accept, reject| if condition != 0 { accept } else { reject },
                )
            }
            Expression::Relational { fun, argument } => math::relational(*fun, &*self.value(frame, *argument)?),
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let of = kind(*arg)?;
                let handles = [Some(*arg), *arg1, *arg2, *arg3].into_iter().flatten();
                let args = handles.map(|arg| self.value(frame, arg)).collect::<anyhow::Result<Vec<_>>>()?;
                math::call(*fun, of, &args.iter().map(|arg| &**arg).collect::<Vec<_>>())?
            }
            Expression::As { expr, convert, .. } => {
                let to = kind(handle)?;
                math::convert(kind(*expr)?, to, convert.is_some(), &*self.value(frame, *expr)?)
            }
            Expression::ArrayLength(array) => Value::shared(vec![self.array_length(frame, *array)?]),
            Expression::CooperativeLoad { columns, rows, data, .. } => {
                return Ok(Item::Value(Rc::new(self.matrix_load(
                    frame,
                    *columns as usize,
                    *rows as usize,
                    data,
                    mask,
                )?)));
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                let (left, right, sum) = (self.value(frame, *a)?, self.value(frame, *b)?, self.value(frame, *c)?);
                self.multiply_add(frame, [*a, *b, *c], [&left, &right, &sum], mask)?
            }
            other => bail!("the expression {other:?} is not interpreted"),
        };
        Ok(Item::Value(Rc::new(value)))
    }

    fn scalars(&self, inner: &TypeInner) -> anyhow::Result<usize> {
        self.program.types.scalars(self.program.module, inner)
    }

    fn constant(&self, of: Handle<Expression>) -> anyhow::Result<Value> {
        let module = self.program.module;
        Ok(match &module.global_expressions[of] {
            Expression::Literal(literal) => literal_of(literal)?,
            Expression::Constant(constant) => self.constant(module.constants[*constant].init)?,
            Expression::ZeroValue(ty) => Value::zeros(self.scalars(&module.types[*ty].inner)?),
            Expression::Compose { components, .. } => {
                let parts = components.iter().map(|part| self.constant(*part)).collect::<anyhow::Result<Vec<_>>>()?;
                Value::joined(parts.iter())
            }
            Expression::Splat { size, value } => {
                Value::joined(std::iter::repeat_n(&self.constant(*value)?, *size as usize))
            }
            other => bail!("the constant {other:?} is not interpreted"),
        })
    }

    /// The values that private variables begin with.
    pub fn private(&self) -> anyhow::Result<Vec<Value>> {
        let module = self.program.module;
        let value = |of: &Handle<GlobalVariable>| match &module.global_variables[*of] {
            GlobalVariable { init: Some(init), .. } => self.constant(*init),
            GlobalVariable { ty, .. } => Ok(Value::zeros(self.scalars(&module.types[*ty].inner)?)),
        };
        self.program.private.iter().map(value).collect()
    }

    fn global(&self, global: Handle<GlobalVariable>) -> anyhow::Result<Item> {
        let variable = &self.program.module.global_variables[global];
        match (variable.space, &variable.binding) {
            (AddressSpace::WorkGroup, _) => {
                let first = self.program.words[&global];
                let scalars = self.scalars(&self.program.module.types[variable.ty].inner)?;
                Ok(Self::start(Root::Words(first + scalars), first))
            }
            (AddressSpace::Uniform | AddressSpace::Storage { .. }, Some(at)) => {
                Ok(Self::start(Root::Buffer(at.binding as usize), 0))
            }
            (AddressSpace::Private, _) => {
                let n = self.program.private.iter().position(|of| *of == global).context("a private variable")?;
                Ok(Self::start(Root::Local(n), 0))
            }
            (space, _) => bail!("variables in {space:?} are not interpreted"),
        }
    }

    /// An element by an index that is computed.
    fn access(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: Handle<Expression>,
        mask: &Mask,
    ) -> anyhow::Result<Item> {
        let (item, index) = (self.item(frame, base)?, self.value(frame, index)?);
        let of = &frame.body.of[base.index()];
        let one = self.program.types.place(self.program.module, &of.inner, 1)?;
        Ok(match item {
            Item::Value(value) => {
                let at = index.map(|index| index.min(MOST).saturating_mul(one.scalars as u32));
                Item::Value(Rc::new(gathered(&value, &at, one.scalars, mask)))
            }
            Item::Pointer(Pointer { root, at }) => {
                let stride = if matches!(root, Root::Buffer(_)) { one.bytes } else { one.scalars } as u32;
                let at = at.zip(&index, |at, index| at.saturating_add(index.min(MOST).saturating_mul(stride)));
                Item::Pointer(Pointer { root, at: Rc::new(at) })
            }
        })
    }

    /// A member, or an element by an index in the text.
    fn access_index(&mut self, frame: &mut Frame<'a>, base: Handle<Expression>, index: u32) -> anyhow::Result<Item> {
        let item = self.item(frame, base)?;
        let of = &frame.body.of[base.index()];
        let (types, module) = (&self.program.types, self.program.module);
        let place = types.place(module, &of.inner, index as usize)?;
        Ok(match item {
            Item::Value(value) => {
                let inner = match &of.inner {
                    TypeInner::Struct { members, .. } => {
                        types.scalars(module, &module.types[members[index as usize].ty].inner)?
                    }
                    _ => types.place(module, &of.inner, 1)?.scalars,
                };
                Item::Value(Rc::new(value.part(place.scalars, inner)))
            }
            Item::Pointer(Pointer { root, at }) => {
                let step = if matches!(root, Root::Buffer(_)) { place.bytes } else { place.scalars } as u32;
                Item::Pointer(Pointer { root, at: Rc::new(at.map(|at| at.saturating_add(step))) })
            }
        })
    }

    fn array_length(&mut self, frame: &mut Frame<'a>, array: Handle<Expression>) -> anyhow::Result<u32> {
        let pointer = self.pointer(frame, array)?;
        match (&frame.body.of[array.index()].inner, pointer.root) {
            (TypeInner::Array { size: ArraySize::Dynamic, stride, .. }, Root::Buffer(binding)) => {
                Ok((self.range(binding).len() as u32 - pointer.at.words[0]) / stride)
            }
            (TypeInner::Array { size: ArraySize::Constant(count), .. }, _) => Ok(count.get()),
            (inner, _) => bail!("the length of {inner:?}"),
        }
    }

    /// The type of the scalars of an expression.
    pub fn kind(&self, frame: &Frame<'a>, of: Handle<Expression>) -> anyhow::Result<Kind> {
        Types::kind(&frame.body.of[of.index()].inner).context("no type of scalars")
    }
}

fn literal_of(literal: &Literal) -> anyhow::Result<Value> {
    let word = match *literal {
        Literal::F32(value) => value.to_bits(),
        Literal::F16(value) => value.to_f32().to_bits(),
        Literal::U32(value) => value,
        Literal::I32(value) => value as u32,
        Literal::Bool(value) => u32::from(value),
        other => bail!("the literal {other:?} is not interpreted"),
    };
    Ok(Value::shared(vec![word]))
}
