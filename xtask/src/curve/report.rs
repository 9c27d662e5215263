//! Tables and pictures of the points of a curve.

use super::{BATCH_DEPTH, GENERATED, Points, Subject};
use kuva::backend::svg::SvgBackend;
use kuva::prelude::{Figure, Layout, LegendPosition, LinePlot, Plot};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Width and height of a part of a picture, in pixels.
const CELL: [f64; 2] = [620.0, 420.0];

/// What a point is of, parsed from its name, such as `pp512@d4096` or `tg32@d512@b8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    /// Whether it belongs to the row of numbers of sequences.
    batch: bool,
    depth: u32,
    generates: bool,
    tokens: u32,
    sequences: u32,
}

impl Test {
    fn of(name: &str) -> Option<Self> {
        let mut parts = name.split('@');
        let kind = parts.next()?;
        let (generates, tokens) = match kind.strip_prefix("pp") {
            Some(tokens) => (false, tokens),
            None => (true, kind.strip_prefix("tg")?),
        };
        let (mut depth, mut sequences) = (0, 1);
        for part in parts {
            match part.split_at_checked(1)? {
                ("d", n) => depth = n.parse().ok()?,
                ("b", n) => sequences = n.parse().ok()?,
                _ => return None,
            }
        }
        let tokens = tokens.parse().ok()?;
        let batch = generates && tokens == GENERATED[1] && depth == BATCH_DEPTH;
        Some(Self { batch, depth, generates, tokens, sequences })
    }
}

/// All points of a file and mode, a line each.
pub fn table(points: &Points, subjects: &[Subject<'_>]) -> String {
    let of = &subjects[0];
    let mut text = format!("### {}, {} ({}, {})\n\n", of.file, of.mode.name(), of.device, of.commit);
    let _ = writeln!(text, "| test | weft | llama.cpp | ratio |\n| --- | ---: | ---: | ---: |");
    let names: BTreeSet<String> = subjects.iter().flat_map(|subject| points.tests(subject)).collect();
    let tests: BTreeSet<(Option<Test>, String)> = names.into_iter().map(|name| (Test::of(&name), name)).collect();
    for (_, name) in tests {
        let rates: Vec<Option<f64>> = subjects.iter().map(|subject| points.rate(subject, &name)).collect();
        let (ours, theirs) = (rates[0], rates.get(1).copied().flatten());
        let shown = |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!("{rate:.0}"));
        let ratio = ours.zip(theirs).map_or_else(String::new, |(ours, theirs)| format!("{:.2}", ours / theirs));
        let _ = writeln!(text, "| {name} | {} | {} | {ratio} |", shown(ours), shown(theirs));
    }
    text + "\n"
}

