//! Split files: `NAME-00001-of-0000N.gguf`. Each part is a GGUF file with some of the tensors.

use std::path::{Path, PathBuf};

use crate::gguf::{Gguf, OpenOptions};
use crate::header::Header;
use crate::{Error, FromValue, JoinedSource, Result, Source, tensor};

/// `split.count` is a u16.
const MAX_PARTS: usize = u16::MAX as usize;

/// Opens the other parts of a file that was opened by path, if it has any.
pub fn complete(path: &Path, source: Box<dyn Source>, header: Header, options: OpenOptions) -> Result<Gguf> {
    let count = split_value::<usize>(&header, source.as_ref(), "split.count").map_err(|error| error.in_file(path))?;
    let Some(count) = count.filter(|&count| count > 1) else { return whole(Some(path), source, header) };
    let paths = part_paths(path, count).ok_or_else(|| Error::PartAlone { count }.in_file(path))?;
    let mut parts = Vec::new();
    for (i, part) in paths.iter().enumerate() {
        if !part.exists() {
            return Err(Error::MissingPart { path: part.clone(), number: i + 1, count }.in_file(path));
        }
        parts.push(options.source(part)?);
    }
    join(Some(&paths), parts)
}

/// Returns a file that is not split; fails for one part of several.
pub fn whole(path: Option<&Path>, source: Box<dyn Source>, header: Header) -> Result<Gguf> {
    match split_value::<usize>(&header, source.as_ref(), "split.count")? {
        Some(count) if count > 1 => Err(Error::PartAlone { count }),
        _ => Ok(Gguf { path: path.map(Path::to_owned), source, header }),
    }
}

/// Joins all parts in order. The metadata comes from the first part, the tensors from all parts.
/// Tensor offsets count in the joined source.
pub fn join(paths: Option<&[PathBuf]>, parts: Vec<Box<dyn Source>>) -> Result<Gguf> {
    let named = |i: usize, error: Error| match paths {
        Some(paths) => error.in_file(&paths[i]),
        None => error,
    };
    let mut joined: Option<Header> = None;
    let mut start = 0u64;
    let mut announced = None;
    for (i, source) in parts.iter().enumerate() {
        let mut header = Header::parse(source.as_ref()).map_err(|error| named(i, error))?;
        check_part(&header, source.as_ref(), i, parts.len()).map_err(|error| named(i, error))?;
        for tensor in &mut header.tensors {
            tensor.offset += start;
        }
        start += source.len_bytes();
        match &mut joined {
            None => {
                announced = split_value::<usize>(&header, source.as_ref(), "split.tensors.count")
                    .map_err(|error| named(i, error))?;
                // The joined source is not contiguous in memory, so the header needs a copy of its
                // bytes.
                header.buffer.get_or_insert_with(|| source.bytes().unwrap_or_default().to_vec());
                joined = Some(header);
            }
            Some(first) => {
                check_same_model(first, &header, source.as_ref(), i).map_err(|error| named(i, error))?;
                first.tensors.append(&mut header.tensors);
            }
        }
    }
    let mut header = joined.ok_or(Error::PartAlone { count: 0 })?;
    header.by_name = tensor::by_name(&header.tensors).map_err(|error| named(0, error))?;
    let found = header.tensors.len();
    if let Some(expected) = announced.filter(|&expected| expected != found) {
        let key = "split.tensors.count";
        return Err(named(
            0,
            Error::WrongPart {
                number: 1,
                key,
                expected: format!("{found} (of all parts)"),
                found: expected.to_string(),
            },
        ));
    }
    let path = paths.and_then(|paths| paths.first().cloned());
    Ok(Gguf { path, source: Box::new(JoinedSource::new(parts)), header })
}

fn check_part(header: &Header, source: &dyn Source, i: usize, count: usize) -> Result<()> {
    for (key, expected) in [("split.no", i), ("split.count", count)] {
        let found = split_value::<usize>(header, source, key)?;
        // A file without split keys is accepted as the only part.
        if found != Some(expected) && !(found.is_none() && count == 1) {
            let found = found.map_or("missing".into(), |found| found.to_string());
            return Err(Error::WrongPart { number: i + 1, key, expected: expected.to_string(), found });
        }
    }
    Ok(())
}

/// The other parts repeat a few keys of the first part. The repeated keys must have the same
/// values.
fn check_same_model(first: &Header, header: &Header, source: &dyn Source, i: usize) -> Result<()> {
    let first_bytes = first.buffer.as_deref().unwrap_or_default();
    for key in ["general.architecture", "general.name", "split.tensors.count"] {
        let (ours, theirs) = (first.metadata.get(first_bytes, key), header.metadata.get(header.bytes(source), key));
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        if ours.to_string() != theirs.to_string() {
            return Err(Error::WrongPart { number: i + 1, key, expected: ours.to_string(), found: theirs.to_string() });
        }
    }
    Ok(())
}

fn split_value<T: for<'a> FromValue<'a>>(header: &Header, source: &dyn Source, key: &str) -> Result<Option<T>> {
    let Some(value) = header.metadata.get(header.bytes(source), key) else { return Ok(None) };
    let mismatch = || Error::KeyType { key: key.into(), expected: T::expected(), found: value.describe() };
    T::from_value(value).map(Some).ok_or_else(mismatch)
}

/// The paths of all parts, if the file name has the form of a part's name.
pub fn part_paths(path: &Path, count: usize) -> Option<Vec<PathBuf>> {
    let name = path.file_name()?.to_str()?;
    let rest = name.strip_suffix(".gguf")?.strip_suffix(&format!("-of-{count:05}"))?;
    let (stem, number) = rest.rsplit_once('-')?;
    let number: usize = (number.len() == 5).then(|| number.parse().ok())??;
    let part = |n: usize| path.with_file_name(format!("{stem}-{n:05}-of-{count:05}.gguf"));
    (count <= MAX_PARTS && (1..=count).contains(&number)).then(|| (1..=count).map(part).collect())
}
