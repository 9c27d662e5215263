//! Writing files: takes metadata and tensors and writes a checked GGUF file of version 3.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::header::{DEFAULT_ALIGNMENT, MAX_ALIGNMENT};
use crate::host::WriteData;
use crate::meta_value::put_string;
use crate::metadata::MAX_KEY_BYTES;
use crate::tensor::{MAX_DIMS, MAX_NAME_BYTES, data_bytes};
use crate::{Error, GgmlType, Gguf, MaybeSend, MaybeSync, MetaValue, NameProblem, Result, atomic_write};

/// Collects metadata and tensors and writes them. Keys and tensors keep their order.
///
/// All checks run when the file is written: names, shapes, sizes and alignment must be valid, so
/// that [`Gguf`] can read the result.
#[derive(Clone, Debug, Default)]
pub struct GgufBuilder<'a> {
    metadata: Vec<(String, MetaValue)>,
    tensors: Vec<Tensor<'a>>,
}

#[derive(Clone, Debug)]
struct Tensor<'a> {
    name: String,
    dims: Vec<u64>,
    /// The number of the type, or the type if it has none.
    ty_number: Result<u32, GgmlType>,
    data: Data<'a>,
}

/// The data of a tensor.
#[derive(Clone)]
enum Data<'a> {
    Bytes(Cow<'a, [u8]>),
    /// Produced while the file is written.
    Written(Arc<WriteData<'a>>),
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Data::Written(_) => f.write_str("a function"),
        }
    }
}

impl<'a> GgufBuilder<'a> {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key, replacing its value if it has one. Arrays come from `Vec`s, strings from `&str`.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<MetaValue>) -> Self {
        let (key, value) = (key.into(), value.into());
        match self.metadata.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key, value)),
        }
        self
    }

    /// Removes a key, if it is set.
    pub fn remove(mut self, key: &str) -> Self {
        self.metadata.retain(|(known, _)| known != key);
        self
    }

    /// Copies all metadata of another file except `split.*`, which describes how that file was
    /// stored.
    pub fn copy_metadata(self, from: &Gguf) -> Self {
        from.metadata()
            .filter(|(key, _)| !key.starts_with("split."))
            .fold(self, |builder, (key, value)| builder.set(key, value))
    }

    /// Sets `general.alignment`: a power of two of at most 1 MiB. The default is 32.
    pub fn alignment(self, alignment: u32) -> Self {
        self.set("general.alignment", alignment)
    }

    /// Adds a tensor of a type that files have. `dims` has the fastest dimension first; `data` is
    /// in the layout of `ty`.
    pub fn tensor(self, name: impl Into<String>, dims: &[u64], ty: GgmlType, data: impl Into<Cow<'a, [u8]>>) -> Self {
        self.add(name.into(), dims, ty.number().ok_or(ty), Data::Bytes(data.into()))
    }

    /// Adds a tensor with any type number, known or unknown. The data size of an unknown type is
    /// not checked.
    pub fn tensor_of_number(
        self,
        name: impl Into<String>,
        dims: &[u64],
        ty_number: u32,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        self.add(name.into(), dims, Ok(ty_number), Data::Bytes(data.into()))
    }

    /// Adds a tensor whose data does not have to be in memory: `write` writes it, in the layout of
    /// `ty`, whenever the file is written. Writing fails if the size is not that of the shape.
    pub fn tensor_written(
        self,
        name: impl Into<String>,
        dims: &[u64],
        ty: GgmlType,
        write: impl Fn(&mut dyn Write) -> io::Result<()> + MaybeSend + MaybeSync + 'a,
    ) -> Self {
        self.add(name.into(), dims, ty.number().ok_or(ty), Data::Written(Arc::new(write)))
    }

    /// Adds a tensor of type F32.
    pub fn tensor_f32(self, name: impl Into<String>, dims: &[u64], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, dims, GgmlType::F32, bytes)
    }

    /// The size of the file in bytes.
    pub fn len_bytes(&self) -> Result<u64> {
        let alignment = self.checked_alignment()?;
        let header = self.header(alignment)?.len() as u64;
        self.tensors.iter().try_fold(header, |len, tensor| Ok(len + padded(tensor.check()?.1, alignment)))
    }

    /// Writes the file.
    pub fn write_to(&self, mut out: impl Write) -> Result<()> {
        let alignment = self.checked_alignment()?;
        let header = self.header(alignment)?;
        let write = |out: &mut dyn Write| -> io::Result<()> {
            out.write_all(&header)?;
            for tensor in &self.tensors {
                let bytes = tensor.write(out)?;
                out.write_all(&vec![0; (padded(bytes, alignment) - bytes) as usize])?;
            }
            out.flush()
        };
        write(&mut out).map_err(|error| Error::Write { error })
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the file atomically: the final name appears only when the file is complete.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let alignment = self.checked_alignment().map_err(|error| error.in_file(path))?;
        self.header(alignment).map_err(|error| error.in_file(path))?;
        atomic_write(path, |out| Ok(self.write_to(out)?))
    }

    fn add(mut self, name: String, dims: &[u64], ty_number: Result<u32, GgmlType>, data: Data<'a>) -> Self {
        self.tensors.push(Tensor { name, dims: dims.into(), ty_number, data });
        self
    }

    fn header(&self, alignment: u64) -> Result<Vec<u8>> {
        self.check_names()?;
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            put_string(&mut out, key.as_bytes());
            out.extend((value.ty() as u32).to_le_bytes());
            value.encode(key, &mut out)?;
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            let (ty_number, bytes) = tensor.check()?;
            put_string(&mut out, tensor.name.as_bytes());
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(ty_number.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += padded(bytes, alignment);
        }
        out.resize(padded(out.len() as u64, alignment) as usize, 0);
        Ok(out)
    }

    fn checked_alignment(&self) -> Result<u64> {
        match self.metadata.iter().find(|(key, _)| key == "general.alignment") {
            None => Ok(DEFAULT_ALIGNMENT.into()),
            Some((_, MetaValue::U32(alignment))) if alignment.is_power_of_two() && *alignment <= MAX_ALIGNMENT => {
                Ok((*alignment).into())
            }
            Some((_, other)) => Err(Error::Alignment { found: format!("{other:?}"), limit: MAX_ALIGNMENT }),
        }
    }

    fn check_names(&self) -> Result<()> {
        let keys = self.metadata.iter().map(|(key, _)| ("key", key, MAX_KEY_BYTES));
        let names = self.tensors.iter().map(|tensor| ("tensor name", &tensor.name, MAX_NAME_BYTES));
        for (what, name, limit) in keys.chain(names) {
            let bytes = name.len() as u64;
            if bytes == 0 {
                return Err(Error::Name { what, offset: 0, problem: NameProblem::Empty });
            }
            if bytes > limit {
                return Err(Error::Name { what, offset: 0, problem: NameProblem::TooLong { bytes, limit } });
            }
        }
        let mut names: Vec<&str> = self.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::Duplicate { what: "tensor", name: pair[0].into() }),
            None => Ok(()),
        }
    }
}

