//! Compiled pipelines as bytes, so that the next process does not compile them again. The caller
//! stores the bytes.

use crate::device::Device;
use std::sync::PoisonError;

/// The first bytes of the format. The checksum of the rest, the length of the key, the key, and the
/// driver's data follow.
const MAGIC: &[u8; 8] = b"weftpipe";

const HEADER_BYTES: usize = 8 + 8 + 4;

/// Largest size to save or restore. Drivers never remove old entries, so a larger cache starts
/// empty again.
const MOST_BYTES: usize = 64 << 20;

/// The driver's cache of compiled pipelines.
pub(crate) struct Kept {
    pub cache: wgpu::PipelineCache,
    /// Number of bytes that the cache was restored from.
    restored: usize,
}

/// FNV-1a. It detects truncated or damaged files, not deliberate changes.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn seal(key: &str, data: &[u8]) -> Vec<u8> {
    let mut rest = (key.len() as u32).to_le_bytes().to_vec();
    rest.extend_from_slice(key.as_bytes());
    rest.extend_from_slice(data);
    [MAGIC.as_slice(), &checksum(&rest).to_le_bytes(), &rest].concat()
}

/// The driver's data, if the bytes are complete and were made for this key.
fn unseal<'a>(key: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    if bytes.len() > MOST_BYTES || checksum(rest) != u64::from_le_bytes(*sum) {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (found, data) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (found == key.as_bytes()).then_some(data)
}

impl Device {
    /// Identifies this adapter, its driver and this version of the crate. Saved data is valid for
    /// one key only.
    #[must_use]
    pub fn key(&self) -> String {
        let crate::AdapterSummary { name, backend, driver, .. } = self.adapter();
        let (vendor, device) = self.0.ids;
        format!("weft {} {backend} {vendor:04x}:{device:04x} {name}, {driver}", env!("CARGO_PKG_VERSION"))
    }

    /// The key as a short file name: the adapter's name and a hash.
    #[must_use]
    pub fn key_name(&self) -> String {
        self.short_name(&self.key())
    }

    /// Any key of this device as a short file name.
    pub(crate) fn short_name(&self, key: &str) -> String {
        let words = self.adapter().name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(40).collect();
        format!("{name}-{:016x}", checksum(key.as_bytes()))
    }

    /// Starts to cache the pipelines that this device builds. The cache starts with the bytes from
    /// [`Device::saved_pipelines`] of an earlier process. Returns whether these bytes are used:
    /// damaged bytes, or bytes of another [`Device::key`], are ignored.
    pub fn restore_pipelines(&self, saved: Option<&[u8]>) -> bool {
        if !self.0.features.contains(wgpu::Features::PIPELINE_CACHE) {
            return false;
        }
        let data = saved.and_then(|bytes| unseal(&self.key(), bytes));
        let descriptor = wgpu::PipelineCacheDescriptor { label: Some("weft"), data, fallback: true };
        // SAFETY: the checksum shows that `saved_pipelines` made these bytes. The key shows that it
        // made them for this adapter and driver, which wgpu and the driver check again.
        let cache = unsafe { self.0.device.create_pipeline_cache(&descriptor) };
        let restored = data.map_or(0, <[u8]>::len);
        *self.0.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept { cache, restored });
        restored > 0
    }

    /// The bytes to restore next time. None if this device has no pipeline cache, or the cache has
    /// nothing new, or it is too large.
    #[must_use]
    pub fn saved_pipelines(&self) -> Option<Vec<u8>> {
        let kept = self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref()?;
        let data = kept.cache.get_data()?;
        let sealed = || seal(&self.key(), &data);
        (data.len() != kept.restored && data.len() + HEADER_BYTES <= MOST_BYTES).then(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_bytes_of_the_same_key_are_opened() {
        let sealed = seal("this driver", b"pipelines");
        assert_eq!(unseal("this driver", &sealed), Some(b"pipelines".as_slice()));
        assert_eq!(unseal("that driver", &sealed), None);
        assert_eq!(unseal("this drive", &sealed), None);
        for at in 0..sealed.len() {
            assert_eq!(unseal("this driver", &sealed[..at]), None, "cut at {at}");
            for bit in [1, 128] {
                let mut damaged = sealed.clone();
                damaged[at] ^= bit;
                assert_eq!(unseal("this driver", &damaged), None, "byte {at}");
            }
        }
    }

    #[test]
    fn a_key_longer_than_the_file_is_refused() {
        let mut rest = u32::MAX.to_le_bytes().to_vec();
        rest.extend_from_slice(b"key");
        let bytes = [MAGIC.as_slice(), &checksum(&rest).to_le_bytes(), &rest].concat();
        assert_eq!(unseal("key", &bytes), None);
    }

    #[test]
    fn what_grew_too_large_is_begun_anew() {
        let data = vec![0; MOST_BYTES - HEADER_BYTES - 1];
        assert!(unseal("k", &seal("k", &data)).is_some());
        let more = vec![0; MOST_BYTES - HEADER_BYTES];
        assert!(unseal("k", &seal("k", &more)).is_none());
    }
}
