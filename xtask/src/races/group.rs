//! Operations of a whole subgroup: exchanges of values, and cooperative matrices.

use super::finding::Finding;
use super::machine::{Frame, Machine};
use super::math;
use super::memory::{By, Pointer, Root};
use super::program::Of;
use super::types::Kind;
use super::value::{Mask, Value};
use anyhow::{Context as _, bail, ensure};
use naga::{
    BinaryOperator, CollectiveOperation, CooperativeData, Expression, GatherMode, Handle, MathFunction,
    SubgroupOperation, TypeInner,
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
        for (subgroup, scalar) in
            (0..self.turns.len()).flat_map(|subgroup| (0..scalars).map(move |scalar| (subgroup, scalar)))
        {
            let lanes: Vec<usize> =
                (subgroup * size..mask.lanes().min((subgroup + 1) * size)).filter(|&lane| mask.has(lane)).collect();
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

    pub fn gather(
        &mut self,
        frame: &mut Frame<'a>,
        mode: &GatherMode,
        argument: Handle<Expression>,
        mask: &Mask,
    ) -> anyhow::Result<Value> {
        let value = self.value(frame, argument)?;
        let index = match mode {
            GatherMode::BroadcastFirst => None,
            GatherMode::Broadcast(of) | GatherMode::Shuffle(of) | GatherMode::ShuffleXor(of) => {
                Some(self.value(frame, *of)?)
            }
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
                GatherMode::BroadcastFirst => {
                    (first..first + size).position(|lane| mask.has(lane)).context("its own invocation")?
                }
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
            let of = &frame.body.of[data.pointer.index()];
            let words = match self.is_noted(tile.root) {
                false => self.read_unnoted(&tile, of.kind.context("a matrix of one type")?, columns * rows)?,
                true => (0..columns * rows)
                    .map(|element| self.read_element(of, &tile, element, subgroup))
                    .collect::<anyhow::Result<_>>()?,
            };
            put_elements(&mut value, subgroup, size, &words);
        }
        Ok(value)
    }

    /// The words of a tile. The loads are not noted as accesses.
    fn read_unnoted(&self, tile: &Tile, kind: Kind, elements: usize) -> anyhow::Result<Vec<u32>> {
        let scalars = (0..elements).map(|element| tile.scalar(element));
        match tile.root {
            Root::Words(end) => scalars.map(|scalar| Ok(self.words[self.word(tile.start + scalar, end)?])).collect(),
            Root::Buffer(binding) => {
                let (buffer, range, bytes) = (self.buffer(binding), self.range(binding), kind.bytes());
                let within = |at: usize| (at + bytes <= range.len()).then(|| kind.read(buffer, range.start + at));
                Ok(scalars.map(|scalar| within(tile.start + scalar * bytes).unwrap_or(0)).collect())
            }
            Root::Local(_) => bail!("a cooperative matrix in a variable"),
        }
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
            for (element, word) in
                elements(value, subgroup, self.program.types.subgroup, columns * rows).into_iter().enumerate()
            {
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
                elements(value, subgroup, size, count).into_iter().map(f32::from_bits).collect()
            };
            let (a, b, mut sums) = (floats(a, rows * inner), floats(b, inner * columns), floats(c, rows * columns));
            // The sums of a whole row grow at once. An element gets its additions in the order of
            // the columns of `a`.
            for (sums, a) in sums.chunks_exact_mut(columns).zip(a.chunks_exact(inner)) {
                for (a, b) in a.iter().zip(b.chunks_exact(columns)) {
                    sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
                }
            }
            let sums: Vec<u32> = sums.into_iter().map(|sum| kind.rounded(sum)).collect();
            put_elements(&mut result, subgroup, size, &sums);
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

    fn tile(
        &mut self,
        frame: &mut Frame<'a>,
        data: &CooperativeData,
        subgroup: usize,
        columns: usize,
    ) -> anyhow::Result<Tile> {
        let Pointer { root, at } = self.pointer(frame, data.pointer)?;
        let stride = self.value(frame, data.stride)?;
        let size = self.program.types.subgroup;
        let (first, rest) = (subgroup * size, subgroup * size..(subgroup + 1) * size);
        let (start, pitch) = (at.at(0, first), stride.at(0, first));
        let agreed = rest.into_iter().all(|lane| (at.at(0, lane), stride.at(0, lane)) == (start, pitch));
        ensure!(agreed, Finding::Unlike { at: self.at });
        let per = frame.body.of[data.pointer.index()].scalars;
        Ok(Tile { root, start: start as usize, pitch: pitch as usize * per, row_major: data.row_major, columns })
    }

    fn read_element(&mut self, of: &Of, tile: &Tile, element: usize, subgroup: usize) -> anyhow::Result<u32> {
        let (start, scalar, of) = self.scalar_of(tile, element, of)?;
        self.read(tile.root, start, scalar, of, By::Subgroup(subgroup))
    }

    /// The start of the vector that has an element, and the scalar within it.
    fn scalar_of<'b>(&self, tile: &Tile, element: usize, of: &'b Of) -> anyhow::Result<(usize, usize, &'b Of)> {
        let (scalar, per) = (tile.scalar(element), of.scalars);
        let bytes = match tile.root {
            Root::Buffer(_) => of.kind.context("a matrix of one type")?.bytes(),
            _ => 1,
        };
        Ok((tile.start + scalar / per * per * bytes, scalar % per, of))
    }
}

/// The words of a matrix that a subgroup of `size` invocations has. Element n is in invocation n
/// modulo their number.
fn elements(value: &Value, subgroup: usize, size: usize, count: usize) -> Vec<u32> {
    let (scalars, first) = (count.div_ceil(size), subgroup * size);
    let mut words: Vec<u32> = match value.lanes {
        1 => value.words[..scalars].iter().flat_map(|&word| std::iter::repeat_n(word, size)).collect(),
        lanes => {
            value.words.chunks_exact(lanes).take(scalars).flat_map(|of| &of[first..first + size]).copied().collect()
        }
    };
    words.truncate(count);
    words
}

fn put_elements(value: &mut Value, subgroup: usize, size: usize, words: &[u32]) {
    for (to, from) in value.words.chunks_exact_mut(value.lanes).zip(words.chunks(size)) {
        to[subgroup * size..][..from.len()].copy_from_slice(from);
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
