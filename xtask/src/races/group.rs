//! Operations of a whole subgroup: exchanges of values, and cooperative matrices.

use super::finding::Finding;
use super::machine::{Frame, Machine};
use super::math;
use super::memory::{By, Pointer, Root};
use super::types::Kind;
use super::value::{Mask, Value};
use anyhow::{Context as _, bail, ensure};
use naga::{
    BinaryOperator, CollectiveOperation, CooperativeData, Expression, GatherMode, Handle, MathFunction, SubgroupOperation, TypeInner,
};

/// A matrix on its way between memory and invocations.
struct Tile {
    root: Root,
    start: usize,
    /// Scalars between two rows, or between two columns.
    pitch: usize,
    row_major: bool,
    columns: usize,
}

impl Tile {
    /// The scalar of an element, counted from the start.
    fn scalar(&self, element: usize) -> usize {
        let (row, column) = (element / self.columns, element % self.columns);
        if self.row_major { row * self.pitch + column } else { column * self.pitch + row }
    }
}

impl<'a> Machine<'a> {
    pub fn collective(
        &mut self,
        frame: &mut Frame<'a>,
        op: SubgroupOperation,
        how: CollectiveOperation,
        argument: Handle<Expression>,
        mask: &Mask,
    ) -> anyhow::Result<Value> {
        let (kind, value) = (self.kind(frame, argument)?, self.value(frame, argument)?);
        let scalars = value.scalars();
        let mut result = Value { lanes: mask.lanes(), words: vec![0; scalars * mask.lanes()] };
        let size = self.program.types.subgroup;
        for (subgroup, scalar) in (0..self.turns.len()).flat_map(|subgroup| (0..scalars).map(move |scalar| (subgroup, scalar))) {
            let lanes: Vec<usize> = (subgroup * size..mask.lanes().min((subgroup + 1) * size)).filter(|&lane| mask.has(lane)).collect();
            let mut so_far = None;
            for &lane in &lanes {
                let before = so_far;
                let own = value.at(scalar, lane);
                let now = before.map_or(Ok(own), |before| combined(op, kind, before, own))?;
                so_far = Some(now);
                result.words[scalar * mask.lanes() + lane] = match how {
                    CollectiveOperation::ExclusiveScan => before.unwrap_or(0),
                    _ => now,
                };
            }
            if let (CollectiveOperation::Reduce, Some(all)) = (how, so_far) {
                lanes.iter().for_each(|lane| result.words[scalar * mask.lanes() + lane] = all);
            }
        }
        Ok(result)
    }

    pub fn gather(&mut self, frame: &mut Frame<'a>, mode: &GatherMode, argument: Handle<Expression>, mask: &Mask) -> anyhow::Result<Value> {
        let value = self.value(frame, argument)?;
        let index = match mode {
            GatherMode::BroadcastFirst => None,
            GatherMode::Broadcast(of) | GatherMode::Shuffle(of) | GatherMode::ShuffleXor(of) => Some(self.value(frame, *of)?),
            GatherMode::ShuffleDown(of) | GatherMode::ShuffleUp(of) => Some(self.value(frame, *of)?),
            other => bail!("the exchange {other:?} is not interpreted"),
        };
        let (size, lanes, scalars) = (self.program.types.subgroup, mask.lanes(), value.scalars());
        let mut result = Value { lanes, words: vec![0; scalars * lanes] };
        for lane in (0..lanes).filter(|&lane| mask.has(lane)) {
            let (first, own) = (lane / size * size, lane % size);
            let given = index.as_ref().map_or(0, |index| index.at(0, lane) as usize);
            let from = match mode {
                GatherMode::ShuffleXor(_) => own ^ given,
                GatherMode::ShuffleDown(_) => own + given,
                GatherMode::ShuffleUp(_) => own.checked_sub(given).unwrap_or(size),
                GatherMode::BroadcastFirst => (first..first + size).position(|lane| mask.has(lane)).context("its own invocation")?,
                _ => given,
            };
            let takes_part = from < size && first + from < lanes && mask.has(first + from);
            ensure!(takes_part, Finding::Outside { what: "a subgroup".to_string(), at: self.at });
            (0..scalars).for_each(|n| result.words[n * lanes + lane] = value.at(n, first + from));
        }
        Ok(result)
    }

    pub fn matrix_load(
        &mut self,
        frame: &mut Frame<'a>,
        columns: usize,
        rows: usize,
        data: &CooperativeData,
        mask: &Mask,
    ) -> anyhow::Result<Value> {
        let size = self.program.types.subgroup;
        let (lanes, scalars) = (mask.lanes(), (columns * rows).div_ceil(size));
        let mut value = Value { lanes, words: vec![0; scalars * lanes] };
        for subgroup in self.taking_part(mask)? {
            let tile = self.tile(frame, data, subgroup, columns)?;
            for element in 0..columns * rows {
                let word = self.read_element(frame, data, &tile, element, subgroup)?;
                value.words[element / size * lanes + subgroup * size + element % size] = word;
            }
        }
        Ok(value)
    }

    pub fn matrix_store(
        &mut self,
        frame: &mut Frame<'a>,
        of: Handle<Expression>,
        value: &Value,
        data: &CooperativeData,
        mask: &Mask,
    ) -> anyhow::Result<()> {
        let (rows, columns) = extents(frame, of)?;
        for subgroup in self.taking_part(mask)? {
            let tile = self.tile(frame, data, subgroup, columns)?;
            for element in 0..columns * rows {
                let word = self.element(value, subgroup, element);
                let of = &frame.body.of[data.pointer.index()];
                let (start, scalar, of) = self.scalar_of(&tile, element, of)?;
                self.write(tile.root, start, scalar, of, word, By::Subgroup(subgroup))?;
            }
        }
        Ok(())
    }

