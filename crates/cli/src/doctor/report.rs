//! The report of `weft doctor`: a verdict for each kernel, for people and for scripts.

use crate::args::Activations;
use crate::devices::kind;
use kernels::{Agreement, Device, Precision};
use model::{KvType, Model, NotRun};
use serde_json::{Value, json};

/// The version of the files that `--report` writes.
const FORMAT: u32 = 1;

/// What was compared, and what was not.
#[derive(Default)]
pub struct Report {
    verdicts: Vec<Verdict>,
    /// The steps, with the number of operations that were compared.
    steps: Vec<(String, usize)>,
    /// Steps that did not run, and why.
    skipped: Vec<(String, String)>,
    not_run: Vec<NotRun>,
}

/// The result of all operations with the same kernels.
struct Verdict {
    kernels: Vec<String>,
    compared: usize,
    wrong: usize,
    /// The worst operation.
    worst: Agreement,
    /// The step of the worst operation.
    step: String,
}

/// The facts at the head of a report.
pub struct Head<'a> {
    pub device: &'a Device,
    pub model: &'a Model,
    pub precision: Precision,
    pub kv: KvType,
    pub context: u32,
    pub seed: u64,
}

impl Report {
    /// Takes in the operations of a step.
    pub fn add(&mut self, step: &str, agreements: Vec<Agreement>) {
        self.steps.push((step.to_string(), agreements.len()));
        for of in agreements {
            let (wrong, step) = (usize::from(!of.holds()), step.to_string());
            match self.verdicts.iter_mut().find(|verdict| verdict.kernels == of.kernels) {
                None => {
                    self.verdicts.push(Verdict { kernels: of.kernels.clone(), compared: 1, wrong, worst: of, step })
                }
                Some(verdict) => {
                    verdict.compared += 1;
                    verdict.wrong += wrong;
                    if of.share() > verdict.worst.share() {
                        (verdict.worst, verdict.step) = (of, step);
                    }
                }
            }
        }
    }

    pub fn skip(&mut self, step: &str, reason: String) {
        self.skipped.push((step.to_string(), reason));
    }

    pub fn leave_out(&mut self, not_run: Vec<NotRun>) {
        self.not_run = not_run;
    }

    /// The names of the kernels that were compared.
    pub fn kernels(&self) -> impl Iterator<Item = &String> {
        self.verdicts.iter().flat_map(|verdict| &verdict.kernels)
    }

    /// The operations that were compared.
    pub fn compared(&self) -> usize {
        self.verdicts.iter().map(|verdict| verdict.compared).sum()
    }

    /// The operations that do not agree.
    pub fn wrong(&self) -> usize {
        self.verdicts.iter().map(|verdict| verdict.wrong).sum()
    }

    /// The kernels of the operations that do not agree, with the place of the worst difference.
    pub fn faults(&self) -> Vec<String> {
        let of = |Verdict { kernels, worst, step, .. }: &Verdict| {
            let (row, nmse, bound) = (worst.difference.row, worst.difference.nmse, worst.bound);
            let layer = worst.layer.map_or(String::new(), |layer| format!("layer {layer}, "));
            let by = if nmse.is_finite() {
                format!("error {nmse:.1e}, bound {bound:.0e}")
            } else {
                "other values".to_string()
            };
            format!("{} ({step}: {layer}{}, row {row}: {by})", kernels.join(" + "), worst.worst)
        };
        self.verdicts.iter().filter(|verdict| verdict.wrong > 0).map(of).collect()
    }

