//! `dist`: the command as an archive, for machines without a compiler.

mod archive;
mod licences;
mod symbols;

use crate::workspace::root;
use anyhow::{Context as _, Result, ensure};
use archive::Entry;
use std::path::{Path, PathBuf};
use std::process::Command;
use symbols::Version;

/// The C library of Debian 11, the oldest system that the archive is for.
const OLDEST: Version = Version(2, 31);

/// The files of the workspace that go into the archive.
const FILES: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Shells, and the names under which they look for completions.
const SHELLS: [(&str, &str); 3] = [("bash", "weft.bash"), ("fish", "weft.fish"), ("zsh", "_weft")];

/// Build the command for release, and write target/dist/weft-VERSION-TARGET.tar.gz and its SHA-256
///
/// The pages of `weft web` are built first, as `cargo xtask web` does.
/// On Linux the binary must start with the C library of Debian 11 (glibc 2.31). A newer system
/// links newer symbols, so the build takes `cargo zigbuild`, which links those of 2.31. Equal files
/// give an equal archive: entries are in order and have no times and no owners.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  pip install ziglang cargo-zigbuild    once, on Linux
  cargo xtask dist
  cargo xtask dist --binary target/release/weft    pack a binary that is there")]
pub struct Args {
    /// Pack this binary instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let target = host()?;
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => build(&target)?,
    };
    let name = format!("weft-{}-{target}", crate::packages::version()?);
    let file = pack(&binary, &name, &licences::notices(&target)?, &crate::packages::target("dist"))?;
    println!("{}", file.display());
    Ok(())
}

/// The target that the compiler builds for by default.
fn host() -> Result<String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    Ok(line.to_string())
}

/// Builds the command and returns its path.
fn build(target: &str) -> Result<PathBuf> {
    let (command, as_target) = if target.ends_with("linux-gnu") {
        ("zigbuild", format!("{target}.{OLDEST}"))
    } else {
        ("build", target.to_string())
    };
    // `weft web` serves them from the binary.
    let pages = crate::web::built()?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env("WEFT_PAGES", std::path::absolute(pages)?);
    cargo.args([command, "--locked", "--release", "-p", "cli", "--bin", "weft", "--target", &as_target]);
    let built = cargo.current_dir(root()).status().context("starting cargo")?;
    ensure!(
        built.success(),
        "cargo {command} failed; on Linux it needs `pip install ziglang cargo-zigbuild`, both on the path"
    );
    Ok(crate::packages::target(target).join(format!("release/weft{}", std::env::consts::EXE_SUFFIX)))
}

/// Packs a binary with its pages, completions and licences. Returns the archive, beside which the
/// file with its SHA-256 is.
fn pack(binary: &Path, name: &str, notices: &str, out: &Path) -> Result<PathBuf> {
    let bytes = std::fs::read(binary).with_context(|| binary.display().to_string())?;
    if let Some(needed) = symbols::needed(&bytes)? {
        ensure!(
            needed <= OLDEST,
            "{} needs glibc {needed}, but Debian 11 has {OLDEST}; build it with `cargo zigbuild`, as `cargo xtask dist` does",
            binary.display()
        );
    }
    let mut entries = vec![Entry::program(format!("{name}/weft{}", std::env::consts::EXE_SUFFIX), bytes)];
    entries.push(Entry::file(format!("{name}/THIRD-PARTY.txt"), notices.as_bytes()));
    for file in FILES {
        let bytes = std::fs::read(root().join(file)).with_context(|| file.to_string())?;
        entries.push(Entry::file(format!("{name}/{file}"), bytes));
    }
    for (shell, file) in SHELLS {
        let script = output(Command::new(binary).args(["completions", shell]))?;
        entries.push(Entry::file(format!("{name}/completions/{file}"), script.as_bytes()));
    }
    let pages = out.join("man1");
    std::fs::create_dir_all(&pages).with_context(|| pages.display().to_string())?;
    output(Command::new(binary).args(["man", "--all"]).arg(&pages))?;
    for page in std::fs::read_dir(&pages)? {
        let page = page?;
        let file = page.file_name().to_string_lossy().into_owned();
        entries.push(Entry::file(format!("{name}/man/man1/{file}"), std::fs::read(page.path())?));
    }
    std::fs::remove_dir_all(&pages)?;
    archive::write(&out.join(format!("{name}.tar.gz")), entries)
}

/// What a command prints. It must succeed.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A script that prints completions and writes one page, as `weft` does.
    const FAKE: &str = "#!/bin/sh\nif [ \"$1\" = man ]; then echo page > \"$3/weft.1\"; else echo \"for $2\"; fi\n";

    #[test]
    fn an_archive_has_all_parts_and_the_same_bytes_each_time() {
        let folder = crate::packages::empty_folder("dist-test").expect("a folder");
        let binary = folder.join("fake");
        std::fs::write(&binary, FAKE).expect("written");
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o700)).expect("an executable file");
        let packed = |out: &str| {
            let file = pack(&binary, "weft-1", "notices", &folder.join(out)).expect("an archive");
            (std::fs::read(&file).expect("a file"), std::fs::read_to_string(file.with_extension("gz.sha256")))
        };
        let (bytes, sum) = packed("one");
        assert_eq!(bytes, packed("two").0);
        let sum = sum.expect("a file with the sum");
        assert!(sum.ends_with("  weft-1.tar.gz\n") && sum.starts_with(&archive::sha256(&bytes)), "{sum}");
        let entries = archive::read(&bytes).expect("an archive");
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
        let expected = [
            "weft",
            "README.md",
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "CHANGELOG.md",
            "THIRD-PARTY.txt",
            "man/man1/weft.1",
            "completions/weft.bash",
            "completions/weft.fish",
            "completions/_weft",
        ];
        assert_eq!(names.len(), expected.len());
        for name in expected {
            let name = format!("weft-1/{name}");
            let entry = entries.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(entry.mode, if name == "weft-1/weft" { 0o755 } else { 0o644 }, "{name}");
        }
        let of = |name: &str| &entries.iter().find(|entry| entry.name.ends_with(name)).expect("there").bytes;
        assert_eq!(of("completions/_weft"), b"for zsh\n");
        assert_eq!(of("/weft"), FAKE.as_bytes());
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
