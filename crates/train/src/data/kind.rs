//! What a file is, by its first bytes and by its name.

/// How examples stand in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object of JSON in each line.
    Lines,
    /// One list of JSON, over any number of lines, whose elements are objects.
    Array,
    /// Text, which is cut into documents.
    Text,
}

/// What bytes hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Examples(Kind),
    /// Bytes that gzip has packed.
    Gzip,
}

/// Bytes from the beginning of a file that tell what it is.
pub(super) const HEAD_BYTES: usize = 1024;

/// The mark with which some editors begin UTF-8.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// How a file that cannot be read becomes one that can: `command`, with the files for `{in}` and
/// `{out}`.
struct Form {
    /// A name for people.
    name: &'static str,
    /// How the bytes begin; empty where only the name tells.
    begins: &'static [u8],
    /// Where they begin.
    at: usize,
    /// How the file's name ends.
    ends: &'static [&'static str],
    /// How the name of the new file ends, behind its stem.
    end: &'static str,
    command: &'static str,
}

const fn form(
    name: &'static str,
    begins: &'static [u8],
    ends: &'static [&'static str],
    end: &'static str,
    command: &'static str,
) -> Form {
    Form { name, begins, at: 0, ends, end, command }
}

const PARQUET: &str = "python3 -c \"import pandas, sys; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient='records', lines=True)\" {in} {out}";
const FEATHER: &str = "python3 -c \"import pandas, sys; pandas.read_feather(sys.argv[1]).to_json(sys.argv[2], orient='records', lines=True)\" {in} {out}";
const ARROW: &str = "python3 -c \"import pyarrow, sys; pyarrow.ipc.open_stream(sys.argv[1]).read_pandas().to_json(sys.argv[2], orient='records', lines=True)\" {in} {out}";
const TABLE: &str = "python3 -c \"import csv, json, sys; csv.field_size_limit(1 << 30); open(sys.argv[2], 'w').writelines(json.dumps(row) + '\\n' for row in csv.DictReader(open(sys.argv[1], encoding='utf-8-sig', newline='')))\" {in} {out}";
const TABS: &str = "python3 -c \"import csv, json, sys; csv.field_size_limit(1 << 30); open(sys.argv[2], 'w').writelines(json.dumps(row) + '\\n' for row in csv.DictReader(open(sys.argv[1], encoding='utf-8-sig', newline=''), delimiter='\\t'))\" {in} {out}";

/// Forms with a signature, then those that only a name tells.
const FORMS: &[Form] = &[
    form("Parquet", b"PAR1", &[".parquet"], ".jsonl", PARQUET),
    form("Arrow", b"ARROW1", &[".feather"], ".jsonl", FEATHER),
    form("Arrow", b"\xff\xff\xff\xff", &[".arrow"], ".jsonl", ARROW),
    form("a zip archive", b"PK\x03\x04", &[".zip"], "", "unzip -p {in} > {out}"),
    form("packed by zstd", b"\x28\xb5\x2f\xfd", &[".zst", ".zstd"], "", "zstd -d {in} -o {out}"),
    form("packed by xz", b"\xfd7zXZ\0", &[".xz"], "", "xz -dc {in} > {out}"),
    form("packed by bzip2", b"BZh", &[".bz2"], "", "bzip2 -dc {in} > {out}"),
    form("a 7z archive", b"7z\xbc\xaf\x27\x1c", &[".7z"], "", "7z e -so {in} > {out}"),
    form("a rar archive", b"Rar!\x1a\x07", &[".rar"], "", "unrar p -inul {in} > {out}"),
    Form {
        name: "a tar archive",
        begins: b"ustar",
        at: 257,
        ends: &[".tar"],
        end: "",
        command: "tar -xOf {in} > {out}",
    },
    form("a PDF", b"%PDF-", &[".pdf"], ".txt", "pdftotext {in} {out}"),
    form("a table of comma-separated values", b"", &[".csv"], ".jsonl", TABLE),
    form("a table of tab-separated values", b"", &[".tsv", ".tab"], ".jsonl", TABS),
];

