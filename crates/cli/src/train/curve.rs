//! The curve of the loss, as a picture and in the terminal.

use kuva::backend::svg::SvgBackend;
use kuva::backend::terminal::TerminalBackend;
use kuva::prelude::{Layout, LinePlot, Plot, ScatterPlot, render_multiple};
use train::Record;

/// Points of a curve, at most. More steps are drawn as the means of equal parts of them.
const POINTS: usize = 400;

type Points = Vec<(f64, f64)>;

/// The losses of the steps, and of the held-out examples.
fn points(records: &[Record]) -> [Points; 2] {
    let finite = |(step, loss): (u64, f64)| loss.is_finite().then_some((step as f64, loss));
    let learnt: Points = records.iter().filter_map(|record| finite((record.step, record.loss))).collect();
    let held = records.iter().filter_map(|record| finite((record.step, record.validation?))).collect();
    let mean = |part: &[(f64, f64)]| {
        let sum = part.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / part.len() as f64, sum.1 / part.len() as f64)
    };
    [learnt.chunks(learnt.len().div_ceil(POINTS).max(1)).map(mean).collect(), held]
}

/// The drawing of a curve; `None` for fewer than two steps.
fn drawn(records: &[Record], grid: bool) -> Option<(Vec<Plot>, Layout)> {
    let [learnt, held] = points(records);
    if learnt.len() < 2 {
        return None;
    }
    let is_log = dwarfs(&learnt, &held);
    let learnt = LinePlot::new().with_data(learnt).with_color("steelblue");
    let plots: Vec<Plot> = match held.is_empty() {
        true => vec![learnt.into()],
        false => {
            vec![
                learnt.with_legend("train").into(),
                LinePlot::new().with_data(held.clone()).with_color("darkorange").with_legend("val").into(),
                ScatterPlot::new().with_data(held).with_color("darkorange").with_size(4.0).into(),
            ]
        }
    };
    let layout = Layout::auto_from_plots(&plots).with_show_grid(grid).with_x_label("step");
    let layout = match is_log {
        true => layout.with_log_y().with_y_label("loss, nats, logarithmic"),
        false => layout.with_y_label("loss, nats"),
    };
    Some((plots, layout))
}

/// Whether the start dwarfs the rest, so that only a logarithmic axis shows both.
fn dwarfs(learnt: &Points, held: &Points) -> bool {
    let losses: Vec<f64> = learnt.iter().chain(held).map(|(_, loss)| *loss).collect();
    let mut late: Vec<f64> = learnt[learnt.len() / 2..].iter().map(|(_, loss)| *loss).collect();
    late.sort_by(f64::total_cmp);
    let most = losses.iter().copied().fold(0.0, f64::max);
    losses.iter().all(|loss| *loss > 0.0) && most > DWARFED * late[late.len() / 2]
}

/// So many times the median loss of the second half.
const DWARFED: f64 = 10.0;

/// The curve as an SVG file.
pub fn svg(records: &[Record]) -> Option<String> {
    let (plots, layout) = drawn(records, true)?;
    Some(SvgBackend::default().render_scene(&render_multiple(plots, layout.with_title("Loss of a batch"))))
}

/// The curve as lines of a terminal of so many columns and rows. It takes a quarter of the screen,
/// as far as it can be read there. Without `color` it is text alone.
pub fn lines(records: &[Record], [columns, rows]: [usize; 2], color: bool) -> Option<String> {
    let rows = (rows / 4).clamp(8, 24);
    let (plots, layout) = drawn(records, false)?;
    let drawn = TerminalBackend::new(columns.clamp(40, 100), rows).render_scene(&render_multiple(plots, layout));
    Some(in_own_colors(&drawn, color))
}

/// Writes axes in the color of the terminal's text: a color that is meant for white paper cannot be
/// seen on a black ground. Without `color` all colors are left out.
fn in_own_colors(drawn: &str, color: bool) -> String {
    let (mut text, mut rest) = (String::new(), drawn);
    while let Some((before, behind)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        let (code, after) = behind.split_once('m').unwrap_or((behind, ""));
        let parts: Vec<&str> = code.split(';').collect();
        let is_gray = parts.len() == 5 && parts[2] == parts[3] && parts[3] == parts[4];
        if color {
            text.push_str(&if is_gray { "\u{1b}[39m".to_string() } else { format!("\u{1b}[{code}m") });
        }
        rest = after;
    }
    text.push_str(rest);
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(steps: u64) -> Vec<Record> {
        let record = |step: u64| Record {
            step,
            loss: 4.0 / step as f64,
            validation: step.is_multiple_of(10).then_some(1.0),
            ..Record::default()
        };
        (1..=steps).map(record).collect()
    }

    #[test]
    fn a_long_run_is_drawn_in_few_points_and_gaps_are_left_out() {
        let mut all = records(100_000);
        all[7].loss = f64::NAN;
        let [learnt, held] = points(&all);
        assert!(learnt.len() <= POINTS && learnt.iter().all(|point| point.1.is_finite()), "{}", learnt.len());
        assert_eq!(held.len(), 10_000);
        assert!(svg(&records(1)).is_none() && lines(&[], [80, 24], true).is_none());
    }

    #[test]
    fn a_terminal_gets_axes_in_its_own_color_or_text_alone() {
        let [colored, plain] = [true, false].map(|color| lines(&records(50), [72, 64], color).expect("a curve"));
        assert!(
            colored.contains("\u{1b}[39m")
                && colored.contains("\u{1b}[38;2;70;130;180m")
                && !colored.contains("38;2;0;0;0"),
            "{colored}"
        );
        assert!(!plain.contains('\u{1b}') && plain.contains("train") && plain.contains("step"), "{plain}");
        assert!(plain.lines().all(|line| line.chars().count() <= 72) && plain.lines().count() <= 17, "{plain}");
        assert!(svg(&records(50)).expect("a curve").contains("</svg>"));
        let small = lines(&records(50), [72, 40], false).expect("a curve");
        assert!(small.lines().count() <= 11, "{small}");
    }

    #[test]
    fn a_start_that_dwarfs_the_rest_asks_for_a_logarithmic_axis() {
        let axis = |all: &[Record]| drawn(all, true).expect("a curve").1.log_y;
        assert!(axis(&records(50)), "the median of the late losses is a ninth of a tenth of the first");
        let even: Vec<Record> = records(50).into_iter().map(|of| Record { loss: 1.0 + of.loss, ..of }).collect();
        assert!(!axis(&even));
        assert!(!axis(&[Record { loss: 0.0, ..Record::default() }, Record { loss: 9.0, ..Record::default() }]));
    }
}
