//! The version of the C library that a binary needs.

use anyhow::{Context as _, Result};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, SectionHeader as _};
use std::fmt;

/// A version of glibc: 2.31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The highest version of glibc whose symbols a binary needs. `None` where it needs none, or is no
/// ELF file of 64 bits.
pub fn needed(bytes: &[u8]) -> Result<Option<Version>> {
    let Ok(header) = FileHeader64::<Endianness>::parse(bytes) else { return Ok(None) };
    let order = header.endian()?;
    let sections = header.sections(order, bytes)?;
    let mut versions = vec![];
    for section in sections.iter() {
        let Some((mut libraries, strings)) = section.gnu_verneed(order, bytes)? else { continue };
        let strings = sections.strings(order, bytes, strings)?;
        while let Some((_, mut symbols)) = libraries.next()? {
            while let Some(symbol) = symbols.next()? {
                let name = std::str::from_utf8(symbol.name(order, strings)?).context("a version of symbols")?;
                versions.extend(version(name));
            }
        }
    }
    Ok(versions.into_iter().max())
}

/// The version in a name such as `GLIBC_2.2.5`.
fn version(name: &str) -> Option<Version> {
    let mut parts = name.strip_prefix("GLIBC_")?.split('.').map(str::parse);
    Some(Version(parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Version, needed, version};

    #[test]
    fn names_of_other_libraries_have_no_version() {
        assert_eq!(version("GLIBC_2.2.5"), Some(Version(2, 2)));
        assert_eq!(version("GLIBC_2.35"), Some(Version(2, 35)));
        assert_eq!(version("GCC_4.2.0"), None);
        assert!(Version(2, 4) < Version(2, 31) && Version(2, 31) < Version(3, 0));
        assert_eq!(needed(b"#!/bin/sh\n").expect("no ELF file"), None);
    }

    /// Every Rust program takes `__libc_start_main` and more from glibc, of 2.17 or later.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn the_needs_of_this_test_are_found() {
        let own = std::fs::read(std::env::current_exe().expect("a path")).expect("a file");
        assert!(needed(&own).expect("an ELF file").expect("needs glibc") >= Version(2, 17));
    }
}
