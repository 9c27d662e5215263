//! Several sequences that share every step.

use crate::adapter::Adapters;
use crate::cancel::Cancel;
use crate::error::Failure;
use crate::json;
use crate::model::Model;
use crate::options::{self, Draws};
use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// Several sequences of one model, each with tokens, keys and values of its own.
#[wasm_bindgen]
pub struct Batch {
    batch: model::Batch,
}

#[wasm_bindgen]
impl Model {
    /// A batch of `sequences` sequences.
    pub async fn batch(&self, options: JsValue) -> Result<Batch, Failure> {
        let options = json::read::<options::Session>(&options, "options")?.options(&self.limits)?;
        let of_sessions = [("shift", options.shift.is_some()), ("taps", !options.plan.taps.is_empty())];
        if let Some((name, _)) = of_sessions.iter().find(|(_, given)| *given) {
            return Err(Failure::new("bad-options", format!("{name}: a batch has none; `model.session` takes it")));
        }
        Ok(Batch { batch: self.model.batch_async(options).await? })
    }
}

#[wasm_bindgen]
impl Batch {
    /// Context length of each sequence in tokens.
    #[wasm_bindgen(getter)]
    pub fn context(&self) -> usize {
        self.batch.context()
    }

    /// Number of sequences.
    #[wasm_bindgen(getter)]
    pub fn sequences(&self) -> u32 {
        self.batch.sequences()
    }

    /// The ids of a sequence so far.
    pub fn tokens(&self, sequence: u32) -> Result<Vec<u32>, Failure> {
        Ok(self.batch.tokens(self.known(sequence)?).to_vec())
    }

    /// Appends ids to a sequence. The next step evaluates them.
    pub fn feed(&mut self, sequence: u32, ids: Vec<u32>) -> Result<(), Failure> {
        Ok(self.batch.feed(self.known(sequence)?, &ids)?)
    }

    /// Forgets all tokens of a sequence after the first `tokens`.
    pub fn rollback(&mut self, sequence: u32, tokens: usize) -> Result<(), Failure> {
        self.batch.rollback(self.known(sequence)?, tokens);
        Ok(())
    }

    /// Evaluates what was fed, and draws a token for each sequence that is not empty and has room:
    /// `Drawn[]`.
    pub async fn step(&mut self, sampling: JsValue, cancel: &Cancel) -> Result<JsValue, Failure> {
        let samplings = json::read::<Draws>(&sampling, "sampling")?.samplings();
        let _guard = cancel.sets(&self.batch.cancel_flag());
        let drawn = self.batch.step_async(&samplings).await?;
        let token =
            |drawn: &model::Drawn| json!({ "sequence": drawn.sequence, "id": drawn.id, "logProb": drawn.log_prob });
        Ok(json::write(&drawn.iter().map(token).collect::<Vec<Value>>()))
    }

    /// Replaces the adapters in force.
    #[wasm_bindgen(js_name = setAdapters)]
    pub fn set_adapters(&mut self, adapters: &Adapters) -> Result<(), Failure> {
        Ok(self.batch.set_adapters(adapters.0.clone())?)
    }

    /// Goes on with another handle of the same model, after its device was lost, and with adapters
    /// that were loaded beside it.
    #[wasm_bindgen(js_name = moveTo)]
    pub async fn move_to(&mut self, model: &Model, adapters: &Adapters) -> Result<(), Failure> {
        Ok(self.batch.move_to_async(&model.model, adapters.0.clone()).await?)
    }
}

impl Batch {
    /// The number of a sequence that is there.
    fn known(&self, sequence: u32) -> Result<u32, Failure> {
        let sequences = self.batch.sequences();
        if sequence < sequences {
            return Ok(sequence);
        }
        let message = format!("there is no sequence {sequence}; the batch has {sequences}, numbered from 0");
        Err(Failure::new("bad-options", message))
    }
}
