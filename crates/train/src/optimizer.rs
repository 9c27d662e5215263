//! The step of the optimizer, as a plan of its own: it runs once for each batch.

use crate::error::Error;
use crate::options::TrainerOptions;
use crate::parameters::Parameters;
use kernels::cpu_ref::AdamwSpec;
use kernels::ops::backward::{Moments, adamw, adamw_step, sum_squares};
use kernels::{Counts, Lead, Plan, PlanOptions, Recorder, Shape, State, States, StepInput, Watch};
use model::Model;

/// AdamW over all parameters, with the norm of all gradients together.
pub struct Optimizer {
    plan: Plan,
    spec: AdamwSpec,
}

impl Optimizer {
    /// Plans a step.
    pub async fn new(model: &Model, parameters: &Parameters, options: &TrainerOptions) -> Result<Self, Error> {
        let TrainerOptions { adamw: spec, decay_vectors, .. } = *options;
        let mut rec = Recorder::new(Counts { step: 1, out: 1 }, parameters.kinds());
        let words = adamw_step(&spec, 0.0, 0.0, 1).len() as u32;
        let step = rec.host_input(0, Shape::new(Lead::Fixed, 1, words));
        let all: Vec<(Moments, bool)> = parameters.moments(&rec).collect();
        let gradients: Vec<State> = all.iter().map(|(of, _)| of.gradient).collect();
        let squares = sum_squares(&mut rec, &gradients);
        for (of, is_vector) in all {
            let decay = if is_vector && !decay_vectors { 0.0 } else { spec.decay };
            adamw(&mut rec, AdamwSpec { decay, ..spec }, of, squares, step);
        }
        rec.output(squares);
        let plan = model.executor().plan_async(rec, model.weights(), &PlanOptions::training()).await?;
        Ok(Self { plan, spec })
    }

    /// Changes the parameters by their gradients in update `t`, the first of which is 1. Returns
    /// the squared norm of all gradients together. If it is no finite number, nothing changes.
    pub async fn step(&mut self, states: &mut States, rate: f64, most: Option<f64>, t: u32) -> Result<f32, Error> {
        let most = most.map_or(f32::MAX, |most| most as f32);
        let words = adamw_step(&self.spec, rate as f32, most, t).to_vec();
        let input = StepInput { positions: vec![0], sequences: vec![0], host: vec![words], ..StepInput::default() };
        // The run cannot be cancelled in the middle: either all parameters change or none does.
        let outputs = self.plan.run_async(states, &input, Watch::default()).await?.wait_async().await?;
        Ok(outputs.f32(0)[0])
    }
}
