//! A workgroup whose invocations run in step.

use super::finding::Finding;
use super::memory::{Pointer, Root};
use super::program::{Body, Program};
use super::shadow::Shadow;
use super::value::{Mask, Value};
use anyhow::{Context as _, bail, ensure};
use kernels::testing::parity::calls::Call;
use naga::{Binding, BuiltIn, Expression, Handle};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

/// The buffers of a device, and notes of the invocations that accessed the buffers that the current
/// dispatch writes.
#[derive(Default)]
pub struct Space {
    pub buffers: Vec<Vec<u8>>,
    pub shadows: HashMap<usize, Shadow>,
}

/// The result of an expression.
#[derive(Clone, Debug)]
pub enum Item {
    Value(Rc<Value>),
    Pointer(Pointer),
}

/// A call of a function.
pub struct Frame<'a> {
    pub body: &'a Body<'a>,
    pub items: Vec<Option<Item>>,
    pub arguments: Vec<Item>,
    /// The index of the function's first variable.
    pub locals: usize,
    /// The results of the invocations that have returned.
    pub result: Option<Value>,
}

pub struct Machine<'a> {
    pub program: &'a Program<'a>,
    pub call: &'a Call,
    pub space: &'a mut Space,
    pub locals: Vec<Value>,
    /// Workgroup memory.
    pub words: Vec<u32>,
    /// Who accessed workgroup memory, if accesses are noted.
    pub shadow: Option<Shadow>,
    /// The number of the workgroup, and its place in the grid.
    pub group: usize,
    id: [u32; 3],
    pub era: u32,
    /// Barriers of each subgroup.
    pub turns: Vec<u32>,
    /// The offset in the text.
    pub at: u32,
    /// Steps that are left.
    pub fuel: u64,
    /// The words of buffers whose reads race with a write.
    pub unsure: HashMap<(usize, usize), Finding>,
    /// The words of buffers that are read with another value.
    pub changed: HashSet<(usize, usize)>,
}

impl<'a> Machine<'a> {
    /// A machine that finds races.
    pub fn new(program: &'a Program<'a>, call: &'a Call, space: &'a mut Space, fuel: u64) -> Self {
        let mut machine = Self::computing(program, call, space, fuel);
        for binding in program.written() {
            let buffer = call.bindings[binding - 1].buffer;
            let words = machine.space.buffers[buffer].len().div_ceil(4);
            machine.space.shadows.insert(buffer, Shadow::new(words));
        }
        machine.shadow = Some(Shadow::new(program.all_words));
        machine
    }

    /// A machine that only computes, in less time.
    pub fn computing(program: &'a Program<'a>, call: &'a Call, space: &'a mut Space, fuel: u64) -> Self {
        space.shadows = HashMap::new();
        let turns = vec![0; program.lanes.div_ceil(program.types.subgroup)];
        Self {
            program,
            call,
            space,
            locals: vec![],
            words: vec![0; program.all_words],
            shadow: None,
            group: 0,
            id: [0; 3],
            era: 0,
            turns,
            at: 0,
            fuel,
            unsure: HashMap::new(),
            changed: HashSet::new(),
        }
    }

    /// Runs at most so many workgroups of the dispatch, among them the first and the last.
    pub fn run(&mut self, most: u32) -> anyhow::Result<()> {
        let [x, y, z] = self.call.grid;
        let (all, mut before) = (x * y * z, None);
        let taken = most.min(all);
        for group in (0..taken)
            .map(|n| if taken < 2 { 0 } else { (u64::from(n) * u64::from(all - 1) / u64::from(taken - 1)) as u32 })
        {
            if before.replace(group) == Some(group) {
                continue;
            }
            (self.group, self.id) = (group as usize, [group % x, group / x % y, group / x / y]);
            self.words.fill(0);
            self.locals = self.private()?;
            self.era += 1;
            let arguments = self.builtins()?;
            let mut mask = Mask::full(self.program.lanes);
            self.call_function(&self.program.entry, arguments, &mut mask)?;
        }
        Ok(())
    }

    /// The offsets in the text at which several invocations write equal words.
    pub fn equal(&self) -> BTreeSet<u32> {
        let shadows = self.space.shadows.values().chain(&self.shadow);
        shadows.flat_map(|shadow| shadow.equal.iter().copied()).collect()
    }

    /// The bytes of a binding in its buffer. Binding 0 has the params.
    pub fn range(&self, binding: usize) -> Range<usize> {
        match binding {
            0 => 0..self.call.params.len(),
            n => self.call.bindings[n - 1].bytes.clone(),
        }
    }

    pub fn buffer(&self, binding: usize) -> &[u8] {
        match binding {
            0 => &self.call.params,
            n => &self.space.buffers[self.call.bindings[n - 1].buffer],
        }
    }

    pub fn buffer_mut(&mut self, binding: usize) -> &mut [u8] {
        &mut self.space.buffers[self.call.bindings[binding - 1].buffer]
    }