/// The rates over the length of the prompt, a line for each depth, beside the rates over the number
/// of sequences, if there are points of several.
pub fn picture(points: &Points, subjects: &[Subject<'_>]) -> Option<String> {
    const COLORS: [&str; 2] = ["steelblue", "darkorange"];
    let (mut prompts, mut batches): (Vec<Plot>, Vec<Plot>) = (vec![], vec![]);
    let tests_of = |subject| -> BTreeSet<(Test, String)> {
        points.tests(subject).into_iter().filter_map(|name| Some((Test::of(&name)?, name))).collect()
    };
    // A depth has one style of line for all programs.
    let all: BTreeSet<u32> =
        subjects.iter().flat_map(tests_of).filter(|(test, _)| !test.generates).map(|(test, _)| test.depth).collect();
    for (subject, color) in subjects.iter().zip(COLORS) {
        let tests = tests_of(subject);
        let line = |x: &dyn Fn(&Test) -> Option<u32>| -> Vec<(f64, f64)> {
            tests.iter().filter_map(|(test, name)| Some((f64::from(x(test)?), points.rate(subject, name)?))).collect()
        };
        let plot =
            |data: Vec<(f64, f64)>, label: String| LinePlot::new().with_data(data).with_color(color).with_legend(label);
        for (nth, &depth) in all.iter().enumerate() {
            let data = line(&|test| (!test.generates && test.depth == depth).then_some(test.tokens));
            if data.len() > 1 {
                let name = subject.who.name();
                let solid = plot(data, if depth == 0 { name.to_string() } else { format!("{name}, depth {depth}") });
                let styled = match nth {
                    0 => solid,
                    1 => solid.with_dashed(),
                    _ => solid.with_dotted(),
                };
                prompts.push(styled.into());
            }
        }
        let data = line(&|test| test.batch.then_some(test.sequences));
        if data.len() > 1 {
            batches.push(plot(data, subject.who.name().to_string()).into());
        }
    }
    let layout = |plots: &[Plot], x: &str, title: String| {
        Layout::auto_from_plots(plots)
            .with_log_scale()
            .with_x_label(x)
            .with_y_label("tokens per second")
            .with_title(title)
            .with_legend_position(LegendPosition::InsideBottomRight)
    };
    let title = format!("{}, {}", subjects[0].file, subjects[0].mode.name());
    let mut cells = vec![];
    if !prompts.is_empty() {
        let layout = layout(&prompts, "tokens of the prompt", format!("{title}: prompts"));
        cells.push((prompts, layout));
    }
    if !batches.is_empty() {
        let layout = layout(&batches, "sequences", format!("{title}: {BATCH_DEPTH} tokens of context"));
        cells.push((batches, layout));
    }
    if cells.is_empty() {
        return None;
    }
    let count = cells.len();
    let (plots, layouts): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
    let scene = Figure::new(1, count).with_plots(plots).with_layouts(layouts).with_cell_size(CELL[0], CELL[1]).render();
    Some(SvgBackend::default().render_scene(&scene))
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Who};
    use super::*;

    #[test]
    fn names_of_points_are_parsed_and_ordered() {
        let test = |name| Test::of(name).unwrap();
        assert_eq!(test("pp64"), Test { batch: false, depth: 0, generates: false, tokens: 64, sequences: 1 });
        assert_eq!(test("tg32@d512@b8"), Test { batch: true, depth: 512, generates: true, tokens: 32, sequences: 8 });
        for wrong in ["", "xx4", "pp", "pp4@", "pp4@q2", "tg64@d"] {
            assert_eq!(Test::of(wrong), None, "{wrong}");
        }
        let mut names = ["tg32@d512@b8", "pp2048", "tg64@d4096", "pp64", "pp512@d4096", "tg64", "tg32@d512"];
        names.sort_by_key(|name| test(name));
        assert_eq!(names, ["pp64", "pp2048", "tg64", "pp512@d4096", "tg64@d4096", "tg32@d512", "tg32@d512@b8"]);
    }

    #[test]
    fn a_table_has_all_points_that_are_kept_and_a_picture_their_lines() {
        let of = |who, commit: &'static str| Subject {
            who,
            commit,
            device: "a card",
            file: "m".to_string(),
            mode: Mode::All,
        };
        let (ours, theirs) = (of(Who::Weft, "abc"), of(Who::Peer, "def"));
        let mut all = vec![];
        for (n, rate) in [("pp16", 10.0), ("pp512", 90.0), ("tg32@d512", 5.0), ("tg32@d512@b4", 9.0)] {
            all.push(ours.point(n, &[rate]));
        }
        all.extend([theirs.point("pp16", &[5.0]), theirs.point("pp64", &[20.0])]);
        let points = Points { path: std::path::PathBuf::new(), all };
        assert_eq!(points.measured("abc", "a card"), [("m".to_string(), Mode::All)]);
        assert_eq!(points.peer("a card", "m", Mode::All).as_deref(), Some("def"));
        let subjects = [ours, theirs];
        let table = table(&points, &subjects);
        let lines: Vec<&str> = table.lines().skip(4).collect();
        let expected = [
            "| pp16 | 10 | 5 | 2.00 |",
            "| pp64 |  | 20 |  |",
            "| pp512 | 90 |  |  |",
            "| tg32@d512 | 5 |  |  |",
            "| tg32@d512@b4 | 9 |  |  |",
            "",
        ];
        assert_eq!(lines, expected);
        let picture = picture(&points, &subjects).unwrap();
        assert!(
            picture.contains("tokens of the prompt") && picture.contains("sequences") && picture.contains("llama.cpp")
        );
    }
}
