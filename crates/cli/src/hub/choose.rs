//! The models among a repository's files, and the one that a name means.

use super::name::Pick;

/// The quantizations that a name without one means: the first that the repository has.
const USUAL: [&str; 14] = [
    "Q4_K_M", "Q8_0", "Q4_0", "Q4_K_S", "IQ4_XS", "IQ4_NL", "Q5_K_M", "Q5_K_S", "Q5_0", "Q6_K", "Q3_K_M", "BF16",
    "F16", "F32",
];
/// The types of a projector, best first.
const PROJECTORS: [&str; 4] = ["F16", "BF16", "Q8_0", "F32"];
/// The number of models that an error lists.
const LISTED: usize = 12;

/// A model: one file, or all parts of a split file in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub parts: Vec<String>,
    /// The number of parts that the names promise.
    pub of: usize,
    /// The quantization in the name, in upper case.
    pub tag: Option<String>,
}

impl Group {
    /// Whether every part is there.
    pub fn is_whole(&self) -> bool {
        self.parts.len() == self.of
    }

    fn has(&self, file: &str) -> bool {
        self.parts.iter().any(|part| part == file)
    }

    /// Whether the name contains the quantization: the tag, or text between `-`, `.`, `/`.
    fn is_like(&self, quant: &str) -> bool {
        let (path, quant) = (self.parts[0].to_uppercase(), quant.to_uppercase());
        path.match_indices(&quant).any(|(at, _)| {
            let before = path[..at].chars().next_back().is_none_or(|c| "-./".contains(c));
            before && path[at + quant.len()..].starts_with(['-', '.', '/'])
        })
    }
}

/// Whether a GGUF file is no model: an encoder of images, or the data of an importance matrix.
pub fn is_beside(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    name.contains("mmproj") || name.contains("imatrix")
}

/// Whether the path is a GGUF file.
pub fn is_gguf(path: &str) -> bool {
    path.len() > 5 && path.as_bytes()[path.len() - 5..].eq_ignore_ascii_case(b".gguf")
}

/// The models among these files, in the order of their names.
pub fn groups<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<Group> {
    let mut paths: Vec<&str> = paths.filter(|path| is_gguf(path) && !is_beside(path)).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut groups: Vec<(String, Group)> = vec![];
    for path in paths {
        let (stem, of) = split(path);
        let key = format!("{stem} {of}");
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, group)) => group.parts.push(path.to_string()),
            None => groups.push((key, Group { parts: vec![path.to_string()], of, tag: tag(stem) })),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The name without `-00001-of-00003.gguf`, and the number of parts.
fn split(path: &str) -> (&str, usize) {
    let stem = &path[..path.len() - ".gguf".len()];
    let number = |text: &str| (text.len() == 5).then(|| text.parse::<usize>().ok()).flatten();
    let parts = stem.rsplit_once("-of-").and_then(|(before, count)| {
        let (name, part) = before.rsplit_once('-')?;
        let (part, count) = (number(part)?, number(count)?);
        (1..=count).contains(&part).then_some((name, count))
    });
    parts.unwrap_or((stem, 1))
}

/// The quantization in a name: its last word that looks like one, with `UD-` before it.
fn tag(stem: &str) -> Option<String> {
    let name = stem.rsplit('/').next()?.to_uppercase();
    let words: Vec<&str> = name.split(['-', '.']).collect();
    let at = words.iter().rposition(|word| is_quant(word))?;
    Some(if at > 0 && words[at - 1] == "UD" { format!("UD-{}", words[at]) } else { words[at].to_string() })
}

fn is_quant(word: &str) -> bool {
    let digit =
        |prefix: &str| word.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    ["F16", "F32", "BF16"].contains(&word) || ["Q", "IQ", "TQ", "MXFP", "NVFP"].iter().any(|prefix| digit(prefix))
}

/// The model that `pick` means.
///
/// # Errors
/// There is none, or there are several: the text lists the models.
pub fn choose<'a>(groups: &'a [Group], pick: &Pick) -> Result<&'a Group, String> {
    let tagged = |quant: &str| {
        let found: Vec<&Group> = groups
            .iter()
            .filter(|group| group.tag.as_deref().is_some_and(|tag| tag.eq_ignore_ascii_case(quant)))
            .collect();
        if found.is_empty() { groups.iter().filter(|group| group.is_like(quant)).collect() } else { found }
    };
    let found = match pick {
        Pick::File(file) => groups.iter().filter(|group| group.has(file)).collect(),
        Pick::Quant(quant) => tagged(quant),
        Pick::Usual => {
            let usual = USUAL.iter().map(|quant| tagged(quant)).find(|found| !found.is_empty());
            usual.unwrap_or_else(|| groups.iter().collect())
        }
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("has no such model; it has {}", list(groups.iter()))),
        several => Err(format!("has several: {}; name one of them", list(several.iter().copied()))),
    }
}

/// The ways to name a model of this list: a quantization if it is enough, else the file.
pub fn pick(groups: &[Group], group: &Group) -> Pick {
    let quant = group.tag.clone().map(Pick::Quant);
    quant
        .filter(|quant| choose(groups, quant).is_ok_and(|chosen| chosen == group))
        .unwrap_or_else(|| Pick::File(group.parts[0].clone()))
}

