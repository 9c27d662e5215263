//! Requests to the hub: redirects, tokens, refusals, and patience with a server that fails.

use super::name::Name;
use super::settings::Settings;
use crate::exit::{debug, one_line};
use crate::known;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use serde::de::DeserializeOwned;
use std::io::Read;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// The largest JSON answer.
const MAX_JSON: u64 = 16 << 20;
const REDIRECTS: usize = 5;
/// No connection within this time is a failure.
const CONNECT: Duration = Duration::from_secs(15);
/// The tries of a question, and of a download without progress.
pub const ASKING: u32 = 3;
pub const FETCHING: u32 = 6;
/// The longest pause between two tries, and the longest that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Why a request failed.
pub enum Failure {
    /// Another try may help, after the time that the server asks for.
    Again { reason: String, after: Option<Duration> },
    /// No other try helps.
    Final(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Final(error)
    }
}

impl Failure {
    /// A failure of the connection.
    pub fn again(reason: impl ToString) -> Self {
        Self::Again { reason: one_line(&reason.to_string()), after: None }
    }
}

/// The tries that are left, with growing pauses.
pub struct Patience {
    most: u32,
    tries: u32,
    pause: Duration,
    first: Duration,
}

impl Patience {
    pub fn new(most: u32, settings: &Settings) -> Self {
        Self { most, tries: most, pause: settings.pause, first: settings.pause }
    }

    /// All tries are left again: there was progress.
    pub fn renew(&mut self) {
        (self.tries, self.pause) = (self.most, self.first);
    }

