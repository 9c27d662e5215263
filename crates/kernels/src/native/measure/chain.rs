//! Measures the time of one operation in a long chain, in which each waits for the previous one.

use super::{SAMPLE_SECONDS, Sizes, least, seconds};
use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::cuts::Submits;
use crate::exec::gpu::GpuPlan;
use crate::exec::states::States;
use crate::exec::weights::{TensorBytes, Weights};
use crate::exec::{Compiled, Watch};
use crate::graph::input::StepInput;
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Lead, Shape, Tensor};
use crate::language::Primitive;
use crate::ops;
use crate::plan::PlanOptions;
use crate::platform::block_on;
use gguf::GgmlType;
use std::sync::Arc;

/// A planned chain with its device and states.
struct Chain {
    device: Device,
    plan: Box<GpuPlan>,
    states: States,
    width: u32,
}

impl Chain {
    fn new(
        device: &Device,
        weights: &Arc<Weights>,
        shape: Shape,
        links: u32,
        op: &dyn Fn(&mut Recorder<Primitive>, Tensor) -> Tensor,
    ) -> Result<Self, Error> {
        let executor = Executor::Gpu(device.clone());
        let mut rec = Recorder::new(Counts { step: shape.rows, out: 1 }, &[]);
        let first = rec.host_input(0, shape);
        let last = (0..links).fold(first, |x, _| op(&mut rec, x));
        let row = ops::gather_rows(&mut rec, last);
        rec.output(row);
        let states = States::new(&executor, &[], 1, 1)?;
        match executor.plan(rec, weights, &PlanOptions::plain())?.0 {
            Compiled::Gpu(plan) => Ok(Self { device: device.clone(), plan, states, width: shape.width() }),
            Compiled::Cpu(_) => unreachable!("planned for a GPU"),
        }
    }

    /// Seconds of one run, without its preparation and read-back.
    fn seconds(&mut self, rows: u32) -> Result<f64, Error> {
        let all: Vec<u32> = (0..rows).collect();
        let host = vec![vec![0.5; (rows * self.width) as usize]];
        let input = StepInput {
            positions: all,
            sequences: vec![0; rows as usize],
            out_rows: vec![0],
            host,
            ..StepInput::default()
        };
        let encoder = block_on(self.plan.encode(&self.states, &input, Submits::Whole, Watch::default(), &mut ()))?;
        seconds(&self.device, encoder.finish())
    }
}

/// Seconds per link: the difference of two chains, divided by the difference in length, `links`.
fn per_link(one: &mut Chain, many: &mut Chain, rows: u32, links: u32) -> Result<f64, Error> {
    many.seconds(rows)?;
    let (one, many) = (least(|| one.seconds(rows))?, least(|| many.seconds(rows))?);
    Ok(((many - one) / f64::from(links)).max(1e-9))
}

/// Microseconds of a dispatch.
pub fn dispatch(device: &Device, sizes: &Sizes) -> Result<f64, Error> {
    let weights = Arc::new(Weights::new(&Executor::Gpu(device.clone())));
    let shape = Shape::new(Lead::Step, 1, 256);
    let chain = |links| Chain::new(device, &weights, shape, links, &|rec, x| ops::scale(rec, x, 1.0));
    Ok(1e6 * per_link(&mut chain(1)?, &mut chain(1 + sizes.dispatches)?, 1, sizes.dispatches)?)
}

/// Matrix products per chain.
const PRODUCTS: u32 = 4;

/// Rows of the first try. Its time limits the rows of the samples on a slow device.
const FEW_ROWS: u32 = 64;

/// 10^12 operations per second of a product with square f16 weights. The number of rows is as large
/// as the time of a sample allows.
pub fn matrix(device: &Device, sizes: &Sizes) -> Result<f64, Error> {
    let n = sizes.matrix;
    // Weights around 2^-6 with random signs and fractions keep the values small along the chain.
    let mut state = 1_u32;
    let mut half = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 16) as u16 & 0x83ff | 9 << 10).to_le_bytes()
    };
    let bytes: Vec<u8> = (0..n * n).flat_map(|_| half()).collect();
    let mut weights = Weights::new(&Executor::Gpu(device.clone()));
    let w = weights.matrix("a matrix", GgmlType::F16, n, n, &TensorBytes::Owned(bytes.into()))?;
    let weights = Arc::new(weights.load()?);
    let shape = Shape::new(Lead::Step, sizes.matrix_rows, n);
    let chain = |links| Chain::new(device, &weights, shape, links, &|rec, x| ops::matmul(rec, w, x));
    let (mut one, mut many) = (chain(1)?, chain(1 + PRODUCTS)?);
    one.seconds(FEW_ROWS)?;
    let rows = (SAMPLE_SECONDS / one.seconds(FEW_ROWS)?).max(1.0) as u32 * FEW_ROWS;
    let rows = rows.min(sizes.matrix_rows);
    let seconds = per_link(&mut one, &mut many, rows, PRODUCTS)?;
    Ok(2.0 * f64::from(rows) * f64::from(n) * f64::from(n) / seconds / 1e12)
}