/// The models as an error lists them.
fn list<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    let all: Vec<&Group> = groups.collect();
    let name = |group: &&Group| match &group.tag {
        Some(tag) if all.iter().filter(|other| other.tag == group.tag).count() == 1 => format!(":{tag}"),
        _ => format!("/{}", group.parts[0]),
    };
    let mut names: Vec<String> = all.iter().take(LISTED).map(name).collect();
    if all.len() > LISTED {
        names.push(format!("{} more", all.len() - LISTED));
    }
    names.join(", ")
}

/// The encoder of images that comes along with a model: F16 before BF16 before other types.
pub fn projector<'a>(paths: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is = |path: &&str| {
        is_gguf(path) && path.rsplit('/').next().is_some_and(|name| name.to_lowercase().contains("mmproj"))
    };
    let rank = |path: &str| {
        let tag = tag(&path[..path.len() - ".gguf".len()]);
        PROJECTORS.iter().position(|ty| tag.as_deref() == Some(ty)).unwrap_or(PROJECTORS.len())
    };
    let mut all: Vec<&str> = paths.filter(is).collect();
    all.sort_by_key(|path| (rank(path), *path));
    all.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(paths: &[&str], pick: &Pick) -> Result<Vec<String>, String> {
        choose(&groups(paths.iter().copied()), pick).map(|group| group.parts.clone())
    }

    fn quant(text: &str) -> Pick {
        Pick::Quant(text.to_string())
    }

    #[test]
    fn a_name_without_quantization_means_the_usual_one() {
        let all = ["M-F16.gguf", "M-Q8_0.gguf", "M-Q4_K_M.gguf", "mmproj-M-Q4_K_M.gguf", "imatrix.gguf", "README.md"];
        assert_eq!(chosen(&all, &Pick::Usual).unwrap(), ["M-Q4_K_M.gguf"]);
        assert_eq!(chosen(&all[..2], &Pick::Usual).unwrap(), ["M-Q8_0.gguf"]);
        assert_eq!(chosen(&all[..1], &Pick::Usual).unwrap(), ["M-F16.gguf"]);
        assert_eq!(chosen(&["odd.gguf"], &Pick::Usual).unwrap(), ["odd.gguf"]);
        let error = chosen(&["odd.gguf", "other.gguf"], &Pick::Usual).unwrap_err();
        assert_eq!(error, "has several: /odd.gguf, /other.gguf; name one of them");
    }

    #[test]
    fn a_quantization_is_found_in_any_case_and_only_as_a_word() {
        let all = ["m.q4_k_m.gguf", "m-Q4_K_S.gguf", "m-UD-Q4_K_XL.gguf", "m-q4_0-qat.gguf", "BF16/m-BF16.gguf"];
        for (text, file) in
            [("Q4_K_M", 0), ("q4_k_s", 1), ("ud-q4_k_xl", 2), ("Q4_K_XL", 2), ("Q4_0", 3), ("q4_0-qat", 3), ("bf16", 4)]
        {
            assert_eq!(chosen(&all, &quant(text)).unwrap(), [all[file]], "{text}");
        }
        let error = chosen(&all, &quant("Q4_K")).unwrap_err();
        assert!(error.contains("it has :BF16, :Q4_K_S, :UD-Q4_K_XL, :Q4_0, :Q4_K_M"), "{error}");
        assert_eq!(chosen(&["m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf"], &quant("q4_k_m")).unwrap(), ["m-Q4_K_M.gguf"]);
    }

    #[test]
    fn a_split_file_is_one_model() {
        let all = ["q8/m-Q8_0-00002-of-00002.gguf", "q8/m-Q8_0-00001-of-00002.gguf", "m-Q4_0-00001-of-00002.gguf"];
        let groups = groups(all.iter().copied());
        assert_eq!(groups.iter().map(Group::is_whole).collect::<Vec<_>>(), [false, true]);
        assert_eq!(choose(&groups, &quant("q8_0")).unwrap().parts, [all[1], all[0]]);
        assert_eq!(choose(&groups, &Pick::File(all[0].to_string())).unwrap().parts[0], all[1]);
        assert_eq!(pick(&groups, &groups[1]), quant("Q8_0"));
    }

    #[test]
    fn models_that_no_quantization_tells_apart_are_named_by_file() {
        let all = groups(["a-Q8_0.gguf", "b-Q8_0.gguf"].into_iter());
        assert_eq!(pick(&all, &all[1]), Pick::File("b-Q8_0.gguf".to_string()));
        let error = choose(&all, &quant("Q8_0")).unwrap_err();
        assert!(error.contains("/a-Q8_0.gguf, /b-Q8_0.gguf"), "{error}");
    }

    #[test]
    fn the_best_projector_comes_along() {
        let all = ["mmproj-Q8_0.gguf", "mmproj-model-f16.gguf", "mmproj-BF16.gguf", "m.gguf"];
        assert_eq!(projector(all.into_iter()), Some("mmproj-model-f16.gguf"));
        assert_eq!(projector(["m.gguf"].into_iter()), None);
    }
}
