//! A grammar of Go templates as Ollama's files have them.

use super::Draw;

/// Operands outside of every range, and inside.
const ROOTS: &str = ".Prompt .System .Messages .Response .Tools \"a\" nil $.Think .Suffix $m.Content $m .";
const FIELDS: &str =
    ".Content .Role $.Messages .ToolCalls $.Prompt \"a\" 1 true .Function.Name .Function.Arguments $i . `b`";

impl Draw<'_> {
    fn go_value(&mut self, depth: usize, inside: bool) -> String {
        let leaf = self.pick(if inside { FIELDS } else { ROOTS }, " ");
        if depth == 0 {
            return leaf.to_string();
        }
        let inner = self.go_value(depth - 1, inside);
        match self.below(6) {
            0 => format!("({} {inner})", self.pick("not len json", " ")),
            1 => format!("(index {inner} 0)"),
            2 => format!("(slice {inner} {})", self.pick("1|$i|0 1|1 9", "|")),
            3 => format!("({} {inner} {leaf} {leaf})", self.pick("and or eq", " ")),
            _ => format!("({} {inner} {leaf})", self.pick("and|or|eq|ne|lt|le|gt|ge|eq 1", "|")),
        }
    }

    /// A template of at most `depth` levels of blocks; `inside` a range or not.
    pub fn go(&mut self, depth: usize, inside: bool) -> String {
        let levels = self.below(5);
        let value = self.go_value(levels, inside);
        let kind = self.below(10);
        let ranges = matches!(kind, 0 | 3);
        let inner = if depth == 0 { "t".to_string() } else { self.go(depth - 1, inside || ranges) };
        let [open, close] = [self.pick("{{ |{{- |{{", "|"), self.pick(" }}| -}}|}}", "|")];
        match kind {
            0 => format!("{open}range $i, $m := $.Messages{close}{inner}{{{{ end }}}}"),
            1 => {
                format!("{open}if {value}{close}{inner}{{{{ else if {value} }}}}b{open}else{close}{inner}{{{{ end }}}}")
            }
            2 => format!("{open}$m := {value}{close}{inner}"),
            3 => format!("{open}range {value}{close}{inner}{open}end{close}"),
            4 => format!("{} {open}{value} | json{close}{inner}", self.text()),
            5 => format!("{open}/* {} */{close}{inner}", self.pick("c|}}|", "|")),
            6 => format!(
                "{open}{:?}{close}{inner}{}",
                self.text(),
                self.pick("|||{{ currentDate }}|{{ template \"x\" }}|{{ break }}|{{", "|")
            ),
            _ => format!("{open}{value}{close}{inner}"),
        }
    }
}
