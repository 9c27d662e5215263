//! Whether a shader file is the text that this program was built with.

use kernels::testing::kernel::Variant;
use kernels::testing::language;

/// Fails if a shader file is not the text that this program was built with. Faults are planted in
/// the built text, where no line of another text would be found.
pub fn as_built(path: &str, text: &str) -> anyhow::Result<()> {
    let mut built =
        language::variants().flat_map(Variant::pieces).filter(|(of, _)| path.strip_prefix("shaders/") == Some(of));
    anyhow::ensure!(
        built.all(|(_, built)| *built == text),
        "{path} is not the text that this program was built with: build it again"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::read;

    #[test]
    fn a_file_that_was_changed_after_the_build_is_named() {
        let path = "shaders/matmul/matmul_weight_tile128.wgsl";
        let text = read(path).unwrap();
        as_built(path, &text).unwrap();
        let error = as_built(path, &format!("{text}// more\n")).unwrap_err().to_string();
        assert!(error.starts_with(path) && error.contains("build it again"), "{error}");
    }
}