impl Tensor<'_> {
    /// Checks everything about the tensor and returns the number of its type and the size of its
    /// data.
    fn check(&self) -> Result<(u32, u64)> {
        let (tensor, found) = (self.name.clone(), self.dims.len() as u32);
        let ty_number = self.ty_number.map_err(|ty| Error::NotInFiles { tensor: self.name.clone(), ty })?;
        if found == 0 || found > MAX_DIMS {
            return Err(Error::DimensionCount { tensor, found });
        }
        let mut dims = [1; 4];
        dims[..self.dims.len()].copy_from_slice(&self.dims);
        let expected = data_bytes(&self.name, dims, self.dims.len(), ty_number)?;
        let found = match &self.data {
            Data::Bytes(bytes) => bytes.len() as u64,
            Data::Written(_) => expected,
        };
        if found == expected || GgmlType::from_u32(ty_number).is_none() && found > 0 {
            return Ok((ty_number, found));
        }
        Err(Error::DataSize { tensor, expected, found })
    }

    /// Writes the data and returns its size.
    fn write(&self, out: &mut dyn Write) -> io::Result<u64> {
        let expected = self.check()?.1;
        match &self.data {
            Data::Bytes(bytes) => out.write_all(bytes)?,
            Data::Written(write) => {
                let mut counted = Counted { out, bytes: 0 };
                write(&mut counted)?;
                let found = counted.bytes;
                if found != expected {
                    return Err(Error::DataSize { tensor: self.name.clone(), expected, found }.into());
                }
            }
        }
        Ok(expected)
    }
}

/// Counts the bytes that it passes on.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn padded(len: u64, alignment: u64) -> u64 {
    len.next_multiple_of(alignment)
}