    /// The table of verdicts, then what was not compared.
    pub fn text(&self) -> String {
        let mut text = format!("{:<5} {:>8} {:>9} {:>9} {:>9}  kernels\n", "", "compared", "error", "bound", "peak");
        for Verdict { kernels, compared, wrong, worst, step } in &self.verdicts {
            let verdict = if *wrong == 0 { "ok" } else { "WRONG" };
            let place = match wrong {
                0 => String::new(),
                wrong => {
                    format!(" ({wrong} wrong, the worst in {step}: {}, row {})", worst.worst, worst.difference.row)
                }
            };
            let (nmse, peak, bound) = (worst.difference.nmse, worst.difference.peak, worst.bound);
            text += &format!(
                "{verdict:<5} {compared:>8} {nmse:>9.1e} {bound:>9.0e} {peak:>9.1e}  {}{place}\n",
                kernels.join(" + ")
            );
        }
        for (step, reason) in &self.skipped {
            text += &format!("\nnot run: {step}: {reason}\n");
        }
        for NotRun { precision, kv, kernels } in &self.not_run {
            text += &format!(
                "\nnot run, with --precision {} --kv {}: {}\n",
                precision_name(*precision),
                kv,
                kernels.join(", ")
            );
        }
        text
    }

    /// The whole report. It has no name of a file and nothing else that is private.
    pub fn json(&self, head: &Head<'_>) -> Value {
        let Head { device, model, precision, kv, context, seed } = head;
        let (adapter, caps, summary) = (device.adapter(), device.caps(), model.summary());
        let (features, _) = device.describe();
        json!({
            "format": FORMAT,
            "version": env!("CARGO_PKG_VERSION"),
            "agrees": self.wrong() == 0,
            "device": {
                "name": adapter.name, "class": kind(adapter.class), "backend": adapter.backend, "driver": adapter.driver,
                "features": features, "subgroup_size": caps.subgroup_size, "cooperative": caps.cooperative,
                "max_binding_bytes": caps.max_binding_bytes, "max_workgroup": caps.max_workgroup,
            },
            "architecture": summary.architecture,
            "layers": summary.block_count,
            "embedding": summary.embedding_length,
            "vocabulary": summary.vocabulary,
            "precision": precision_name(*precision), "kv": kv.to_string(), "context": context, "seed": seed,
            "steps": self.steps.iter().map(|(step, operations)| json!({ "step": step, "operations": operations })).collect::<Vec<_>>(),
            "operations": self.verdicts.iter().map(Verdict::json).collect::<Vec<_>>(),
            "skipped": self.skipped.iter().map(|(step, reason)| json!({ "step": step, "reason": reason })).collect::<Vec<_>>(),
            "not_run": self.not_run.iter().map(|of| {
                json!({ "precision": precision_name(of.precision), "kv": of.kv.to_string(), "kernels": of.kernels })
            }).collect::<Vec<_>>(),
        })
    }
}

impl Verdict {
    fn json(&self) -> Value {
        let Self { kernels, compared, wrong, worst, step } = self;
        json!({
            "kernels": kernels, "agrees": *wrong == 0, "compared": compared, "wrong": wrong,
            "error": finite(worst.difference.nmse), "bound": worst.bound, "peak": finite(worst.difference.peak),
            "worst": { "step": step, "layer": worst.layer, "result": worst.worst, "row": worst.difference.row },
        })
    }
}

/// The name that `--precision` takes.
fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Fast => Activations::Fast.name(),
        Precision::F32 => Activations::F32.name(),
    }
}

/// A number, or null where JSON has none.
pub fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kernel: &str, nmse: f64) -> Agreement {
        Agreement {
            kernels: vec![kernel.to_string()],
            layer: Some(3),
            rows: None,
            worst: "output 0".to_string(),
            difference: kernels::Difference { row: 15, nmse, ..Default::default() },
            near: 0,
            bound: 1e-10,
            peak: 16.0,
        }
    }

    #[test]
    fn equal_kernels_have_one_verdict_with_the_place_of_the_worst_row() {
        let mut report = Report::default();
        report.add("1 row at position 0", vec![of("add", 1e-12), of("mul", 0.0)]);
        report.add("64 rows from position 0", vec![of("add", 1e-2), of("add", 1e-11)]);
        assert_eq!((report.compared(), report.wrong(), report.kernels().count()), (4, 1, 2));
        let wanted = "add (64 rows from position 0: layer 3, output 0, row 15: error 1.0e-2, bound 1e-10)";
        assert_eq!(report.faults(), [wanted]);
        let text = report.text();
        assert!(text.contains("WRONG        3    1.0e-2     1e-10") && text.contains("ok           1"), "{text}");
    }
}
