//! Finds the operation of a step that first makes a value that is not finite.

use super::cpu::CpuPlan;
use super::gpu::GpuPlan;
use super::plan::{Compiled, Plan};
use super::watch::Watch;
use crate::error::Error;
use crate::exec::states::States;
use crate::graph::input::StepInput;
use crate::graph::operation::Operation;
use crate::graph::tensor::{Element, Tensor};
use half::f16;
use std::fmt;

/// The operation whose results are the first that are not finite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFinite {
    /// The kernels of the operation; on the CPU the name of the operation.
    pub operation: String,
    pub layer: Option<u32>,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)?;
        self.layer.map_or(Ok(()), |layer| write!(f, " in layer {layer}"))
    }
}

impl Plan {
    /// Runs a step as [`Plan::run_async`] does, one operation at a time, up to the first one that
    /// makes a value that is not finite. None if there is none.
    ///
    /// # Errors
    /// As [`Plan::run_async`].
    pub async fn first_not_finite_async(
        &mut self,
        states: &mut States,
        input: &StepInput,
    ) -> Result<Option<NotFinite>, Error> {
        match &mut self.0 {
            Compiled::Gpu(plan) => plan.first_not_finite(states, input).await,
            Compiled::Cpu(plan) => plan.first_not_finite(states, input).await,
        }
    }
}

impl GpuPlan {
    async fn first_not_finite(&mut self, states: &States, input: &StepInput) -> Result<Option<NotFinite>, Error> {
        self.prepare(states, input).await?;
        for node in self.planned().nodes.clone() {
            let steps: Vec<usize> =
                node.dispatches.filter(|&at| self.planned().dispatches[at].dispatch.when.holds(input)).collect();
            let placed = |t: &Tensor| self.planned().placement.slots.contains_key(&t.id);
            let results = steps.first().map_or_else(Vec::new, |&at| self.planned().dispatches[at].op.io().writes);
            let results: Vec<Tensor> = results.into_iter().filter(placed).collect();
            let [_, values] = self.run_steps(&steps, input, &[], &results).await?;
            if results.iter().zip(&values).any(|(t, words)| !finite(*t, words)) {
                let kernels: Vec<String> =
                    steps.iter().map(|&at| self.planned().dispatches[at].shader.label()).collect();
                return Ok(Some(NotFinite { operation: kernels.join(" + "), layer: node.stage.layer }));
            }
        }
        Ok(None)
    }
}

impl CpuPlan {
    async fn first_not_finite(&mut self, states: &mut States, input: &StepInput) -> Result<Option<NotFinite>, Error> {
        let mut first = None;
        self.run_each(states, input, Watch::default(), &mut |host, node| {
            let results = node.op.io().writes;
            if first.is_none() && results.iter().any(|t| !finite(*t, host.u32(*t))) {
                first = Some(NotFinite { operation: node.op.name().to_string(), layer: node.stage.layer });
            }
        })
        .await?;
        Ok(first)
    }
}

/// Whether all numbers of a tensor are finite. Ids are always finite.
fn finite(t: Tensor, words: &[u32]) -> bool {
    let half = |bits: u32| f16::from_bits(bits as u16).is_finite();
    match t.element {
        Element::U32 => true,
        Element::F32 => words.iter().all(|word| f32::from_bits(*word).is_finite()),
        Element::F16 => words.iter().all(|word| half(*word) && half(word >> 16)),
        // Two thirds of a row are quants, and the rest f32.
        Element::Q8 => {
            let width = t.shape.width() as usize;
            words
                .chunks_exact(width)
                .all(|row| row[width / 3 * 2..].iter().all(|word| f32::from_bits(*word).is_finite()))
        }
    }
}
