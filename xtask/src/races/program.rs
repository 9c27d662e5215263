//! A validated shader, with the types of its expressions at hand.

use super::types::{Kind, Types};
use anyhow::{Context as _, anyhow};
use naga::proc::TypeResolution;
use naga::valid::ModuleInfo;
use naga::{AddressSpace, Expression, Function, GlobalVariable, Handle, Module, StorageAccess, TypeInner};
use std::cell::OnceCell;
use std::collections::HashMap;

/// A scalar in a buffer: its offset in bytes from the start of the value, and its type.
pub type Part = (usize, Kind);

/// The type of one expression.
pub struct Of {
    /// Number of scalars of a value; for a pointer, of the value that it points to.
    pub scalars: usize,
    pub kind: Option<Kind>,
    /// The type of the value, or of the value that the pointer points to.
    pub inner: TypeInner,
    parts: OnceCell<Vec<Part>>,
}

/// A function with the types of its expressions.
pub struct Body<'a> {
    pub function: &'a Function,
    pub of: Vec<Of>,
}

/// A shader.
pub struct Program<'a> {
    pub module: &'a Module,
    pub types: Types,
    pub entry: Body<'a>,
    /// Every function by its index.
    pub functions: Vec<Body<'a>>,
    /// The first word of every variable in workgroup memory.
    pub words: HashMap<Handle<GlobalVariable>, usize>,
    /// Words of workgroup memory.
    pub all_words: usize,
    /// The variables that each invocation has outside functions, in the order of their values.
    pub private: Vec<Handle<GlobalVariable>>,
    pub lanes: usize,
}

impl<'a> Program<'a> {
    /// A program with subgroups of so many invocations.
    pub fn new(module: &'a Module, info: &ModuleInfo, subgroup: usize) -> anyhow::Result<Self> {
        let types = Types { subgroup };
        let entry = module.entry_points.first().context("no entry point")?;
        let lanes = entry.workgroup_size.iter().product::<u32>() as usize;
        let body = |function: &'a Function, of: &dyn Fn(Handle<Expression>) -> TypeResolution| {
            let each = function
                .expressions
                .iter()
                .map(|(handle, _)| typed(module, &types, of(handle).inner_with(&module.types)));
            Ok::<_, anyhow::Error>(Body { function, of: each.collect::<Result<_, _>>()? })
        };
        let main = info.get_entry_point(0);
        let entry = body(&entry.function, &|handle| main[handle].ty.clone())?;
        let functions =
            module.functions.iter().map(|(handle, function)| body(function, &|of| info[handle][of].ty.clone()));
        let functions = functions.collect::<Result<_, _>>()?;
        let (mut words, mut all_words) = (HashMap::new(), 0);
        for (handle, variable) in module.global_variables.iter().filter(|(_, var)| var.space == AddressSpace::WorkGroup)
        {
            words.insert(handle, all_words);
            all_words += types.scalars(module, &module.types[variable.ty].inner)?;
        }
        let private = module
            .global_variables
            .iter()
            .filter(|(_, var)| var.space == AddressSpace::Private)
            .map(|(handle, _)| handle);
        let private = private.collect();
        Ok(Self { module, types, entry, functions, words, all_words, private, lanes })
    }

    /// The scalars of the value that a pointer points to, in a buffer.
    pub fn parts<'b>(&self, of: &'b Of) -> anyhow::Result<&'b [Part]> {
        if of.parts.get().is_none() {
            // The only caller; the cell is empty.
            let _ = of.parts.set(self.types.parts(self.module, &of.inner)?);
        }
        of.parts.get().map(Vec::as_slice).context("no parts")
    }

    /// The variable that has a word of workgroup memory.
    pub fn name_of(&self, word: usize) -> String {
        let variable = self.words.iter().filter(|(_, first)| **first <= word).max_by_key(|(_, first)| **first);
        let name = variable.and_then(|(handle, _)| self.module.global_variables[*handle].name.clone());
        name.unwrap_or_else(|| "workgroup memory".to_string())
    }

    /// The bindings that the shader may write, by number.
    pub fn written(&self) -> impl Iterator<Item = usize> + '_ {
        let writes = |space| matches!(space, AddressSpace::Storage { access } if access.contains(StorageAccess::STORE));
        let written = self.module.global_variables.iter().filter(move |(_, var)| writes(var.space));
        written.filter_map(|(_, var)| var.binding.map(|at| at.binding as usize))
    }
}

fn typed(module: &Module, types: &Types, inner: &TypeInner) -> anyhow::Result<Of> {
    let inner = match inner {
        TypeInner::Pointer { base, .. } => module.types[*base].inner.clone(),
        TypeInner::ValuePointer { size: Some(size), scalar, .. } => TypeInner::Vector { size: *size, scalar: *scalar },
        TypeInner::ValuePointer { size: None, scalar, .. } => TypeInner::Scalar(*scalar),
        other => other.clone(),
    };
    let scalars = types.scalars(module, &inner).map_err(|e| anyhow!("{e}"))?;
    Ok(Of { scalars, kind: Types::kind(&inner), inner, parts: OnceCell::new() })
}
