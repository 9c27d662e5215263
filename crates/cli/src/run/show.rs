//! `/show` in a chat: the model, and what holds for it.

use super::talk::Talk;
use super::{lora, settings};
use crate::inspect::{millions, types};
use crate::text::{columns, nearest};
use anyhow::{Result, anyhow};
use gguf::TensorInfo;

/// Something that `/show` shows.
pub struct Topic {
    pub name: &'static str,
    help: &'static str,
    text: fn(&Talk) -> String,
}

/// All topics.
pub const TOPICS: &[Topic] = &[
    Topic { name: "info", help: "the model: architecture, parameters, types, its longest context", text: info },
    Topic {
        name: "system",
        help: "the system message",
        text: |talk| talk.system().unwrap_or("there is no system message; /set system TEXT sets one").to_string(),
    },
    Topic { name: "parameters", help: "sampling, context and limits", text: settings::parameters },
    Topic {
        name: "template",
        help: "the chat template",
        text: |talk| talk.session.model().template().source().trim_end().to_string(),
    },
    Topic { name: "license", help: "the license that the file names", text: license },
];

/// Runs `/show` with this topic.
pub fn command(talk: &Talk, topic: &str) -> Result<String> {
    if topic.is_empty() {
        return Ok(columns(overview(talk)));
    }
    let found = TOPICS.iter().find(|each| each.name == topic);
    found.map(|each| (each.text)(talk)).ok_or_else(|| {
        let near = nearest(topic, TOPICS.iter().map(|each| each.name));
        let names = TOPICS.iter().map(|each| each.name).collect::<Vec<_>>().join(", ");
        let hint = near.map_or_else(|| format!("it shows {names}"), |near| format!("did you mean {near}?"));
        anyhow!("/show has no topic {topic}; {hint}")
    })
}

/// The topics with a line of help for each.
pub fn help() -> String {
    columns(TOPICS.iter().map(|topic| (topic.name.to_string(), topic.help.to_string())).collect())
}

fn overview(talk: &Talk) -> Vec<(String, String)> {
    let (session, model) = (&talk.session, talk.session.model());
    let sampling = &talk.options.sampling;
    let draws = match sampling.temperature {
        0.0 => "greedy".to_string(),
        temp => {
            let (k, p, min, seed) = (sampling.top_k, sampling.top_p, sampling.min_p, sampling.seed);
            format!("temp {temp}, top-k {k}, top-p {p}, min-p {min}, seed {seed}")
        }
    };
    let executor = model.executor();
    let rows = [
        ("model", format!("{} ({})", talk.name(), talk.args.source.name())),
        ("device", format!("{} ({}), KV {}", executor.name(), executor.kind(), talk.args.place.kv().name())),
        ("context", format!("{} of {} tokens", session.tokens().len(), session.context())),
        ("sampling", draws),
        ("system", talk.system().unwrap_or("none").to_string()),
        ("adapters", lora::list(session.adapters())),
    ];
    rows.map(|(name, text)| (name.to_string(), text)).to_vec()
}

fn info(talk: &Talk) -> String {
    let (model, summary) = (talk.session.model(), talk.session.model().summary());
    let file = model.file();
    let parameters = millions(file.tensors().iter().map(TensorInfo::elements).sum());
    let types: Vec<String> = types(file).into_iter().map(|(ty, (count, _))| format!("{count} {ty}")).collect();
    let rows = [
        ("name", talk.name()),
        ("architecture", summary.architecture.to_string()),
        ("parameters", parameters),
        ("layers", summary.block_count.to_string()),
        ("embedding length", summary.embedding_length.to_string()),
        ("longest context", format!("{} tokens", summary.context_length)),
        ("vocabulary", format!("{} tokens", summary.vocabulary)),
        ("tensors", types.join(", ")),
    ];
    columns(rows.map(|(name, text)| (name.to_string(), text)).to_vec())
}

fn license(talk: &Talk) -> String {
    let file = talk.session.model().file();
    let keys = ["general.license", "general.license.name", "general.license.link"];
    let found: Vec<&str> = keys.into_iter().filter_map(|key| file.get_opt::<&str>(key).ok().flatten()).collect();
    if found.is_empty() { "the file names no license".to_string() } else { found.join("\n") }
}
