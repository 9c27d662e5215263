//! An open file: metadata, tensors and their data.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::header::Header;
use crate::{Error, FileSource, FromValue, GgmlType, Result, Source, TensorInfo, Value, split};

/// Number of bytes that `dequantized` reads at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// A checked GGUF file, single or split.
///
/// Opening reads only the header. [`Gguf::read_tensor`] reads tensor data by positioned reads,
/// which return an error if the file was truncated after opening. [`Gguf::tensor_bytes`] returns
/// the data in place if the file is in memory, or was mapped through [`OpenOptions`].
pub struct Gguf {
    pub(crate) path: Option<PathBuf>,
    pub(crate) source: Box<dyn Source>,
    pub(crate) header: Header,
}

/// How to open a file. The default reads it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Maps the file, so that [`Gguf::tensor_bytes`] works. If another process truncates a mapped
    /// file, touching the lost bytes ends this process. Has no effect without the feature `mmap`.
    pub mmap: bool,
}

impl OpenOptions {
    /// Sets whether the file is mapped. Has no effect without the feature `mmap`.
    #[must_use]
    pub fn mmap(self, mmap: bool) -> Self {
        Self { mmap }
    }

    pub(crate) fn source(self, path: &Path) -> Result<Box<dyn Source>> {
        #[cfg(feature = "mmap")]
        if self.mmap {
            let file = FileSource::open(path)?;
            // An empty file cannot be mapped. Parsing it reports the error.
            return if file.len_bytes() == 0 {
                Ok(Box::new(file))
            } else {
                Ok(Box::new(crate::MapSource::open(path)?))
            };
        }
        Ok(Box::new(FileSource::open(path)?))
    }
}

impl Gguf {
    /// Opens a file for positioned reads. Opening any part of a split file
    /// (`NAME-00001-of-00003.gguf`) opens all its parts. [`Gguf::open_with`] can map the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens a file with `options`.
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let source = options.source(path)?;
        let header = Header::parse(source.as_ref()).map_err(|error| error.in_file(path))?;
        split::complete(path, source, header, options)
    }

    /// Reads a file from memory; strings and arrays borrow from these bytes.
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self> {
        Self::from_source(Box::new(bytes.into()))
    }

    /// Reads a file from any source. Fails for a part of a split file. [`Gguf::from_parts`] reads
    /// all parts of a split file.
    pub fn from_source(source: Box<dyn Source>) -> Result<Self> {
        let header = Header::parse(source.as_ref())?;
        split::whole(None, source, header)
    }

    /// Reads a split file from all its parts in order.
    pub fn from_parts(parts: Vec<Box<dyn Source>>) -> Result<Self> {
        split::join(None, parts)
    }

    /// The path that was opened; for a split file, the path of the first part.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The paths of all parts; one path for a file that is not split, none for a file in memory.
    pub fn paths(&self) -> Vec<PathBuf> {
        let count = self.get_opt("split.count").ok().flatten().filter(|&count: &usize| count > 1);
        let parts = |path: &Path| count.and_then(|count| split::part_paths(path, count));
        self.path.as_deref().map_or_else(Vec::new, |path| parts(path).unwrap_or_else(|| vec![path.to_owned()]))
    }

    /// The source of all bytes. Tensor offsets count from its start.
    pub fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    /// The format's version, 1 to 3.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// The alignment of tensor data in bytes.
    pub fn alignment(&self) -> u32 {
        self.header.alignment
    }

    /// `general.architecture`, such as `qwen3`.
    pub fn architecture(&self) -> Result<&str> {
        self.get("general.architecture")
    }

    /// All metadata in the order of the file; for a split file, the metadata of the first part.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.header.metadata.iter(self.header_bytes())
    }

    /// A required value. Fails if the key is missing or its value has another type; the error names
    /// the key and both types.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T> {
        self.get_opt(key)?.ok_or_else(|| self.locate(Error::MissingKey { key: key.into() }))
    }

    /// An optional value. A value of another type is an error, not `None`.
    pub fn get_opt<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.header.metadata.get(self.header_bytes(), key) else { return Ok(None) };
        T::from_value(value).map(Some).ok_or_else(|| {
            let found = value.describe();
            self.locate(Error::KeyType { key: key.into(), expected: T::expected(), found })
        })
    }

    /// All tensors in the order of the file.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// The tensor with this name, if there is one.
    pub fn find_tensor(&self, name: &str) -> Option<&TensorInfo> {
        let at = |&i: &u32| &self.header.tensors[i as usize];
        let found = self.header.by_name.binary_search_by(|i| at(i).name().cmp(name)).ok()?;
        Some(at(&self.header.by_name[found]))
    }

    /// The tensor with this name, or an error.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        self.find_tensor(name).ok_or_else(|| self.locate(Error::MissingTensor { tensor: name.into() }))
    }

    /// Fills `buf` with the tensor's data, starting at `offset_bytes`, by a positioned read.
    pub fn read_tensor(&self, tensor: &TensorInfo, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        tensor.ty().map_err(|error| self.locate(error))?;
        if offset_bytes.checked_add(buf.len() as u64).is_none_or(|end| end > tensor.bytes) {
            let (tensor, bytes) = (tensor.name().to_owned(), tensor.bytes);
            return Err(self.locate(Error::TensorRange { tensor, offset: offset_bytes, len: buf.len(), bytes }));
        }
        let offset = tensor.offset.saturating_add(offset_bytes);
        let len = buf.len();
        let failed = |error| {
            self.locate(Error::ReadTensor { tensor: tensor.name().to_owned(), offset: offset_bytes, len, error })
        };
        self.source.read_at(offset, buf).map_err(failed)
    }

    /// The tensor's data in place, if the file is in memory or mapped and the type is known.
    pub fn tensor_bytes(&self, tensor: &TensorInfo) -> Option<&[u8]> {
        tensor.ty().ok()?;
        self.source.slice(tensor.offset, tensor.bytes)
    }

    /// The whole tensor as f32, in the order of the file.
    pub fn dequantized(&self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let ty = tensor.ty().map_err(|error| self.locate(error))?;
        let too_large =
            || self.locate(Error::OutOfMemory { tensor: tensor.name().into(), elements: tensor.elements() });
        let elements = usize::try_from(tensor.elements()).map_err(|_| too_large())?;
        let mut out = Vec::new();
        out.try_reserve_exact(elements).map_err(|_| too_large())?;
        out.resize(elements, 0.0);
        self.dequantize_into(ty, tensor, &mut out)?;
        Ok(out)
    }

    fn dequantize_into(&self, ty: GgmlType, tensor: &TensorInfo, out: &mut [f32]) -> Result<()> {
        let blocks = CHUNK_BYTES / ty.block_bytes();
        let mut bytes = vec![0; blocks * ty.block_bytes()];
        let mut offset = 0;
        for out in out.chunks_mut(blocks * ty.block_size()) {
            let bytes = &mut bytes[..out.len() / ty.block_size() * ty.block_bytes()];
            self.read_tensor(tensor, offset, bytes)?;
            crate::dequantize(ty, bytes, out)?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }

    fn header_bytes(&self) -> &[u8] {
        self.header.bytes(self.source.as_ref())
    }

    /// Adds the path of this file to an error.
    fn locate(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.in_file(path),
            None => error,
        }
    }
}

impl fmt::Debug for Gguf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("path", &self.path)
            .field("tensors", &self.header.tensors.len())
            .finish_non_exhaustive()
    }
}
