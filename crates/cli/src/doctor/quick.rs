//! `weft doctor --quick`: one prompt and a step of one token.

use super::report::finite;
use super::{Args, load, reference, title};
use crate::exit::Interrupted;
use crate::interrupt;
use crate::progress::Bar;
use anyhow::{Result, anyhow};
use kernels::{Agreement, Mirror};
use model::{Error, Session};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Tokens of the prompt.
const TOKENS: u32 = 64;

pub fn run(args: &Args) -> Result<()> {
    let tokens = args.tokens.unwrap_or(TOKENS);
    let options = args.options().context(tokens.saturating_add(2));
    let (device, model) = load(args, &options)?;
    let host = reference(args)?;
    let mut session = args.source.named(model.session(options))?;
    let mirror = Mirror::new(Arc::clone(host.weights()));
    let mut mirror = if args.all { mirror } else { mirror.once() };
    let vocabulary = session.model().summary().vocabulary;
    // Ids spread over the vocabulary: a prompt of text needs no tokenizer here.
    let ids: Vec<u32> = (0..tokens + 1).map(|n| n.wrapping_mul(7919) % vocabulary).collect();
    let (prompt, next) = ids.split_at(tokens as usize);
    let adapter = device.adapter();
    let mut out = std::io::stdout().lock();
    let mut report = Report { text: String::new(), operations: vec![], wrong: 0 };
    if !args.json {
        title(&mut out, args, &device)?;
    }
    for (what, ids) in
        [(format!("a prompt of {} tokens", prompt.len()), prompt), ("a step of one token".to_string(), next)]
    {
        args.source.named(session.feed(ids))?;
        let agreements = match compare(&mut session, &mut mirror, &what) {
            Err(Error::Cancelled) => return Err(Interrupted.into()),
            other => args.source.named(other)?,
        };
        report.add(&what, &agreements);
        if !args.json {
            write!(out, "{}", std::mem::take(&mut report.text))?;
        }
    }
    let compared = report.operations.len();
    if args.json {
        let device = json!({ "name": adapter.name, "backend": adapter.backend, "driver": adapter.driver });
        let (model, version) = (args.source.name(), env!("CARGO_PKG_VERSION"));
        let object = json!({
            "version": version, "device": device, "model": model, "kv": args.kv.name(), "precision": args.precision.name(),
            "agrees": report.wrong == 0, "operations": report.operations,
        });
        writeln!(out, "{object}")?;
    } else if report.wrong == 0 {
        writeln!(out, "\nall {compared} operations agree")?;
    }
    match report.wrong {
        0 => Ok(()),
        wrong => Err(anyhow!("{wrong} of {compared} operations are wrong on {}; {}", adapter.name, super::HELP)),
    }
}

/// Evaluates the fed tokens on both executors.
fn compare(session: &mut Session, mirror: &mut Mirror, what: &str) -> Result<Vec<Agreement>, Error> {
    let bar = Bar::count(format!("comparing {what}"));
    let guard = interrupt::stops(session.cancel_flag());
    let cancel = session.cancel_flag();
    session.agree(
        mirror,
        Some(&|progress| {
            bar.show(progress);
            if guard.raised() {
                cancel.store(true, Ordering::Relaxed);
            }
        }),
    )
}

struct Report {
    text: String,
    operations: Vec<Value>,
    wrong: usize,
}

impl Report {
    /// Adds a line for each operation of a step.
    fn add(&mut self, what: &str, agreements: &[Agreement]) {
        self.text +=
            &format!("\n{what}\n{:<5} {:>5} {:>9} {:>9} {:>9}  kernels\n", "", "layer", "error", "bound", "peak");
        for of in agreements {
            let Agreement { kernels, layer, worst, difference, bound, .. } = of;
            let (verdict, kernels) = (if of.holds() { "ok" } else { "WRONG" }, kernels.join(" + "));
            let place = if of.holds() { String::new() } else { format!(" ({worst}, row {})", difference.row) };
            let number = layer.map_or("-".to_string(), |layer| layer.to_string());
            let (nmse, peak) = (difference.nmse, difference.peak);
            self.text +=
                &format!("{verdict:<5} {number:>5} {nmse:>9.1e} {bound:>9.0e} {peak:>9.1e}  {kernels}{place}\n");
            self.wrong += usize::from(!of.holds());
            self.operations.push(json!({
                "step": what, "layer": layer, "kernels": kernels, "agrees": of.holds(), "error": finite(nmse), "bound": bound,
                "peak": finite(peak), "worst": worst, "row": difference.row,
            }));
        }
    }
}
