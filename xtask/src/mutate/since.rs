//! What changed since a commit, and the shader files and kernels that it concerns.

use anyhow::Context as _;
use kernels::testing::kernel::Variant;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The paths of files that differ from those of a commit, committed or not. New files count.
pub struct Changed(BTreeSet<String>);

impl Changed {
    /// Asks git in the folder of a repository.
    pub fn since(root: &Path, rev: &str) -> anyhow::Result<Self> {
        let tracked = git(root, &["diff", "--name-only", "--no-renames", "-z", "--end-of-options", rev, "--"])?;
        let new = git(root, &["ls-files", "--others", "--exclude-standard", "-z"])?;
        Ok(Self([tracked, new].concat().split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect()))
    }

    /// Whether a file changed.
    pub fn file(&self, path: &str) -> bool {
        self.0.contains(path)
    }

    /// Whether the kernel of a variant changed: its declaration, the cases of its operation or a
    /// file of its shaders. Weight formats are no part of a kernel.
    pub fn kernel(&self, variant: &Variant, stem: &str) -> bool {
        let declared = self.file(&variant.kernel.file.replace('\\', "/"));
        let tested = self.0.iter().any(|path| path.ends_with(&format!("/{stem}_case.rs")));
        declared || tested || variant.pieces().any(|(path, _)| self.file(&format!("shaders/{path}")))
    }
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").current_dir(root).args(args).output().context("--since needs git")?;
    anyhow::ensure!(output.status.success(), "git {}: {}", args[0], String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).context("git gave a path that is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::{Changed, git};
    use kernels::testing::language;
    use std::fs::write;

    #[test]
    fn committed_changed_and_new_files_since_a_commit_count_and_ignored_ones_do_not() {
        let root = std::env::temp_dir().join(format!("weft-since-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("shaders")).unwrap();
        let run = |args: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"];
            git(&root, &[&who, args].concat()).unwrap()
        };
        run(&["init", "-q"]);
        let put = |path: &str, text: &str| write(root.join("shaders").join(path), text).unwrap();
        write(root.join(".gitignore"), "ignored.wgsl\n").unwrap();
        for path in ["same.wgsl", "committed.wgsl", "edited.wgsl"] {
            put(path, "a");
        }
        run(&["add", "."]);
        run(&["commit", "-q", "-m", "one"]);
        put("committed.wgsl", "b");
        run(&["commit", "-q", "-a", "-m", "two"]);
        put("edited.wgsl", "b");
        put("new.wgsl", "a");
        put("ignored.wgsl", "a");
        let of = |rev: &str| Changed::since(&root, rev).map(|changed| changed.0.into_iter().collect::<Vec<_>>());
        let all = ["shaders/committed.wgsl", "shaders/edited.wgsl", "shaders/new.wgsl"];
        assert_eq!(of("HEAD~1").unwrap(), all);
        assert_eq!(of("HEAD").unwrap(), all[1..]);
        let error = of("--output=x").unwrap_err().to_string();
        assert!(error.starts_with("git diff: "), "a revision is no option: {error}");
        assert!(of("nothing").is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_kernel_changes_with_its_declaration_its_cases_and_its_files() {
        let of = |path: &str| {
            let changed = Changed([path.to_string()].into());
            let variants = language::variants().filter(|variant| ["softcap", "silu"].contains(&variant.name));
            variants
                .filter(|variant| changed.kernel(variant, variant.name))
                .map(|variant| variant.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("crates/kernels/src/elementwise/softcap.rs"), ["softcap"]);
        assert_eq!(of("crates/kernels/src/elementwise/silu_case.rs"), ["silu"]);
        assert_eq!(of("shaders/elementwise/softcap.wgsl"), ["softcap"]);
        assert_eq!(of("shaders/shared/grid.wgsl").len(), 2);
        assert!(of("shaders/quant/q4_k.wgsl").is_empty() && of("README.md").is_empty());
    }
}