/// What a file with this name and beginning holds. The error is the reason against it.
pub(super) fn holds(name: &str, head: &[u8]) -> Result<Holds, String> {
    if head.starts_with(b"\x1f\x8b") {
        return Ok(Holds::Gzip);
    }
    if head.starts_with(b"GGUF") {
        return Err("it is a model (GGUF), not a file of examples".to_string());
    }
    if let Some(codec) = wide(head) {
        let decoded = format!("open(sys.argv[1], 'rb').read().decode('{codec}').encode()");
        let command = format!("python3 -c \"import sys; open(sys.argv[2], 'wb').write({decoded})\" {{in}} {{out}}");
        let end = name.rfind('.').map_or(String::new(), |at| name[at..].to_string());
        return Err(refused(name, &format!("text in {}", codec.to_uppercase()), &format!(".utf8{end}"), &command));
    }
    let begins =
        |form: &&Form| !form.begins.is_empty() && head.get(form.at..).is_some_and(|head| head.starts_with(form.begins));
    if let Some(form) = FORMS.iter().find(begins) {
        return Err(refused(name, form.name, form.end, form.command));
    }
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    let lower = name.to_ascii_lowercase();
    let named = [".jsonl", ".json", ".ndjson"].iter().any(|end| lower.ends_with(end));
    let lists = text.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"));
    match text.first() {
        Some(b'{') => return Ok(Holds::Examples(Kind::Lines)),
        Some(b'[') if named || lists => return Ok(Holds::Examples(Kind::Array)),
        _ if named => return Ok(Holds::Examples(Kind::Lines)),
        _ => {}
    }
    let table = FORMS.iter().find(|form| form.ends.iter().any(|end| lower.ends_with(end)));
    if let Some(form) = table.filter(|_| !text.is_empty()).or_else(|| columns(text)) {
        return Err(refused(name, form.name, form.end, form.command));
    }
    if head.contains(&0) {
        return Err("it holds bytes of zero, so it is no text; give JSON lines or text in UTF-8".to_string());
    }
    Ok(Holds::Examples(Kind::Text))
}

/// What the unpacked bytes of a file that gzip has packed are. The error is the reason against it.
pub(super) fn inside(name: &str, head: &[u8]) -> Result<Kind, String> {
    match holds(name.strip_suffix(".gz").unwrap_or(name), head) {
        Ok(Holds::Examples(kind)) => Ok(kind),
        Ok(Holds::Gzip) => Err("it is packed twice; unpack it once (gunzip)".to_string()),
        Err(reason) => Err(format!("unpack it (gunzip); {reason}")),
    }
}

/// The codec of a text with units of 16 or 32 bits, by its mark, or by the zeros beside a first
/// character that is in ASCII.
fn wide(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("utf-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("utf-16"),
        [1..=0x7f, 0, 1..=0x7f, 0, ..] => Some("utf-16-le"),
        [0, 1..=0x7f, 0, 1..=0x7f, ..] => Some("utf-16-be"),
        _ => None,
    }
}

/// The form of a table whose first line names the columns of examples.
fn columns(text: &[u8]) -> Option<&'static Form> {
    let line = text.split(|byte| *byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok())?;
    [(',', ".csv"), ('\t', ".tsv")].into_iter().find_map(|(separator, end)| {
        let names: Vec<&str> = line.split(separator).map(|name| name.trim().trim_matches('"')).collect();
        let pairs = [["prompt", "completion"], ["instruction", "output"]];
        let found = pairs.iter().any(|pair| pair.iter().all(|name| names.contains(name)));
        FORMS.iter().find(|form| found && form.ends.contains(&end))
    })
}

/// A sentence with the command that makes a file which can be read.
fn refused(name: &str, what: &str, end: &str, command: &str) -> String {
    let file = name.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let stem = name.rfind('.').filter(|at| *at > file).map_or(name, |at| &name[..at]);
    let made = if end.is_empty() && stem == name { format!("{name}.out") } else { format!("{stem}{end}") };
    let command = command.replace("{out}", &quoted(&made)).replace("{in}", &quoted(name));
    format!("it is {what}; this makes a file that can be read: {command}")
}

/// A file's name as a word of a shell.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/\\:".contains(c);
    if name.chars().all(plain) && !name.starts_with('-') {
        name.to_string()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}
