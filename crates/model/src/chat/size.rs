//! What a value takes when it is printed, copied or compared.

use minijinja::value::{DynObject, ObjectRepr};
use minijinja::{Error, Value};

use super::limits::{Budget, LEVELS, TOO_NESTED};
use super::refusal::refused;

/// Bytes of an element of a list, and of an entry of a mapping.
pub(super) const ELEMENT_BYTES: u64 = 96;
/// Characters that one inside a quoted text may take: `\u{1}`.
pub(super) const QUOTED: u64 = 6;
/// Levels that a filter may put around its operand, as `groupby` does.
const WRAPS: usize = 2;

/// What a value takes when it is printed or copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub nodes: u64,
    pub bytes: u64,
    pub levels: u64,
    /// Bytes of the longest text.
    pub longest: u64,
}

impl Size {
    pub fn and(self, other: Size) -> Size {
        Size {
            nodes: self.nodes.saturating_add(other.nodes),
            bytes: self.bytes.saturating_add(other.bytes),
            levels: self.levels.max(other.levels),
            longest: self.longest.max(other.longest),
        }
    }

    /// Bytes of a copy, or of the printed value.
    pub fn copy(self) -> u64 {
        self.bytes.saturating_add(self.nodes.saturating_mul(ELEMENT_BYTES))
    }
}

pub(super) fn object(value: &Value) -> Option<&DynObject> {
    value.as_object()
}

pub(super) fn is(value: &Value, name: &str) -> bool {
    object(value).is_some_and(|object| object.type_name().ends_with(name))
}

pub(super) fn is_loop(value: &Value) -> bool {
    is(value, "::Loop")
}

pub(super) fn text_bytes(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64)
}

/// Elements at the top of a value.
pub(super) fn elements(value: &Value) -> u64 {
    value.len().unwrap_or(0) as u64
}

/// Walks all of a value, as printing, comparing or serializing it would. Every visit is counted, so
/// a list of two lists of two lists, forty levels deep, ends here and not there.
///
/// # Errors
/// Values nested too deep, those that hold themselves among them; a loop where a value stands,
/// which would keep every loop alive.
pub(super) fn size(budget: &Budget, value: &Value) -> Result<Size, Error> {
    walk(budget, value, 0)
}

fn walk(budget: &Budget, value: &Value, level: usize) -> Result<Size, Error> {
    if level + WRAPS > LEVELS {
        return Err(TOO_NESTED.into());
    }
    let quoted = if level == 0 { 1 } else { QUOTED };
    let leaf = |bytes: usize, longest: usize| Size {
        nodes: 1,
        bytes: (bytes as u64).saturating_mul(quoted) + 2,
        levels: 0,
        longest: longest as u64,
    };
    budget.work(1)?;
    if let Some(text) = value.as_str() {
        return Ok(leaf(text.len(), text.len()));
    }
    let Some(inner) = object(value) else {
        // Digits of the largest float; bytes are printed escaped.
        return Ok(leaf(value.as_bytes().map_or(330, <[u8]>::len), 0));
    };
    if is_loop(value) {
        return Err(refused("the variable loop as a value"));
    }
    // A namespace alone can change after it was counted. Within a value it could come to hold that
    // value: a circle, which is never freed.
    if level > 0 && is(value, "::Namespace") {
        return Err(refused("a namespace within a value"));
    }
    let mut all = Size { nodes: 1, bytes: 4, ..Size::default() };
    match inner.repr() {
        ObjectRepr::Seq | ObjectRepr::Iterable => {
            for item in value.try_iter()? {
                all = all.and(walk(budget, &item, level + 1)?);
                all.bytes = all.bytes.saturating_add(2);
            }
        }
        ObjectRepr::Map => {
            for key in value.try_iter()? {
                // The engine hashes a key to find its item, and recurses over it without a bound.
                // So the key is walked first, and counts again for each map that it is a key of.
                let size = walk(budget, &key, level + 1)?;
                budget.work(size.nodes)?;
                let item = value.get_item(&key)?;
                all = all.and(size).and(walk(budget, &item, level + 1)?);
                all.bytes = all.bytes.saturating_add(4);
            }
        }
        // A function, a macro, a cycler: what it prints is its name.
        _ => all.bytes = value.to_string().len() as u64,
    }
    Ok(Size { levels: all.levels + 1, ..all })
}

/// The sizes of `values` together.
pub(super) fn all(budget: &Budget, values: &[Value]) -> Result<Size, Error> {
    values.iter().try_fold(Size::default(), |so_far, value| Ok(so_far.and(size(budget, value)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::value::{Enumerator, Object};
    use std::sync::{Arc, Mutex};

    /// A map whose keys change after it was made, as those of no template's value do.
    #[derive(Debug)]
    struct Changing(Mutex<Vec<Value>>);

    impl Object for Changing {
        fn get_value(self: &Arc<Self>, _key: &Value) -> Option<Value> {
            Some(Value::from(1))
        }

        fn enumerate(self: &Arc<Self>) -> Enumerator {
            Enumerator::Values(self.0.lock().unwrap().clone())
        }
    }

    #[test]
    fn a_map_that_is_a_key_of_its_own_key_is_refused_before_it_is_hashed() {
        let inner = Arc::new(Changing(Mutex::new(vec![])));
        let outer: Value = [(Value::from_dyn_object(inner.clone()), Value::from(1))].into_iter().collect();
        assert!(size(&Budget::default(), &outer).is_ok());
        inner.0.lock().unwrap().push(outer.clone());
        let error = size(&Budget::default(), &outer).unwrap_err();
        assert!(error.to_string().contains("64 levels"), "{error}");
    }

    #[test]
    fn a_key_counts_again_for_its_hash() {
        let map: Value = (0..100_000).map(|n| (Value::from(n), Value::from(1))).collect();
        let budget = Budget::default();
        size(&budget, &map).unwrap();
        // The map, and a key, its hash and an item for each entry: of 8 million.
        assert_eq!(budget.thousandths()[2], 300_001 * 1000 / 8_000_000);
    }
}
