//! Manifests: the list of a model's layers.

use crate::error::json_reason;
use serde::Deserialize;

/// Upper limit of a manifest's bytes. Real ones stay below a few thousand.
pub(super) const MAX_BYTES: u64 = 1 << 20;
const PREFIX: &str = "application/vnd.ollama.image.";

/// A parsed manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The layers, in the manifest's order.
    pub layers: Vec<Layer>,
    /// The model's description, in JSON.
    pub config: Option<Layer>,
}

/// One layer: a blob and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The last word of Ollama's media type (`model`, `template`, `params`, `system`, `projector`,
    /// `adapter`, `license`, ..). For another media type, all of it.
    pub kind: String,
    /// The blob.
    pub digest: Digest,
    /// Its length.
    pub bytes: u64,
}

/// A SHA-256 in 64 lower-case hexadecimal digits, always valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest(String);

impl Digest {
    /// The digest that `text` spells as `sha256:HEX`.
    pub fn new(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let sound = hex.len() == 64 && hex.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        sound.then(|| Self(hex.to_owned()))
    }

    /// The digits.
    pub fn hex(&self) -> &str {
        &self.0
    }

    /// The path of the blob in a store.
    pub(super) fn path(&self) -> String {
        format!("blobs/sha256-{}", self.0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawManifest {
    schema_version: u64,
    layers: Vec<RawLayer>,
    config: Option<RawLayer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLayer {
    media_type: String,
    digest: String,
    size: u64,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// The reason as text for users.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() as u64 > MAX_BYTES {
            return Err(format!("it is larger than {MAX_BYTES} bytes"));
        }
        let RawManifest { schema_version, layers, config } =
            serde_json::from_slice(json).map_err(|error| json_reason(&error))?;
        if schema_version != 2 {
            return Err(format!("its schema has version {schema_version}; this program reads version 2"));
        }
        let layer = |raw: RawLayer| {
            let digest = Digest::new(&raw.digest);
            let digest = digest.ok_or_else(|| {
                format!("\"{}\" is not a digest", raw.digest.chars().take(80).collect::<String>().escape_debug())
            })?;
            let kind = raw.media_type.strip_prefix(PREFIX).unwrap_or(&raw.media_type).to_owned();
            Ok(Layer { kind, digest, bytes: raw.size })
        };
        Ok(Self {
            layers: layers.into_iter().map(layer).collect::<Result<_, String>>()?,
            config: config.map(layer).transpose()?,
        })
    }

    /// The layers of one kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Layer> + 'a {
        self.layers.iter().filter(move |layer| layer.kind == kind)
    }
}

/// The fuzz body: any bytes give either an error with a reason, or a manifest whose digests cannot
/// lead out of the blobs folder. Returns whether there is a manifest.
pub fn fuzz(bytes: &[u8]) -> bool {
    match Manifest::parse(bytes) {
        Ok(manifest) => {
            for layer in &manifest.layers {
                let path = layer.digest.path();
                let components: Vec<_> = std::path::Path::new(&path).components().collect();
                assert!(components.iter().all(|part| matches!(part, std::path::Component::Normal(_))), "{path:?}");
                assert_eq!((components.len(), path.len()), (2, "blobs/".len() + 71));
            }
            assert!(manifest.of("model").count() <= manifest.layers.len());
            true
        }
        Err(reason) => {
            assert!(!reason.is_empty() && reason.len() < 1000, "{reason}");
            false
        }
    }
}
