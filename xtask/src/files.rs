//! The shader files, and the occurrences of their text in composed shaders.

use crate::workspace::root;
use anyhow::Context as _;
use kernels::testing::kernel::compose::{Shader, instantiate};
use std::path::Path;

/// A prefix and the name of the binding that replaces it. `None` if the text is not renamed.
pub type Place = Option<(&'static str, &'static str)>;

/// The paths of all files under `shaders/`, in order.
pub fn all() -> anyhow::Result<Vec<String>> {
    let mut files = vec![];
    list(&root().join("shaders"), &mut files)?;
    Ok(files)
}

/// True if the path of a file contains one of `parts`, or if there are none.
pub fn is_wanted(path: &str, parts: &[String]) -> bool {
    parts.is_empty() || parts.iter().any(|part| path.contains(part.as_str()))
}

/// Files by path, with their text.
pub fn read(paths: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    paths.iter().map(|path| Ok((path.clone(), crate::workspace::read(path)?))).collect()
}

fn list(dir: &Path, files: &mut Vec<String>) -> anyhow::Result<()> {
    let mut entries: Vec<_> =
        std::fs::read_dir(dir).with_context(|| dir.display().to_string())?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        if entry.path().is_dir() {
            list(&entry.path(), files)?;
        } else if let Some(path) =
            entry.path().strip_prefix(root()).ok().filter(|path| path.extension().is_some_and(|end| end == "wgsl"))
        {
            files.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// The occurrences of a file's text in the text of a shader: unchanged, or with its identifiers
/// renamed for bindings.
pub fn places(shader: &Shader, source: &str, text: &str) -> Vec<Place> {
    if source.contains(text) {
        return vec![None];
    }
    let bindings = shader.variant.kernel.bindings.iter().map(|(name, _)| *name);
    let names = ["W", "S"].into_iter().filter(|prefix| text.contains(&format!("{prefix}_")));
    let names = names.flat_map(|prefix| bindings.clone().map(move |name| (prefix, name)));
    names.filter(|at| source.contains(&renamed(text, Some(*at)))).map(Some).collect()
}

/// A file's text as it occurs in a shader: unchanged, or with the identifiers of `place`.
pub fn renamed(text: &str, place: Place) -> String {
    match place {
        // Renaming adds a line end, so the text's own last line end is removed.
        Some((prefix, name)) => instantiate(text.trim_end(), prefix, name),
        None => text.to_string(),
    }
}

/// The text of a shader in which `by` replaces every occurrence of a file's text.
pub fn replaced(source: &str, text: &str, by: &str, places: &[Place]) -> String {
    places
        .iter()
        .fold(source.to_string(), |source, place| source.replacen(&renamed(text, *place), &renamed(by, *place), 1))
}

/// The file and the line that a line of a shader's text comes from. `None` for lines that no file
/// has, such as constants of variants. Lines count from 1.
pub fn origin<'a>(
    files: &'a [(String, String)],
    shader: &Shader,
    source: &str,
    line: usize,
) -> Option<(&'a str, usize)> {
    for (path, text) in files {
        for place in places(shader, source, text) {
            let found = renamed(text, place);
            let starts = source.match_indices(&found).map(|(at, _)| source[..at].lines().count() + 1);
            let within = starts.into_iter().find(|first| (*first..first + found.lines().count()).contains(&line));
            if let Some(first) = within {
                return Some((path, line - first + 1));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{all, origin, read};
    use kernels::testing::kernel::compose::Shader;
    use kernels::testing::language;

    #[test]
    fn lines_of_a_shader_come_from_the_lines_of_its_files() {
        let files = read(&all().unwrap()).unwrap();
        let shaders = language::variants().flat_map(|variant| Shader::all(variant, &[0]));
        let shader = shaders.into_iter().find(|shader| shader.label() == "matmul_vec_tail f16").unwrap();
        let source = shader.source();
        let mut seen = vec![];
        for (n, line) in (1..).zip(source.lines()).filter(|(_, line)| line.starts_with("fn ")) {
            let (path, number) =
                origin(&files, &shader, &source, n).unwrap_or_else(|| panic!("{line:?} is in no file"));
            let text = &files.iter().find(|(of, _)| of == path).unwrap().1;
            assert_eq!(text.lines().nth(number - 1).unwrap().replace("W_", "w_"), line, "{path}:{number}");
            seen.push(path);
        }
        for path in ["matmul/matmul_vec", "shared/x4_tail", "matmul/pieces/vec_sums", "quant/f16"] {
            assert!(seen.iter().any(|seen| *seen == format!("shaders/{path}.wgsl")), "{path} is not among {seen:?}");
        }
        assert!(origin(&files, &shader, &source, source.lines().count() + 1).is_none());
    }
}
