//! One answer: the prompt read, tokens streamed, times taken, Ctrl-C heeded.

use crate::interrupt;
use crate::progress::Bar;
use anyhow::Result;
use model::chat::{Event, Parser, Reply};
use model::{Finish, GenerateOptions, Session};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Takes the answer as it comes.
pub type Sink<'a> = &'a mut dyn FnMut(&Event) -> io::Result<()>;

/// A finished answer.
pub struct Answer {
    pub reply: Reply,
    pub ids: Vec<u32>,
    /// Natural logarithm of each token's probability.
    pub log_probs: Vec<f32>,
    pub finish: Finish,
    /// Tokens of the whole prompt.
    pub prompt_tokens: usize,
    /// Those of them that the session had not read before.
    pub read_tokens: usize,
    /// From the start to the first token.
    pub prefill: Duration,
    /// From the first token to the last.
    pub decode: Duration,
}

impl Answer {
    /// Prompt tokens per second.
    pub fn prefill_rate(&self) -> Option<f64> {
        rate(self.read_tokens, self.prefill)
    }

    /// Tokens per second after the first.
    pub fn decode_rate(&self) -> Option<f64> {
        rate(self.ids.len().saturating_sub(1), self.decode)
    }
}

fn rate(tokens: usize, time: Duration) -> Option<f64> {
    (tokens > 0 && !time.is_zero()).then(|| tokens as f64 / time.as_secs_f64())
}

/// Makes the session continue `ids`, streaming what `parser` finds to `sink`. Ctrl-C ends it with what came until then.
pub fn answer(session: &mut Session, ids: &[u32], options: GenerateOptions, mut parser: Parser, sink: Sink<'_>) -> Result<Answer> {
    session.set_prompt(ids)?;
    // The last is read again, for an answer needs what it gives.
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
