//! SHA-256 of a download, whose state survives a closed page.

use crate::error::Failure;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest, Sha256};
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
pub struct Hasher(Sha256);

#[wasm_bindgen]
impl Hasher {
    /// A new hash, or one that goes on from a state.
    #[wasm_bindgen(constructor)]
    pub fn new(state: Option<Vec<u8>>) -> Result<Hasher, Failure> {
        let Some(bytes) = state else { return Ok(Self(Sha256::new())) };
        let bad = || Failure::new("bad-options", "these bytes are not the state of a hash");
        let state = SerializedState::<Sha256>::try_from(bytes.as_slice()).map_err(|_| bad())?;
        Sha256::deserialize(&state).map(Self).map_err(|_| bad())
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The state after all bytes so far.
    pub fn state(&self) -> Vec<u8> {
        self.0.serialize().to_vec()
    }

    /// The digest of all bytes so far, in hexadecimal digits.
    pub fn digest(&self) -> String {
        hex(&self.0.clone().finalize())
    }
}

/// Hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
