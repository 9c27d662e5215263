//! The environment variables of the hub, with the meaning that Python's huggingface_hub gives them.

use anyhow::{Result, anyhow};
use std::path::PathBuf;
use std::time::Duration;

/// Where the hub and its cache are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub, without a slash at the end.
    pub endpoint: String,
    /// Sent to the hub alone.
    pub token: Option<String>,
    /// Nothing is asked of the network.
    pub offline: bool,
    /// The folder of the cache.
    pub cache: PathBuf,
    /// The first pause before another try.
    pub pause: Duration,
    /// A connection without a byte for so long is cut.
    pub silence: Duration,
    /// The free disk space, if a test gives it.
    pub free: Option<u64>,
}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// There is no folder for a cache, or `HF_ENDPOINT` is no address.
    pub fn from_env() -> Result<Self> {
        let home = variable("HF_HOME").map(PathBuf::from).or_else(default_home);
        let cache = ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"].iter().find_map(|name| variable(name)).map(PathBuf::from);
        let cache = cache.or_else(|| home.as_ref().map(|home| home.join("hub")));
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_string());
        let is_address = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
        if !is_address.is_some_and(|host| !host.is_empty() && !host.contains([' ', '@', '?', '#'])) {
            return Err(anyhow!(
                "HF_ENDPOINT is \"{}\"; it must begin with https:// or http://",
                endpoint.escape_debug()
            ));
        }
        let token_file = variable("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home?.join("token")));
        let is_on = |value: String| !["0", "false", "no", "off"].contains(&value.to_lowercase().as_str());
        Ok(Self {
            endpoint: endpoint.trim_end_matches('/').to_string(),
            token: token(token_file)?,
            offline: ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].iter().any(|name| variable(name).is_some_and(is_on)),
            cache: cache.ok_or_else(|| anyhow!("there is no folder for downloads; set HF_HOME"))?,
            pause: test("pause_ms").map_or(Duration::from_secs(1), Duration::from_millis),
            silence: test("silence_ms").map_or(Duration::from_secs(30), Duration::from_millis),
            free: test("free"),
        })
    }
}

/// A number that tests set: `WEFT_HUB_TEST=pause_ms=1,free=1000`.
fn test(name: &str) -> Option<u64> {
    let all = variable("WEFT_HUB_TEST")?;
    all.split(',').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// `huggingface` in the user's cache folder.
fn default_home() -> Option<PathBuf> {
    let caches = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let user =
        || variable(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(|home| PathBuf::from(home).join(".cache"));
    Some(caches.or_else(user)?.join("huggingface"))
}

/// The user's token: `HF_TOKEN`, else the content of the file.
fn token(file: Option<PathBuf>) -> Result<Option<String>> {
    let named = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"].iter().find_map(|name| variable(name));
    let token = named.or_else(|| std::fs::read_to_string(file?).ok());
    let token = token.map(|token| token.trim().to_string()).filter(|token| !token.is_empty());
    match token {
        Some(token) if token.len() > 1000 || !token.chars().all(|c| c.is_ascii_graphic()) => {
            Err(anyhow!("the token of the hub has characters that no token has; see HF_TOKEN"))
        }
        token => Ok(token),
    }
}