    /// Takes steps from those that are left.
    pub fn spend(&mut self, steps: u64) -> anyhow::Result<()> {
        ensure!(self.fuel >= steps, Finding::Endless);
        self.fuel -= steps;
        Ok(())
    }

    /// Calls a function in the invocations of `mask`, and returns its result.
    pub fn call_function(
        &mut self,
        body: &'a Body<'a>,
        arguments: Vec<Item>,
        mask: &mut Mask,
    ) -> anyhow::Result<Option<Value>> {
        let (locals, lanes) = (self.locals.len(), mask.lanes());
        let items = vec![None; body.of.len()];
        let mut frame = Frame { body, items, arguments, locals, result: None };
        for (_, local) in body.function.local_variables.iter() {
            let value = match local.init {
                Some(init) => (*self.value(&mut frame, init)?).clone(),
                None => Value::zeros(
                    self.program.types.scalars(self.program.module, &self.program.module.types[local.ty].inner)?,
                ),
            };
            self.locals.push(value);
        }
        let (mut breaks, mut continues) = (Mask::none(lanes), Mask::none(lanes));
        let mut within = mask.clone();
        self.block(&mut frame, &body.function.body, &mut within, &mut breaks, &mut continues)?;
        self.locals.truncate(locals);
        Ok(frame.result)
    }

    /// The result of an expression that is a value.
    pub fn value(&mut self, frame: &mut Frame<'a>, of: Handle<Expression>) -> anyhow::Result<Rc<Value>> {
        match self.item(frame, of)? {
            Item::Value(value) => Ok(value),
            Item::Pointer(_) => bail!("a pointer instead of a value"),
        }
    }

    pub fn pointer(&mut self, frame: &mut Frame<'a>, of: Handle<Expression>) -> anyhow::Result<Pointer> {
        match self.item(frame, of)? {
            Item::Pointer(pointer) => Ok(pointer),
            Item::Value(_) => bail!("a value instead of a pointer"),
        }
    }

    /// The result of an expression. Statements evaluate most of them; constants, arguments and
    /// variables are evaluated when they are first needed.
    pub fn item(&mut self, frame: &mut Frame<'a>, of: Handle<Expression>) -> anyhow::Result<Item> {
        if let Some(item) = &frame.items[of.index()] {
            return Ok(item.clone());
        }
        let expression = &frame.body.function.expressions[of];
        let constant = expression.needs_pre_emit();
        // naga emits no pointers that only matrices go through.
        let pure = matches!(
            expression,
            Expression::Compose { .. }
                | Expression::Splat { .. }
                | Expression::Access { .. }
                | Expression::AccessIndex { .. }
        );
        ensure!(constant || pure, "{expression:?} before it is made");
        let item = self.evaluate(frame, of, &Mask::full(self.program.lanes))?;
        if constant {
            frame.items[of.index()] = Some(item.clone());
        }
        Ok(item)
    }

    /// The arguments of the entry point.
    fn builtins(&self) -> anyhow::Result<Vec<Item>> {
        let entry = &self.program.module.entry_points[0];
        let (lanes, size, [wx, wy, _]) =
            (self.program.lanes as u32, self.program.types.subgroup as u32, entry.workgroup_size);
        let each = |of: &dyn Fn(u32) -> u32| Value::of_lanes((0..lanes).map(of).collect());
        let local = |axis: usize, lane: u32| [lane % wx, lane / wx % wy, lane / wx / wy][axis];
        let argument = |binding: &Binding| {
            let Binding::BuiltIn(builtin) = binding else { bail!("{binding:?} of an entry point") };
            Ok(Item::Value(Rc::new(match builtin {
                BuiltIn::LocalInvocationIndex => each(&|lane| lane),
                BuiltIn::LocalInvocationId => {
                    Value::joined([0, 1, 2].map(|axis| each(&|lane| local(axis, lane))).iter())
                }
                BuiltIn::GlobalInvocationId => {
                    let of = |axis: usize, lane| self.id[axis] * entry.workgroup_size[axis] + local(axis, lane);
                    Value::joined([0, 1, 2].map(|axis| each(&|lane| of(axis, lane))).iter())
                }
                BuiltIn::WorkGroupId => Value::shared(self.id.to_vec()),
                BuiltIn::NumWorkGroups => Value::shared(self.call.grid.to_vec()),
                BuiltIn::SubgroupId => each(&|lane| lane / size),
                BuiltIn::SubgroupInvocationId => each(&|lane| lane % size),
                BuiltIn::SubgroupSize => Value::shared(vec![size]),
                BuiltIn::NumSubgroups => Value::shared(vec![lanes.div_ceil(size)]),
                other => bail!("the builtin {other:?} is not interpreted"),
            })))
        };
        entry
            .function
            .arguments
            .iter()
            .map(|of| argument(of.binding.as_ref().context("an argument without a binding")?))
            .collect()
    }

    /// A pointer to the start of a variable.
    pub fn start(root: Root, at: usize) -> Item {
        Item::Pointer(Pointer { root, at: Rc::new(Value::shared(vec![at as u32])) })
    }
}
