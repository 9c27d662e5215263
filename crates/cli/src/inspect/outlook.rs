//! How a file would run: the memory of a session, and the compiled plans.

use super::Args;
use crate::executor::Choice;
use anyhow::{Result, anyhow};
use kernels::plan::plan;
use kernels::{Caps, Executor};
use model::{Checked, Needs, SessionOptions, Size};
use serde_json::{Value, json};

/// The memory that a session needs on an executor, or the reason why the file cannot run.
pub struct Outlook {
    executor: Executor,
    options: SessionOptions,
    fit: Result<Fit, String>,
    template: Option<String>,
    notes: Vec<String>,
}

struct Fit {
    checked: Checked,
    needs: Needs,
    context: u32,
}

/// The plans of both kinds of step, printed.
pub struct Plans {
    /// The device they are compiled for.
    pub target: String,
    pub decode: String,
    pub prefill: String,
}

impl Outlook {
    /// Checks whether the file can run. A file that cannot run is not an error here, and no device
    /// is opened for it.
    pub fn new(args: &Args) -> Result<Self> {
        let options = args.session();
        let unsupported = |reason: String| {
            Ok(Self {
                executor: Executor::Cpu,
                options: args.session(),
                fit: Err(reason),
                template: None,
                notes: vec![],
            })
        };
        let file = match args.source.model_file() {
            Ok(file) => file,
            Err(error) => return unsupported(format!("{error:#}")),
        };
        let template = file.template().check().err().map(|error| error.to_string());
        let mut notes: Vec<String> = file.notes().iter().map(ToString::to_string).collect();
        // Damage is reported before any device is opened for the file.
        if let Err(error) = file.check(&Executor::Cpu) {
            return unsupported(error.to_string()).map(|outlook| Self { template, notes, ..outlook });
        }
        let executor = args.source.located(args.device().open(&file, &options))?;
        let fit = match file.check(&executor) {
            Err(error) => Err(error.to_string()),
            Ok(mut checked) => match adapt(args, &mut checked) {
                Err(error) => Err(format!("{error:#}")),
                Ok(said) => {
                    notes.extend(said);
                    // A context longer than the model's is a mistake of the user, not of the file.
                    let context = args.source.named(options.context_for(checked.summary()))?;
                    let needs = args.source.named(checked.needs(&options))?;
                    Ok(Fit { checked, needs, context })
                }
            },
        };
        Ok(Self { executor, options, fit, template, notes })
    }

    /// Why the file cannot run.
    pub fn unsupported(&self) -> Option<&str> {
        self.fit.as_ref().err().map(String::as_str)
    }

    /// What is wrong with the chat template, which only conversations need.
    pub fn template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// The assumptions that were made to load the file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The sizes for people.
    pub fn memory(&self) -> String {
        let fit = match &self.fit {
            Ok(fit) => fit,
            Err(reason) => return format!("cannot run: {reason}"),
        };
        let Needs { weights, kv, intermediates } = fit.needs;
        let kv_name = self.options.kv;
        let (place, total) = (self.executor.name(), fit.needs.total());
        let rest = if intermediates.0 > 0 { format!(" + intermediates {intermediates}") } else { String::new() };
        format!(
            "memory on {place}: weights {weights} + {kv_name} KV cache of {} positions {kv}{rest} = {total}",
            fit.context
        )
    }

    /// The sizes for scripts.
    pub fn memory_json(&self) -> Value {
        match &self.fit {
            Err(reason) => json!({ "unsupported": reason }),
            Ok(Fit { needs, context, .. }) => json!({
                "device": self.executor.name(), "executor": self.executor.kind(), "context": context,
                "weights_bytes": bytes(needs.weights), "kv_bytes": bytes(needs.kv),
                "intermediate_bytes": bytes(needs.intermediates), "total_bytes": bytes(needs.total()),
            }),
        }
    }

    /// Compiles the plans. If no GPU was opened, they are for WebGPU's default limits.
    ///
    /// # Errors
    /// The file cannot run, or the device is too small.
    pub fn plans(&self) -> Result<Plans> {
        let fit = self.fit.as_ref().map_err(|reason| anyhow!("no plan: {reason}"))?;
        let (caps, target) = match &self.executor {
            Executor::Gpu(device) => (device.caps().clone(), device.adapter().name.clone()),
            Executor::Cpu => (Caps::WEBGPU, "WebGPU's default limits (the CPU runs the recording itself)".to_string()),
        };
        let compiled = |rows| -> Result<String> {
            Ok(plan(&fit.checked.recording(&self.options, rows), &caps, &self.options.plan)?.to_string())
        };
        let chunk = fit.checked.settled(&self.options)?.chunk;
        Ok(Plans { target, decode: compiled(1)?, prefill: compiled(chunk)? })
    }
}

/// Adds the adapters. Returns what does not apply of each.
fn adapt(args: &Args, checked: &mut Checked) -> Result<Vec<String>> {
    let mut notes = vec![];
    for (adapter, scale) in args.source.adapters(&args.adapters)? {
        let path = adapter.path().map_or_else(String::new, |path| path.display().to_string());
        notes.extend(checked.adapt(&adapter, scale)?.map(|said| format!("{path}: {said}")));
    }
    Ok(notes)
}

fn bytes(size: Size) -> u64 {
    size.0
}

impl Args {
    fn session(&self) -> SessionOptions {
        SessionOptions::default().context(self.context.ctx).kv(self.kv.into())
    }

    /// Sizes need a GPU only if the user names one. A plan is for the device that `auto` chooses.
    fn device(&self) -> Choice {
        self.device.clone().unwrap_or(if self.plan { Choice::Auto } else { Choice::Cpu })
    }
}
