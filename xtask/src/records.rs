//! Results of long checks in text files, one per line. A result holds while the hash of its subject
//! does.

use crate::faults;
use crate::workspace::root;
use anyhow::Context as _;
use kernels::testing::drawn::Drawn;
use kernels::testing::sweep::Target;
use kernels::{Class, Device};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;

/// A file of results: its path and its first line.
pub type File = (&'static str, &'static str);

/// The results of one file, sorted by subject and adapter.
pub struct Records {
    path: PathBuf,
    head: &'static str,
    /// The hash and the result of each subject on each adapter.
    rows: BTreeMap<(String, String), (String, String)>,
}

impl Records {
    /// Reads a file. A file that does not exist has no results.
    pub fn read((path, head): File) -> anyhow::Result<Self> {
        let path = root().join(path);
        let text = if path.exists() {
            std::fs::read_to_string(&path).with_context(|| path.display().to_string())?
        } else {
            String::new()
        };
        Self::parse(path, head, &text)
    }

    pub fn parse(path: PathBuf, head: &'static str, text: &str) -> anyhow::Result<Self> {
        let row = |line: &str| {
            let mut parts = line.splitn(4, '\t').map(str::to_string);
            let mut next =
                || parts.next().with_context(|| format!("{}: a line without four columns: {line:?}", path.display()));
            Ok::<_, anyhow::Error>(((next()?, next()?), (next()?, next()?)))
        };
        let rows = text.lines().skip(1).map(row).collect::<Result<_, _>>()?;
        Ok(Self { path, head, rows })
    }

    /// The result of a subject on an adapter, if it was made with this hash.
    pub fn of(&self, subject: &str, adapter: &str, hash: &str) -> Option<&str> {
        let (known, result) = self.rows.get(&(subject.to_string(), adapter.to_string()))?;
        (known == hash).then_some(result)
    }

    /// The adapters that have results.
    pub fn adapters(&self) -> BTreeSet<String> {
        self.rows.keys().map(|(_, adapter)| adapter.clone()).collect()
    }

    /// The subjects that have a result on an adapter.
    pub fn subjects(&self, adapter: &str) -> impl Iterator<Item = &str> {
        self.rows.keys().filter(move |(_, of)| of == adapter).map(|(subject, _)| subject.as_str())
    }

    /// Notes a result.
    pub fn put(&mut self, subject: &str, adapter: &str, hash: &str, result: String) {
        self.rows.insert((subject.to_string(), adapter.to_string()), (hash.to_string(), result));
    }

    /// Drops the results of this adapter about other subjects.
    pub fn keep(&mut self, adapter: &str, subject: impl Fn(&str) -> bool) {
        self.rows.retain(|(name, of), _| of != adapter || subject(name));
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.head);
        for ((subject, adapter), (hash, result)) in &self.rows {
            writeln!(text, "{subject}\t{adapter}\t{hash}\t{result}").expect("a string takes everything");
        }
        text
    }

    /// Writes the file.
    pub fn write(&self) -> anyhow::Result<()> {
        std::fs::write(&self.path, self.text()).with_context(|| self.path.display().to_string())
    }
}

/// The name of a device's kind. Software drivers of all machines with the same subgroups are one
/// kind.
pub fn adapter(device: &Device) -> String {
    match device.adapter().class {
        Class::Software => format!("software, subgroups of {}", device.caps().subgroup_size),
        _ => device.adapter().name.clone(),
    }
}

/// A hash over parts whose lengths count.
#[derive(Default)]
pub struct Digest(Sha256);

impl Digest {
    pub fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds a shader: its text without comments, its bounds and its cases.
    pub fn shader(&mut self, target: &Target, source: &str, cases: &HashMap<&'static str, String>) {
        self.add(target.shader.label().as_bytes());
        self.add(code(source).as_bytes());
        let variant = target.shader.variant;
        [variant.kernel.nmse, variant.peak].iter().for_each(|bound| self.add(&bound.to_le_bytes()));
        self.add(cases[target.stem].as_bytes());
    }