    /// Waits before another try. A signal ends the wait, as it ends the program.
    ///
    /// # Errors
    /// No other try helps or is left.
    pub fn wait(&mut self, failure: Failure, bar: &Bar) -> Result<()> {
        let (reason, after) = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Again { reason, after } => (reason, after),
        };
        self.tries -= 1;
        if self.tries == 0 {
            return Err(anyhow!("{reason}; {} tries failed, try again later", self.most));
        }
        if let Some(after) = after.filter(|after| *after > LONGEST_WAIT) {
            return Err(anyhow!("{reason}; the hub asks to wait for {} s, try again then", after.as_secs()));
        }
        let pause = after.unwrap_or(self.pause);
        debug(&format!("{reason}; the next try is in {:.1} s", pause.as_secs_f64()));
        bar.say(format!("{reason}; the next try is in {} s", pause.as_secs()));
        std::thread::sleep(pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// The hub.
pub struct Client {
    agent: Agent,
    pub settings: Settings,
}

impl Client {
    pub fn new(settings: Settings) -> Self {
        let config = Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("weft/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(settings.silence))
            .timeout_per_read(Some(settings.silence))
            .timeout_per_write(Some(settings.silence));
        Self { agent: config.build().into(), settings }
    }

    /// An address of the hub. Every part of the path is escaped.
    pub fn address(&self, parts: &[&str]) -> String {
        let escape = |part: &str| -> String {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
            part.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
        };
        parts.iter().fold(self.settings.endpoint.clone(), |url, part| format!("{url}/{}", escape(part)))
    }

    /// Asks for an address from byte `from` on, and follows redirects. The token goes to the hub
    /// alone.
    pub fn get(&self, address: &str, from: u64, name: &Name) -> Result<Response<Body>, Failure> {
        let mut address = address.to_string();
        for _ in 0..=REDIRECTS {
            let mut request = self.agent.get(&address).header("Accept-Encoding", "identity");
            if from > 0 {
                request = request.header("Range", format!("bytes={from}-"));
            }
            let token = self.settings.token.as_ref().filter(|_| origin(&address) == origin(&self.settings.endpoint));
            if let Some(token) = token {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            let answer = request.call().map_err(|error| self.unreachable(&address, &error))?;
            if !answer.status().is_redirection() {
                return self.refused(answer, name);
            }
            let place = header(&answer, "location").unwrap_or_default();
            address = redirect(&address, place).ok_or_else(|| {
                Failure::Final(anyhow!("{}: the hub redirects to an address that is not followed", name.repository()))
            })?;
        }
        Err(Failure::Final(anyhow!("{}: the hub redirects more than {REDIRECTS} times", name.repository())))
    }

    /// Asks for JSON of at most [`MAX_JSON`] bytes.
    pub fn json<T: DeserializeOwned>(&self, address: &str, name: &Name) -> Result<T, Failure> {
        let mut text = vec![];
        let body = self.get(address, 0, name)?.into_body();
        body.into_reader().take(MAX_JSON + 1).read_to_end(&mut text).map_err(Failure::again)?;
        if text.len() as u64 > MAX_JSON {
            return Err(anyhow!("{}: the hub's answer is longer than 16 MiB", name.repository()).into());
        }
        let parsed = serde_json::from_slice(&text);
        Ok(parsed.with_context(|| format!("{}: the hub's answer is not understood", name.repository()))?)
    }

    fn unreachable(&self, address: &str, error: &ureq::Error) -> Failure {
        let host = origin(address).map_or(address, |(_, host)| host);
        let reason = format!("cannot reach {host}: {}", error.to_string().trim_start_matches("io: "));
        let is_final = matches!(error, ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::BadUri(_));
        // Errors of certificates come as errors of the connection.
        if is_final || reason.contains("certificate") {
            return Failure::Final(anyhow!("{}", one_line(&reason)));
        }
        Failure::again(reason)
    }

    /// The answer, or the error for its status.
    fn refused(&self, answer: Response<Body>, name: &Name) -> Result<Response<Body>, Failure> {
        let (status, repository) = (answer.status(), name.repository());
        let code = header(&answer, "x-error-code").unwrap_or_default();
        let page = format!("{}/{repository}", self.settings.endpoint);
        let with_token = self.settings.token.is_some();
        let failure = match status.as_u16() {
            200..=299 | 416 => return Ok(answer),
            401 | 403 if code == "GatedRepo" || (status == StatusCode::FORBIDDEN) => {
                let way =
                    if with_token { "then try again with the token of this account" } else { "then set HF_TOKEN" };
                Failure::Final(anyhow!("{repository} asks for its licence to be accepted: accept it at {page}, {way}"))
            }
            401 if with_token => Failure::Final(anyhow!("{repository}: the hub refuses the token; see HF_TOKEN")),
            401 | 404 => Failure::Final(unknown(name, status == StatusCode::UNAUTHORIZED)),
            408 | 429 | 500..=599 => {
                let after = header(&answer, "retry-after").and_then(|text| text.trim().parse().ok());
                let reason = format!("the hub answers {status}");
                Failure::Again { reason, after: after.map(Duration::from_secs) }
            }
            _ => Failure::Final(anyhow!("{repository}: the hub answers {status}")),
        };
        Err(failure)
    }
}

/// A header of an answer, if it is text.
pub fn header<'a>(answer: &'a Response<Body>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

/// The error for a repository that the hub does not have, with the near known names.
fn unknown(name: &Name, may_be_private: bool) -> anyhow::Error {
    let repository = name.repository();
    let all = known::all().iter().map(|known| known.address.clone());
    let near = known::nearest(&name.to_string(), all);
    let hint = if near.is_empty() { String::new() } else { format!("; near names are {}", near.join(", ")) };
    let private = if may_be_private { "; for a private one set HF_TOKEN" } else { "" };
    anyhow!("the hub has no repository {repository}{hint}{private}")
}

/// The scheme and the host of an address, with the port.
fn origin(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    Some((scheme, rest.split(['/', '?', '#']).next()?))
}

/// The address that a redirect names. An address with a user, or less safe than the one before, is
/// refused.
fn redirect(from: &str, place: &str) -> Option<String> {
    let (scheme, host) = origin(from)?;
    let address = match place {
        _ if place.starts_with("//") => format!("{scheme}:{place}"),
        _ if place.starts_with('/') => format!("{scheme}://{host}{place}"),
        _ => place.to_string(),
    };
    let (new, host) = origin(&address)?;
    let is_safe = new == "https" || (new == "http" && scheme == "http");
    (is_safe && !host.is_empty() && !host.contains('@') && address.is_ascii()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_no_less_safe_address() {
        let from = "https://hub.example/a/b";
        assert_eq!(redirect(from, "/c").as_deref(), Some("https://hub.example/c"));
        assert_eq!(redirect(from, "//cdn.example/c").as_deref(), Some("https://cdn.example/c"));
        assert_eq!(redirect("http://a:1/x", "http://b:2/y").as_deref(), Some("http://b:2/y"));
        for bad in ["http://cdn.example/c", "file:///etc/passwd", "https://a@b/c", "https:///c", "", "c"] {
            assert_eq!(redirect(from, bad), None, "{bad}");
        }
    }

    #[test]
    fn hosts_that_only_begin_alike_are_other_hosts() {
        assert_ne!(origin("https://hub.example.evil/x"), origin("https://hub.example"));
        assert_ne!(origin("http://127.0.0.1:80/x"), origin("http://127.0.0.1:81"));
        assert_eq!(origin("https://hub.example/x?y"), origin("https://hub.example"));
    }
}