    /// a b + c, in f32.
    pub fn multiply_add(
        &mut self,
        frame: &Frame<'a>,
        handles: [Handle<Expression>; 3],
        [a, b, c]: [&Value; 3],
        mask: &Mask,
    ) -> anyhow::Result<Value> {
        let ((rows, inner), (_, columns)) = (extents(frame, handles[0])?, extents(frame, handles[1])?);
        let kind = self.kind(frame, handles[2])?;
        let (size, lanes) = (self.program.types.subgroup, mask.lanes());
        let mut result = Value { lanes, words: vec![0; (rows * columns).div_ceil(size) * lanes] };
        for subgroup in self.taking_part(mask)? {
            let floats = |value: &Value, count: usize| -> Vec<f32> {
                (0..count).map(|element| f32::from_bits(self.element(value, subgroup, element))).collect()
            };
            let (a, b, c) = (floats(a, rows * inner), floats(b, inner * columns), floats(c, rows * columns));
            for (element, start) in c.into_iter().enumerate() {
                let (row, column) = (element / columns, element % columns);
                let sum = (0..inner).fold(start, |sum, n| sum + a[row * inner + n] * b[n * columns + column]);
                result.words[element / size * lanes + subgroup * size + element % size] = kind.rounded(sum);
            }
        }
        Ok(result)
    }

    /// The subgroups of a mask, which must have all their invocations in it.
    fn taking_part(&self, mask: &Mask) -> anyhow::Result<Vec<usize>> {
        let mut found = vec![];
        for subgroup in 0..self.turns.len() {
            let taking = mask.of_subgroup(subgroup, self.program.types.subgroup);
            let some = taking.iter().any(|&on| on);
            ensure!(!some || taking.iter().all(|&on| on), Finding::Apart { at: self.at });
            found.extend(some.then_some(subgroup));
        }
        Ok(found)
    }

    /// The word of an element. Element n is in invocation n modulo their number.
    fn element(&self, value: &Value, subgroup: usize, element: usize) -> u32 {
        let size = self.program.types.subgroup;
        value.at(element / size, subgroup * size + element % size)
    }

    fn tile(&mut self, frame: &mut Frame<'a>, data: &CooperativeData, subgroup: usize, columns: usize) -> anyhow::Result<Tile> {
        let Pointer { root, at } = self.pointer(frame, data.pointer)?;
        let stride = self.value(frame, data.stride)?;
        let size = self.program.types.subgroup;
        let (first, rest) = (subgroup * size, subgroup * size..(subgroup + 1) * size);
        let (start, pitch) = (at.at(0, first), stride.at(0, first));
        let agreed = rest.into_iter().all(|lane| (at.at(0, lane), stride.at(0, lane)) == (start, pitch));
        ensure!(agreed, "a matrix at places that the invocations of a subgroup do not share");
        let per = frame.body.of[data.pointer.index()].scalars;
        Ok(Tile { root, start: start as usize, pitch: pitch as usize * per, row_major: data.row_major, columns })
    }

    fn read_element(
        &mut self,
        frame: &Frame<'a>,
        data: &CooperativeData,
        tile: &Tile,
        element: usize,
        subgroup: usize,
    ) -> anyhow::Result<u32> {
        let of = &frame.body.of[data.pointer.index()];
        let (start, scalar, of) = self.scalar_of(tile, element, of)?;
        self.read(tile.root, start, scalar, of, By::Subgroup(subgroup))
    }

    /// The start of the vector that has an element, and the scalar within it.
    fn scalar_of<'b>(
        &self,
        tile: &Tile,
        element: usize,
        of: &'b super::program::Of,
    ) -> anyhow::Result<(usize, usize, &'b super::program::Of)> {
        let (scalar, per) = (tile.scalar(element), of.scalars);
        let bytes = match tile.root {
            Root::Buffer(_) => of.kind.context("a matrix of one type")?.bytes(),
            _ => 1,
        };
        Ok((tile.start + scalar / per * per * bytes, scalar % per, of))
    }
}

/// Rows and columns of a matrix.
fn extents(frame: &Frame<'_>, of: Handle<Expression>) -> anyhow::Result<(usize, usize)> {
    match frame.body.of[of.index()].inner {
        TypeInner::CooperativeMatrix { columns, rows, .. } => Ok((rows as usize, columns as usize)),
        ref other => bail!("{other:?} instead of a cooperative matrix"),
    }
}

fn combined(op: SubgroupOperation, kind: Kind, a: u32, b: u32) -> anyhow::Result<u32> {
    let (a, b) = (Value::shared(vec![a]), Value::shared(vec![b]));
    let of = |op| math::binary(op, kind, &a, &b);
    let value = match op {
        SubgroupOperation::All | SubgroupOperation::And => of(BinaryOperator::And),
        SubgroupOperation::Any | SubgroupOperation::Or => of(BinaryOperator::InclusiveOr),
        SubgroupOperation::Xor => of(BinaryOperator::ExclusiveOr),
        SubgroupOperation::Add => of(BinaryOperator::Add),
        SubgroupOperation::Mul => of(BinaryOperator::Multiply),
        SubgroupOperation::Min => math::call(MathFunction::Min, kind, &[&a, &b])?,
        SubgroupOperation::Max => math::call(MathFunction::Max, kind, &[&a, &b])?,
    };
    Ok(value.words[0])
}