    /// The first 64 bits in hexadecimal digits.
    pub fn text(self) -> String {
        self.0.finalize().iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// A shader without comments.
pub fn code(source: &str) -> String {
    let lines: Vec<&str> = source.lines().map(faults::code).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// The hash of the cases of each stem. The first seeds show every change of how cases are drawn.
pub fn cases(targets: &[Target]) -> HashMap<&'static str, String> {
    let of = |stem: &'static str| {
        let mut digest = Digest::default();
        (0..4).for_each(|seed| Drawn::of(stem, seed, None).case().content(&mut |part| digest.add(part)));
        digest.text()
    };
    let stems: BTreeSet<_> = targets.iter().map(|target| target.stem).collect();
    stems.into_iter().map(|stem| (stem, of(stem))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::testing::kernel::{Kernel, Variant};

    #[test]
    fn results_hold_for_their_subject_their_adapter_and_their_hash() {
        let text = "subject\tadapter\thash\ta\tb\nx\tcard\t01\t1\t2\ny\tcard\t02\t3\t4\n";
        let mut records = Records::parse(PathBuf::new(), "subject\tadapter\thash\ta\tb", text).unwrap();
        assert_eq!(records.text(), text);
        assert_eq!(records.of("x", "card", "01"), Some("1\t2"));
        assert_eq!(
            (records.of("x", "card", "02"), records.of("x", "other", "01"), records.of("z", "card", "01")),
            (None, None, None)
        );
        records.put("x", "other", "05", "5\t6".to_string());
        records.put("y", "card", "03", "7\t8".to_string());
        assert_eq!((records.of("y", "card", "02"), records.of("y", "card", "03")), (None, Some("7\t8")));
        records.keep("card", |name| name == "y");
        assert_eq!(records.text(), "subject\tadapter\thash\ta\tb\nx\tother\t05\t5\t6\ny\tcard\t03\t7\t8\n");
        assert!(Records::parse(PathBuf::new(), "", "head\nx\tcard\n").is_err());
    }

    #[test]
    fn the_hash_of_a_shader_changes_with_both_bounds_and_with_no_comment() {
        let mut targets = Target::all(&kernels::Caps::WEBGPU);
        targets.retain(|target| target.stem == "softcap");
        let Variant { kernel, name, fill, needs, peak, only } = *targets[0].shader.variant;
        let hash = |source: &str, nmse: f64, peak: f64| {
            let kernel = Box::leak(Box::new(Kernel { nmse, ..*kernel }));
            let mut target = targets[0].clone();
            target.shader.variant = Box::leak(Box::new(Variant { kernel, name, fill, needs, peak, only }));
            let mut digest = Digest::default();
            digest.shader(&target, source, &HashMap::from([("softcap", String::new())]));
            digest.text()
        };
        let text = "let a = 1.0;\n";
        let own = hash(text, kernel.nmse, peak);
        assert_ne!(own, hash(text, 2.0 * kernel.nmse, peak));
        assert_ne!(own, hash(text, kernel.nmse, 2.0 * peak));
        for other in
            ["// more words\nlet a = 1.0;\n", "let a = 1.0; // why\n", "\n    // why\nlet a = 1.0; //~ exit: sign\n"]
        {
            assert_eq!(own, hash(other, kernel.nmse, peak), "{other:?}");
        }
        assert_ne!(own, hash("let a = 2.0;\n", kernel.nmse, peak));
    }

    #[test]
    fn the_hash_of_a_shader_changes_with_its_text_and_its_cases() {
        let targets: Vec<_> =
            Target::all(&kernels::Caps::WEBGPU).into_iter().filter(|target| target.stem == "softcap").collect();
        let hash = |source: &str, cases: &str| {
            let mut digest = Digest::default();
            digest.shader(&targets[0], source, &HashMap::from([("softcap", cases.to_string())]));
            digest.text()
        };
        assert_eq!(hash("a", "b"), hash("a", "b"));
        assert_ne!(hash("a", "b"), hash("c", "b"));
        assert_ne!(hash("a", "b"), hash("a", "c"));
        assert_ne!(hash("ab", ""), hash("a", "b"));
        let of = cases(&targets);
        assert_eq!(of, cases(&targets));
        assert_eq!(of.keys().collect::<Vec<_>>(), [&"softcap"]);
    }
}
