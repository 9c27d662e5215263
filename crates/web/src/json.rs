//! Objects of JavaScript as JSON, in both directions.

use crate::error::Failure;
use js_sys::JSON;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

/// Reads an object of JavaScript. `what` names it in errors.
pub fn read<T: DeserializeOwned>(value: &JsValue, what: &str) -> Result<T, Failure> {
    let bad = |reason: String| Failure::new("bad-options", format!("{what}: {reason}"));
    let text = JSON::stringify(value).ok().and_then(|text| text.as_string());
    let text = text.ok_or_else(|| bad("this is not an object that JSON can have".to_string()))?;
    serde_json::from_str(&text).map_err(|error| bad(error.to_string()))
}

/// Makes an object of JavaScript. Whole numbers above 2^53 lose digits.
pub fn write(value: &impl Serialize) -> JsValue {
    let text = serde_json::to_string(value).unwrap_or_default();
    JSON::parse(&text).unwrap_or(JsValue::NULL)
}

/// Sets a field of an object.
pub fn set(object: &JsValue, key: &str, value: &JsValue) {
    // Only frozen objects and proxies refuse a field.
    let _ = js_sys::Reflect::set(object, &JsValue::from_str(key), value);
}

/// A field of an object; `undefined` if it has none.
pub fn get(object: &JsValue, key: &str) -> JsValue {
    js_sys::Reflect::get(object, &JsValue::from_str(key)).unwrap_or(JsValue::UNDEFINED)
}

/// The bytes of a field that is a `Uint8Array`.
pub fn bytes(object: &JsValue, key: &str) -> Option<Vec<u8>> {
    get(object, key).dyn_into::<js_sys::Uint8Array>().ok().map(|bytes| bytes.to_vec())
}
