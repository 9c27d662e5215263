//! The examples of a run: from files, by an index, or from stdin.

use super::args::{Args, Held, Longer};
use crate::exit::{note, usage};
use crate::progress::Bar;
use anyhow::Result;
use kernels::Executor;
use model::ModelFile;
use std::fmt;
use std::io::{BufReader, stdin};
use train::defaults::{self, Amount};
use train::{Batches, Counts, Data, DataOptions, Document, Facts, Piece, Position, Stream, Texts};

enum From {
    Files { data: Data, batches: Batches, before: Position },
    Stdin(Box<Stream>),
}

/// Examples that the base answered, and how many of them a step has.
struct Rehearsed {
    data: Data,
    batches: Batches,
    before: Position,
    share: u32,
    /// Examples of a step in all.
    batch: u32,
}

/// What a run learns, and what it is judged by.
pub struct Examples {
    from: From,
    held: Option<Data>,
    rehearsed: Option<Rehearsed>,
    options: DataOptions,
    /// Whether the share was held out by itself.
    by_itself: bool,
}

impl Examples {
    /// Opens and checks the files; stdin is read while it is learnt.
    pub fn open(args: &Args, file: &ModelFile) -> Result<Self> {
        let context = args.source.named(file.check(&Executor::Cpu))?.summary().context_length;
        let length = args.length.unwrap_or_else(|| defaults::length(context));
        let longer = if args.longer == Longer::Drop { train::Longer::Drop } else { train::Longer::Cut };
        let options =
            DataOptions::default().length(length).longer(longer).learn(args.loss.into()).skip_bad(args.skip_bad);
        let texts = Texts::from(file);
        let read = |files: &[std::path::PathBuf]| -> Result<Data> {
            let bar = Bar::bytes("checking the examples");
            Ok(Data::open(files, texts.clone(), &options, &|progress| bar.show(progress))?)
        };
        let held = match &args.val {
            Some(Held::File(file)) => Some(read(std::slice::from_ref(file))?),
            _ => None,
        };
        if args.streams() {
            let from = From::Stdin(Box::new(Stream::new("stdin", Box::new(BufReader::new(stdin())), texts, &options)));
            return Ok(Self { from, held, rehearsed: None, options, by_itself: false });
        }
        let data = read(&args.data)?;
        let usual = defaults::held_share(data.len()).filter(|_| args.val.is_none() && !args.no_auto_val);
        let share = match args.val {
            Some(Held::Share(share)) => Some(share),
            _ => usual,
        };
        let (data, held) = match share {
            Some(share) => data.split(share, args.seed).map(|(data, held)| (data, Some(held)))?,
            None => (data, held),
        };
        let rehearsed = args.rehearse.as_ref().map_or(0, |rehearse| rehearse.of(args.batch));
        if rehearsed >= args.batch {
            return Err(usage("--rehearse takes a part of each step; --batch 1 leaves no room for it"));
        }
        let batches = Batches::new(data.clone(), args.batch - rehearsed, args.seed);
        let batches = if args.no_shuffle { batches.in_order() } else { batches };
        let from = From::Files { data, batches, before: Position::default() };
        Ok(Self { from, held, rehearsed: None, options, by_itself: usual.is_some() })
    }

    /// Adds the examples that the base answered to every step.
    pub fn rehearse(&mut self, args: &Args, lines: String) -> Result<()> {
        let (Some(rehearse), From::Files { data, .. }) = (&args.rehearse, &self.from) else { return Ok(()) };
        let name = rehearse.file.display().to_string();
        let files = vec![(name, Box::new(lines.into_bytes()) as Box<dyn gguf::Source>)];
        // An answer may be empty: then nothing of it can be learnt.
        let options = self.options.clone().skip_bad(true);
        let data = Data::new(files, data.texts().clone(), &options, &|_| ())?;
        let share = rehearse.of(args.batch);
        let batches = Batches::new(data.clone(), share, args.seed);
        self.rehearsed = Some(Rehearsed { data, batches, before: Position::default(), share, batch: args.batch });
        Ok(())
    }

    /// The numbers of the examples that a share holds out, among those of all files, from 1.
    pub fn held_numbers(&self) -> Option<Vec<u64>> {
        let From::Files { data, .. } = &self.from else { return None };
        let held = self.held.as_ref().filter(|held| held.digest() == data.digest())?;
        Some((0..held.len()).map(|n| held.number(n) + 1).collect())
    }

    /// The documents of the next batch; `None` at the end of stdin.
    pub fn next(&mut self, batch: u32) -> Result<Option<Vec<Document>>> {
        match &mut self.from {
            From::Files { batches, before, .. } => {
                *before = batches.position();
                let mut documents = batches.next()?;
                if let Some(Rehearsed { batches, before, .. }) = &mut self.rehearsed {
                    *before = batches.position();
                    documents.extend(batches.next()?);
                }
                Ok(Some(documents))
            }
            From::Stdin(stream) => Ok(Some(stream.next(batch)?).filter(|documents| !documents.is_empty())),
        }
    }

    /// Gives the last batch again. What came from stdin is gone.
    pub fn step_back(&mut self) {
        if let From::Files { batches, before, .. } = &mut self.from {
            batches.seek(*before).expect("a place where it was");
        }
        if let Some(Rehearsed { batches, before, .. }) = &mut self.rehearsed {
            batches.seek(*before).expect("a place where it was");
        }
    }

