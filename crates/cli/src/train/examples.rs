//! The examples of a run: from files, by an index, or from stdin.

use super::args::{Args, Held, Learnt, Longer};
use crate::exit::note;
use crate::progress::Bar;
use anyhow::Result;
use kernels::Executor;
use model::ModelFile;
use std::fmt;
use std::io::{BufReader, stdin};
use train::{Batches, Counts, Data, DataOptions, Document, Facts, Learn, Piece, Position, Stream, Texts};

/// Most tokens of an example, if the model's context is longer.
const LENGTH: u32 = 2048;
/// Tokens that are computed together, if batches have as many.
const ROWS: u64 = 1024;

enum From {
    Files { data: Data, batches: Batches, before: Position },
    Stdin(Box<Stream>),
}

/// What a run learns, and what it is judged by.
pub struct Examples {
    from: From,
    held: Option<Data>,
    length: u32,
}

impl Examples {
    /// Opens and checks the files; stdin is read while it is learnt.
    pub fn open(args: &Args, file: &ModelFile) -> Result<Self> {
        let context = args.source.named(file.check(&Executor::Cpu))?.summary().context_length;
        let length = args.length.unwrap_or(context.min(LENGTH));
        let learn = if args.loss == Learnt::All { Learn::All } else { Learn::Completions };
        let longer = if args.longer == Longer::Drop { train::Longer::Drop } else { train::Longer::Cut };
        let options = DataOptions::default().length(length).longer(longer).learn(learn).skip_bad(args.skip_bad);
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
            return Ok(Self { from, held, length });
        }
        let data = read(&args.data)?;
        let (data, held) = match args.val {
            Some(Held::Share(share)) => data.split(share, args.seed).map(|(data, held)| (data, Some(held)))?,
            _ => (data, held),
        };
        let batches = Batches::new(data.clone(), args.batch, args.seed);
        let batches = if args.no_shuffle { batches.in_order() } else { batches };
        Ok(Self { from: From::Files { data, batches, before: Position::default() }, held, length })
    }

    /// The documents of the next batch; `None` at the end of stdin.
    pub fn next(&mut self, batch: u32) -> Result<Option<Vec<Document>>> {
        match &mut self.from {
            From::Files { batches, before, .. } => {
                *before = batches.position();
                Ok(Some(batches.next()?))
            }
            From::Stdin(stream) => Ok(Some(stream.next(batch)?).filter(|documents| !documents.is_empty())),
        }
    }

    /// Gives the last batch again. What came from stdin is gone.
    pub fn step_back(&mut self) {
        if let From::Files { batches, before, .. } = &mut self.from {
            batches.seek(*before).expect("a place where it was");
        }
    }

    /// The position behind the last batch.
    pub fn position(&self) -> String {
        match &self.from {
            From::Files { batches, .. } => batches.position().to_string(),
            From::Stdin(stream) => format!("example {}", stream.counts().examples),
        }
    }

    /// Goes on at a position that [`Examples::position`] gave. `None` begins at the first example.
    pub fn seek(&mut self, position: Option<&str>) -> Result<()> {
        if let From::Files { batches, .. } = &mut self.from {
            batches.seek(position.map_or(Ok(Position::default()), str::parse)?)?;
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

    /// Batches of an epoch, if they are known.
    pub fn batches(&self) -> Option<u64> {
        match &self.from {
            From::Files { batches, .. } => Some(batches.per_epoch()),
            From::Stdin(_) => None,
        }
    }

    /// Tokens that are computed together: enough for most batches and for every example.
    pub fn rows(&self, batch: u32) -> u32 {
        let From::Files { data, .. } = &self.from else { return self.length.max(ROWS as u32) };
        let Counts { tokens, documents, examples, longest, .. } = data.counts();
        let held = self.held.as_ref().map_or(0, |held| held.counts().longest);
        let whole = tokens * u64::from(batch) / examples.max(1);
        let slack = whole / 4 + tokens / documents.max(1);
        u32::try_from((whole + slack).min(ROWS)).unwrap_or(u32::MAX).max(longest).max(held)
    }

    /// The most tokens that examples fill a step with, if it is known: without packing a step has
    /// one document, else at most those of a batch.
    pub fn most_rows(&self, batch: u32, packing: bool) -> Option<u32> {
        let From::Files { data, .. } = &self.from else { return None };
        let all = [Some(data), self.held.as_ref()].into_iter().flatten().map(Data::counts);
        let most = all.map(|Counts { documents, examples, longest, .. }| match (packing, documents == examples) {
            (false, _) => Some(longest),
            (true, true) => Some(longest.saturating_mul(batch)),
            // An example of several documents may have any number of tokens.
            (true, false) => None,
        });
        most.collect::<Option<Vec<u32>>>()?.into_iter().max()
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
        let length = self.length;
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
        self.held.as_ref().map_or(Ok(()), |held| write!(f, "; {} held out", held.len()))
    }
}
