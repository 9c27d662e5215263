//! Statements: invocations that take another way wait, as in hardware with masks.

use super::finding::Finding;
use super::machine::{Frame, Item, Machine};
use super::shadow::Act;
use super::value::{Mask, Value};
use anyhow::{bail, ensure};
use naga::{AtomicFunction, Barrier, Block, Expression, Handle, Statement, SwitchValue};
use std::rc::Rc;

impl<'a> Machine<'a> {
    /// Runs a block in the invocations of `mask`, and leaves those in it that go on behind it.
    /// `breaks` and `continues` get the invocations that leave the block for a loop.
    pub fn block(
        &mut self,
        frame: &mut Frame<'a>,
        block: &'a Block,
        mask: &mut Mask,
        breaks: &mut Mask,
        continues: &mut Mask,
    ) -> anyhow::Result<()> {
        for (statement, span) in block.span_iter() {
            if mask.is_empty() {
                break;
            }
            self.spend(1)?;
            if let Some(range) = span.to_range() {
                self.at = range.start as u32;
            }
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        self.spend(1)?;
                        let item = self.evaluate(frame, handle, mask)?;
                        frame.items[handle.index()] = Some(item);
                    }
                }
                Statement::Block(inner) => self.block(frame, inner, mask, breaks, continues)?,
                Statement::If { condition, accept, reject } => {
                    let condition = self.value(frame, *condition)?;
                    let mut rest = mask.and(|lane| condition.at(0, lane) == 0);
                    *mask = mask.and(|lane| condition.at(0, lane) != 0);
                    self.block(frame, accept, mask, breaks, continues)?;
                    self.block(frame, reject, &mut rest, breaks, continues)?;
                    mask.join(&rest);
                }
                Statement::Switch { selector, cases } => {
                    let selector = self.value(frame, *selector)?;
                    let literal = |value| match value {
                        SwitchValue::I32(value) => Some(value as u32),
                        SwitchValue::U32(value) => Some(value),
                        SwitchValue::Default => None,
                    };
                    let named =
                        |lane: usize| cases.iter().any(|case| literal(case.value) == Some(selector.at(0, lane)));
                    let (all, mut past, mut fallen) =
                        (mask.clone(), Mask::none(mask.lanes()), Mask::none(mask.lanes()));
                    for case in cases {
                        let takes =
                            |lane| literal(case.value).map_or(!named(lane), |value| value == selector.at(0, lane));
                        let mut taken = all.and(takes);
                        taken.join(&fallen);
                        fallen.clear();
                        // A break within a switch leaves the switch.
                        let mut left = Mask::none(mask.lanes());
                        self.block(frame, &case.body, &mut taken, &mut left, continues)?;
                        past.join(&left);
                        if case.fall_through { &mut fallen } else { &mut past }.join(&taken);
                    }
                    *mask = past;
                }
                Statement::Loop { body, continuing, break_if } => {
                    self.repeat(frame, body, continuing, *break_if, mask)?
                }
                Statement::Break => {
                    breaks.join(mask);
                    mask.clear();
                }
                Statement::Continue => {
                    continues.join(mask);
                    mask.clear();
                }
                Statement::Return { value } => {
                    if let Some(value) = value {
                        let value = self.value(frame, *value)?;
                        match &mut frame.result {
                            Some(result) => result.put(0, &value, mask),
                            None => frame.result = Some((*value).clone()),
                        }
                    }
                    mask.clear();
                }
                other => self.act(frame, other, mask)?,
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        frame: &mut Frame<'a>,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
        mask: &mut Mask,
    ) -> anyhow::Result<()> {
        let lanes = mask.lanes();
        let (mut alive, mut past) = (mask.clone(), Mask::none(lanes));
        while !alive.is_empty() {
            self.spend(1)?;
            let mut again = Mask::none(lanes);
            self.block(frame, body, &mut alive, &mut past, &mut again)?;
            alive.join(&again);
            self.block(frame, continuing, &mut alive, &mut Mask::none(lanes), &mut Mask::none(lanes))?;
            if let Some(condition) = break_if.filter(|_| !alive.is_empty()) {
                let condition = self.value(frame, condition)?;
                past.join(&alive.and(|lane| condition.at(0, lane) != 0));
                alive = alive.and(|lane| condition.at(0, lane) == 0);
            }
        }
        *mask = past;
        Ok(())
    }

    /// A statement that changes no mask.
    fn act(&mut self, frame: &mut Frame<'a>, statement: &'a Statement, mask: &Mask) -> anyhow::Result<()> {
        match statement {
            Statement::ControlBarrier(flags) => self.barrier(*flags, mask)?,
            Statement::Store { pointer, value } => {
                let (to, value) = (self.pointer(frame, *pointer)?, self.value(frame, *value)?);
                self.store(&to, &frame.body.of[pointer.index()], &value, mask)?;
            }
            Statement::Atomic { pointer, fun, value, result } => {
                let (to, value) = (self.pointer(frame, *pointer)?, self.value(frame, *value)?);
                let mut before = Value { lanes: mask.lanes(), words: vec![0; mask.lanes()] };
                for lane in (0..mask.lanes()).filter(|&lane| mask.has(lane)) {
                    let given = value.at(0, lane);
                    before.words[lane] = match fun {
                        AtomicFunction::Add => self.update(&to, lane, Act::Add, |word| word.wrapping_add(given))?,
                        AtomicFunction::Exchange { compare: None } => self.update(&to, lane, Act::Write, |_| given)?,
                        other => bail!("the atomic function {other:?} is not interpreted"),
                    };
                }
                if let Some(result) = result {
                    frame.items[result.index()] = Some(Item::Value(Rc::new(before)));
                }
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.barrier(Barrier::WORK_GROUP, mask)?;
                let from = self.pointer(frame, *pointer)?;
                let value = self.load(&from, &frame.body.of[pointer.index()], mask)?;
                self.barrier(Barrier::WORK_GROUP, mask)?;
                frame.items[result.index()] = Some(Item::Value(Rc::new(value)));
            }
            Statement::Call { function, arguments, result } => {
                let arguments = arguments.iter().map(|of| self.item(frame, *of)).collect::<anyhow::Result<_>>()?;
                let value =
                    self.call_function(&self.program.functions[function.index()], arguments, &mut mask.clone())?;
                if let (Some(result), Some(value)) = (result, value) {
                    frame.items[result.index()] = Some(Item::Value(Rc::new(value)));
                }
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let value = self.collective(frame, *op, *collective_op, *argument, mask)?;
                frame.items[result.index()] = Some(Item::Value(Rc::new(value)));
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let value = self.gather(frame, mode, *argument, mask)?;
                frame.items[result.index()] = Some(Item::Value(Rc::new(value)));
            }
            Statement::CooperativeStore { target, data } => {
                let value = self.value(frame, *target)?;
                self.matrix_store(frame, *target, &value, data, mask)?;
            }
            other => bail!("the statement {other:?} is not interpreted"),
        }
        Ok(())
    }

    fn barrier(&mut self, flags: Barrier, mask: &Mask) -> anyhow::Result<()> {
        if flags == Barrier::WORK_GROUP {
            ensure!(mask.all(), Finding::Apart { at: self.at });
            self.era += 1;
            return Ok(());
        }
        ensure!(flags == Barrier::SUB_GROUP, "the barrier {flags:?} is not interpreted");
        for subgroup in 0..self.turns.len() {
            let taking = mask.of_subgroup(subgroup, self.program.types.subgroup);
            let some = taking.iter().any(|&on| on);
            ensure!(!some || taking.iter().all(|&on| on), Finding::Apart { at: self.at });
            self.turns[subgroup] += u32::from(some);
        }
        Ok(())
    }
}