    /// The position behind the last batch.
    pub fn position(&self) -> String {
        let rehearsed = self.rehearsed.as_ref().map_or_else(String::new, |of| format!("; {}", of.batches.position()));
        match &self.from {
            From::Files { batches, .. } => format!("{}{rehearsed}", batches.position()),
            From::Stdin(stream) => format!("example {}", stream.counts().examples),
        }
    }

    /// Goes on at a position that [`Examples::position`] gave. `None` begins at the first example.
    pub fn seek(&mut self, position: Option<&str>) -> Result<()> {
        let (first, second) = match position.map(|both| both.split_once("; ").unwrap_or((both, ""))) {
            Some((first, second)) => (Some(first), Some(second).filter(|text| !text.is_empty())),
            None => (None, None),
        };
        let place = |text: Option<&str>| text.map_or(Ok(Position::default()), str::parse);
        if let From::Files { batches, .. } = &mut self.from {
            batches.seek(place(first)?)?;
        }
        if let Some(Rehearsed { batches, .. }) = &mut self.rehearsed {
            batches.seek(place(second)?)?;
        }
        Ok(())
    }

    /// Documents that are not learnt, from the n-th example on; none behind the last one.
    pub fn held_out(&self, n: u64, batch: u32) -> Result<Option<Vec<Document>>> {
        let Some(data) = self.held.as_ref().filter(|data| n < data.len()) else { return Ok(None) };
        let mut documents = vec![];
        for n in n..data.len().min(n + u64::from(batch)) {
            documents.extend(data.documents(n)?);
        }
        Ok(Some(documents))
    }

    /// The n-th example as text, with the parts that are learnt; nothing behind the last one.
    pub fn shown(&self, n: u64) -> Result<Vec<Vec<Piece>>> {
        let From::Files { data, .. } = &self.from else { return Ok(vec![]) };
        let documents = if n < data.len() { data.documents(n)? } else { vec![] };
        Ok(documents.iter().map(|document| data.texts().pieces(document)).collect())
    }

    /// How much there is to learn, as far as it is known.
    pub fn amount(&self) -> Amount {
        match &self.from {
            From::Files { batches, .. } => Amount::of(batches, self.holds_out()),
            From::Stdin(_) => Amount { holds_out: self.holds_out(), ..Amount::default() },
        }
    }

    /// Tokens that are computed together: enough for most batches and for every example.
    pub fn rows(&self, batch: u32) -> u32 {
        match &self.from {
            From::Files { data, .. } => defaults::rows(data, self.others(), batch),
            From::Stdin(_) => self.options.length.max(defaults::ROWS),
        }
    }

    /// The examples beside those that are learnt.
    fn others(&self) -> impl Iterator<Item = &Data> {
        self.held.iter().chain(self.rehearsed.iter().map(|of| &of.data))
    }

    /// The most tokens that examples fill a step with, if it is known.
    pub fn most_rows(&self, batch: u32, packing: bool) -> Option<u32> {
        let From::Files { data, .. } = &self.from else { return None };
        defaults::most_rows([data].into_iter().chain(self.others()), batch, packing)
    }

    /// Whether examples are held out for validation.
    pub fn holds_out(&self) -> bool {
        self.held.is_some()
    }

    /// What the batches depend on.
    pub fn facts(&self) -> Facts {
        let mut facts = match &self.from {
            From::Files { batches, .. } => batches.facts(),
            From::Stdin(_) => Facts::from([("data".to_string(), "stdin".to_string())]),
        };
        facts.insert(
            "held out".to_string(),
            self.held.as_ref().map_or_else(|| "nothing".to_string(), |held| held.digest().to_string()),
        );
        if let Some(Rehearsed { data, share, batch, .. }) = &self.rehearsed {
            facts.insert("batch".to_string(), batch.to_string());
            facts.insert("rehearsal".to_string(), format!("{share} of a step, {}", data.digest()));
        }
        facts
    }

    /// Says which columns and keys had no effect, in all that was read.
    pub fn say_unused(&self) {
        let mut names = match &self.from {
            From::Files { data, .. } => data.unused(),
            From::Stdin(stream) => stream.unused(),
        };
        names.extend(self.held.iter().flat_map(Data::unused));
        names.sort_unstable();
        names.dedup();
        if !names.is_empty() {
            note(&format!("these columns of the examples have no effect: {}", names.join(", ")));
        }
    }

    /// Says what is not learnt as it stands.
    pub fn say_counts(&self) {
        let From::Files { data, .. } = &self.from else { return };
        self.say_unused();
        let Counts { cut, dropped, bad, .. } = data.counts();
        let length = self.options.length;
        for (count, what) in [
            (cut, format!("longer than {length} tokens and cut (see --length)")),
            (dropped, format!("longer than {length} tokens and left out (see --length)")),
            (bad, "bad lines and left out".to_string()),
        ] {
            if count > 0 {
                note(&format!("{count} examples are {what}"));
            }
        }
    }
}

impl fmt::Display for Examples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.from {
            From::Files { data, .. } => {
                let Counts { tokens, targets, .. } = data.counts();
                write!(f, "{}, {tokens} tokens, {targets} of them learnt", data.len())?;
            }
            From::Stdin(_) => write!(f, "from stdin")?,
        }
        let by_itself = if self.by_itself { " (--no-auto-val learns all)" } else { "" };
        self.held.as_ref().map_or(Ok(()), |held| write!(f, "; {} held out{by_itself}", held.len()))?;
        let rehearsed =
            |Rehearsed { data, share, .. }: &Rehearsed| write!(f, "; {share} of {} rehearsed in each step", data.len());
        self.rehearsed.as_ref().map_or(Ok(()), rehearsed)
    }
}
