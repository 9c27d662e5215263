//! Generates one answer: reads the prompt, streams tokens, takes times, stops at Ctrl-C.

use crate::interrupt;
use crate::progress::Bar;
use anyhow::Result;
use model::chat::{Event, Parser, Reply};
use model::{Finish, GenerateOptions, Session};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Receives the parts of the answer as they are generated.
pub type Sink<'a> = &'a mut dyn FnMut(&Event) -> io::Result<()>;

/// A finished answer.
pub struct Answer {
    pub reply: Reply,
    pub ids: Vec<u32>,
    /// Natural logarithm of each token's probability.
    pub log_probs: Vec<f32>,
    pub finish: Finish,
    /// The number of tokens of the whole prompt.
    pub prompt_tokens: usize,
    /// The number of prompt tokens that the session had not read before.
    pub read_tokens: usize,
    /// The time from the start to the first token.
    pub prefill: Duration,
    /// The time from the first token to the last.
    pub decode: Duration,
}

impl Answer {
    /// Prompt tokens per second.
    pub fn prefill_rate(&self) -> Option<f64> {
        rate(self.read_tokens, self.prefill)
    }

    /// Generated tokens per second, without the first token.
    pub fn decode_rate(&self) -> Option<f64> {
        rate(self.ids.len().saturating_sub(1), self.decode)
    }
}

fn rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
}

/// Continues `ids` and streams the parsed parts to `sink`. After Ctrl-C it returns the answer up to
/// that moment.
pub fn answer(
    session: &mut Session,
    ids: &[u32],
    options: GenerateOptions,
    mut parser: Parser,
    sink: Sink<'_>,
) -> Result<Answer> {
    session.set_prompt(ids)?;
    // At least the last token is evaluated, because the answer needs its logits.
    let read_tokens = (session.tokens().len() - session.evaluated()).max(1);
    let cancel = session.cancel_flag();
    let guard = interrupt::stops(cancel.clone());
    let mut bar = Bar::count(format!("reading {read_tokens} tokens"));
    let began = Instant::now();
    let mut tokens = session.generate_with(options)?.with_progress(bar.reporter());
    let (mut reply, mut ids_out, mut log_probs) = (Reply::default(), vec![], vec![]);
    let mut take = |events: Vec<Event>| {
        events.into_iter().try_for_each(|event| {
            sink(&event)?;
            reply.add(event);
            io::Result::Ok(())
        })
    };
    let (mut first, mut last) = (began, began);
    loop {
        if guard.raised() {
            cancel.store(true, Ordering::Relaxed);
        }
        let Some(token) = tokens.next() else { break };
        last = Instant::now();
        if ids_out.is_empty() {
            first = last;
            bar.clear();
        }
        let token = token?;
        ids_out.push(token.id);
        log_probs.push(token.log_prob);
        take(parser.push(&token.text))?;
    }
    take(parser.finish())?;
    let finish = tokens.finish().cloned().unwrap_or(Finish::End);
    Ok(Answer {
        reply,
        ids: ids_out,
        log_probs,
        finish,
        prompt_tokens: ids.len(),
        read_tokens,
        prefill: first - began,
        decode: last - first,
    })
}
