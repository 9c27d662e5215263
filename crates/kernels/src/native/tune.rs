//! Measures on a device where one kernel becomes faster than another, and makes a [`Table`] for it.

mod probe;

#[cfg(test)]
mod tests;

use crate::attention::{attention_decode, attention_decode_256};
use crate::caps::table::{Table, Threshold};
use crate::caps::{Caps, Class};
use crate::device::Device;
use crate::error::Error;
use crate::exec::weights::Weights;
use crate::native::measure::WARM_UP;
pub use probe::Shapes;
use probe::{Layers, Planned, Probe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One comparison of two values of a threshold.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Try {
    /// The value that was tried.
    pub at: u32,
    /// Seconds of the probe with the threshold at `at`. If the threshold is a number of rows to
    /// process at once, seconds per row.
    pub with_s: f64,
    /// Seconds of the probe with the other value: `at - 1`, so that the next kernel serves, or the
    /// value in force if values are not ordered.
    pub without_s: f64,
    /// Difference between the two halves of the runs, relative to the time.
    pub noise: f64,
}

/// The result for one threshold.
#[derive(Clone, Debug)]
pub struct Trial {
    pub threshold: &'static Threshold,
    /// The value in the device's table.
    pub was: u32,
    pub chosen: u32,
    pub tries: Vec<Try>,
    /// Whether every useful point was tried.
    pub whole: bool,
}

/// The result of [`tune`].
#[derive(Clone, Debug)]
pub struct Tuned {
    pub table: Table,
    pub trials: Vec<Trial>,
}

impl Tuned {
    /// Whether the time was enough for all thresholds.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.trials.iter().all(|trial| trial.whole)
    }
}

/// A smaller gain, after noise, is ignored: two plans of the same kernels differ by as much.
const MARGIN: f64 = 0.03;

/// The margin for chunks. It is larger because the probe times only the products of a layer, while
/// the other work of a prompt also gains from larger chunks.
const CHUNK_MARGIN: f64 = 0.1;

/// Number of runs: the minimum, the usual number, and the maximum if runs are short. The fastest
/// run counts, because other work on the machine only adds time.
const RUNS: [u32; 3] = [2, 5, 25];

/// Time limit for runs beyond the usual number.
const LONG: Duration = Duration::from_millis(100);

/// The way to find the value of a threshold.
#[derive(Copy, Clone)]
enum How {
    /// At these rising points, the threshold's kernel is compared with the next kernel.
    UpTo(&'static [u32], fn(&Shapes, &Caps, u32) -> Probe),
    /// Values to compare with the value in force, the probe, its rows, and the margin.
    Best(&'static [u32], fn(&Shapes, &Caps, u32) -> Probe, fn(u32) -> u32, f64),
}

/// Ordered by benefit, in case the time is not enough for all.
const SEARCHES: [(&str, How); 12] = [
    ("q8_rows", How::UpTo(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], mlp)),
    ("tile64_rows", How::UpTo(&[64, 128, 256, 384, 512], mlp)),
    (
        "decode_keys",
        How::UpTo(&[64, 128, 256, 512, 768, 1024, 1536, 2048], |shapes, caps, keys| Probe::Attention {
            keys: reach_of_whole_heads(shapes.head_dim, caps, keys),
            window: None,
        }),
    ),
    (
        "split_workgroups",
        How::Best(&[16, 128, 256, 512, 1024], |_, _, _| Probe::Attention { keys: 4096, window: None }, |_| 1, MARGIN),
    ),
    (
        "norm_columns",
        How::UpTo(&[1, 2, 3, 4, 6, 8], |shapes, _, n| Probe::Mlp {
            rows: 1,
            width: shapes.width,
            hidden: n * shapes.width,
        }),
    ),
    (
        "glu_columns",
        How::UpTo(&[1024, 1536, 2048, 2560, 4096], |shapes, _, width| Probe::Mlp {
            rows: 2048,
            width,
            hidden: shapes.hidden,
        }),
    ),
    (
        "vec_columns",
        How::UpTo(&[1024, 2048, 4096, 8192], |_, _, n| Probe::Mlp { rows: 1, width: (n / 8).max(256), hidden: n }),
    ),
    ("prologue_columns", How::UpTo(&[512, 768, 1024, 1536], |_, _, width| Probe::Group { width })),
    (
        "glu_prologue_columns",
        How::UpTo(&[512, 768, 1024], |_, _, width| Probe::Mlp { rows: 1, width, hidden: 3 * width }),
    ),
    ("workgroups", How::Best(&[32, 64, 256], |shapes, caps, _| mlp(shapes, caps, 32), |_| 1, MARGIN)),
    // A window is attended to by one kernel up to a position, and in parts beyond it.
    ("window_keys", How::UpTo(&[64, 128, 256, 512], |_, _, keys| Probe::Attention { keys, window: Some(512) })),
    ("chunk", How::Best(&[512, 1024, 2048], mlp, |rows| rows, CHUNK_MARGIN)),
];

fn mlp(shapes: &Shapes, _: &Caps, rows: u32) -> Probe {
    Probe::Mlp { rows, width: shapes.width, hidden: shapes.hidden }
}

/// Times candidate values of every threshold until `budget` is used up or `report` returns false.
/// Thresholds that are not measured keep the values of the device's table. Without `shapes`, the
/// shapes depend on the class of the device.
///
/// A new value is chosen only if it was measured to be faster by more than 3% (`chunk`: 10%) plus
/// the noise. The last comparison may exceed the budget while it builds its kernels. The first
/// comparison always runs to its end.
///
/// # Errors
/// Allocation errors and loss of the device.
pub fn tune(device: &Device, shapes: Option<Shapes>, budget: Duration, report: Report<'_>) -> Result<Tuned, Error> {
    let shapes = shapes.unwrap_or(match device.adapter().class {
        Class::Discrete => Shapes::LARGE,
        Class::Software => Shapes::TINY,
        Class::Integrated | Class::Virtual | Class::Unknown => Shapes::SMALL,
    });
    let mut searches = vec![];
    for (name, how) in SEARCHES {
        let search = Search { threshold: Threshold::named(name), how, shapes };
        let points = search.points(device)?;
        searches.push((search, points));
    }
    let deadline = Instant::now() + budget;
    let mut left = searches.iter().filter(|(_, points)| !points.is_empty()).count() as u32;
    let mut timer = Timer { device, until: deadline, weights: None, warm: false };
    let mut tuned = Tuned { table: device.caps().table, trials: vec![] };
    for (done, (search, points)) in searches.iter().enumerate() {
        let (threshold, was) = (search.threshold, search.threshold.of(tuned.table));
        // The remaining time is shared equally, so the next thresholds get what this one leaves.
        timer.until = Instant::now() + deadline.saturating_duration_since(Instant::now()) / left.max(1);
        left -= u32::from(!points.is_empty());
        let mut go_on = || report(threshold.name, done, SEARCHES.len());
        let tries = timer.tries(search, points, tuned.table, &mut go_on)?;
        let lost = matches!(search.how, How::UpTo(..))
            && tries.last().is_some_and(|tried| tried.surely(-tried.gain(), MARGIN));
        let whole = lost || tries.len() == points.len();
        let chosen = match search.how {
            How::UpTo(..) => last_served(&tries, was),
            How::Best(.., margin) => fastest(&tries, was, margin),
        };
        tuned.table = threshold.set(tuned.table, chosen);
        tuned.trials.push(Trial { threshold, was, chosen, tries, whole });
    }
    Ok(tuned)
}

/// Called with the name being measured, the number done and the total. Returns whether to go on.
pub type Report<'a> = &'a mut dyn FnMut(&str, usize, usize) -> bool;

/// The last point that the kernel serves. This is the old value, unless the next kernel was faster
/// before it or this kernel was faster beyond it.
fn last_served(tries: &[Try], was: u32) -> u32 {
    let serves = |tried: &&Try| match tried.gain() {
        gain if tried.surely(gain, MARGIN) => true,
        gain if tried.surely(-gain, MARGIN) => false,
        _ => tried.at <= was,
    };
    let served = tries.iter().take_while(serves).count();
    let last = served.checked_sub(1).map(|n| tries[n].at);
    match tries.get(served) {
        // The next kernel was faster at or before the old value.
        Some(next) if next.at <= was => last.unwrap_or(0),
        _ => last.map_or(was, |last| last.max(was)),
    }
}

/// The value with the largest gain over the old value, or the old value if no gain is sure.
fn fastest(tries: &[Try], was: u32, margin: f64) -> u32 {
    let best =
        tries.iter().filter(|tried| tried.surely(tried.gain(), margin)).max_by(|a, b| a.gain().total_cmp(&b.gain()));
    best.map_or(was, |tried| tried.at)
}

impl Try {
    /// Share of the time that this value saves, up to 1; negative if it is slower.
    #[must_use]
    pub fn gain(&self) -> f64 {
        (self.without_s - self.with_s) / self.without_s.max(self.with_s)
    }

    /// Whether this gain is above the margin plus the noise.
    fn surely(&self, gain: f64, margin: f64) -> bool {
        gain > margin + self.noise
    }
}

/// The layers to time, the table to plan with, and the number of rows that share the time.
type Side = (Layers, Table, u32);

struct Search {
    threshold: &'static Threshold,
    how: How,
    shapes: Shapes,
}

impl Search {
    /// The two sides to compare at a point.
    fn sides(&self, at: u32, caps: &Caps) -> [Side; 2] {
        let table = caps.table;
        let side =
            |probe: Probe, value, rows| (Layers { probe, shapes: self.shapes }, self.threshold.set(table, value), rows);
        match self.how {
            How::UpTo(_, probe) => [at, at - 1].map(|value| side(probe(&self.shapes, caps, at), value, 1)),
            How::Best(_, probe, rows, _) => {
                [at, self.threshold.of(table)].map(|value| side(probe(&self.shapes, caps, value), value, rows(value)))
            }
        }
    }

    /// The points at which the two sides run different kernels or grids on this device.
    fn points(&self, device: &Device) -> Result<Vec<u32>, Error> {
        let (How::UpTo(points, _) | How::Best(points, ..)) = self.how;
        let mut differing = vec![];
        for &at in points {
            let [with, without] = self.sides(at, device.caps());
            if with.0.shaders(device.caps(), with.1)? != without.0.shaders(device.caps(), without.1)? {
                differing.push(at);
            }
        }
        Ok(differing)
    }
}

struct Timer<'a> {
    device: &'a Device,
    /// The end of the time for this threshold.
    until: Instant,
    /// The weights of the last probe, because many probes use the same weights.
    weights: Option<Arc<Weights>>,
    warm: bool,
}

impl Timer<'_> {
    /// The comparisons for one threshold, until the time is up, `go_on` returns false, or the next
    /// kernel is faster.
    fn tries(
        &mut self,
        search: &Search,
        points: &[u32],
        table: Table,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Try>, Error> {
        let mut tries: Vec<Try> = vec![];
        let caps = Caps { table, ..self.device.caps().clone() };
        for &at in points {
            let [with, without] = search.sides(at, &caps);
            if !go_on() {
                break;
            }
            let Some(tried) = self.race(at, &with, &without)? else { break };
            tries.push(tried);
            if matches!(search.how, How::UpTo(..)) && tried.surely(-tried.gain(), MARGIN) {
                break;
            }
        }
        Ok(tries)
    }

    fn planned(&mut self, (layers, table, _): &Side) -> Result<Planned, Error> {
        let weights = match self.weights.take().filter(|weights| layers.reads(weights)) {
            Some(weights) => weights,
            None => Arc::new(layers.weights(self.device)?),
        };
        self.weights = Some(Arc::clone(&weights));
        Planned::new(self.device, layers, &weights, *table)
    }

    /// The shortest times of both sides, which run in turns. None if there is no time left. The
    /// very first comparison always runs to its end, so that a slow machine gets a result too.
    fn race(&mut self, at: u32, with: &Side, without: &Side) -> Result<Option<Try>, Error> {
        if Instant::now() >= self.until {
            return Ok(None);
        }
        let first = !self.warm;
        let (mut a, mut b) = (self.planned(with)?, self.planned(without)?);
        let began = Instant::now();
        let once = a.seconds()? + b.seconds()?;
        while first && began.elapsed() < WARM_UP {
            a.seconds()?;
        }
        self.warm = true;
        if !first && Instant::now() + Duration::from_secs_f64(once * f64::from(RUNS[0])) > self.until {
            return Ok(None);
        }
        let [fewest, usual, most] = RUNS;
        // For each side, the shortest even run and the shortest odd run.
        let (mut least, mut runs, began) = ([[f64::INFINITY; 2]; 2], 0, Instant::now());
        let short =
            |runs| if runs < usual { Instant::now() < self.until } else { runs < most && began.elapsed() < LONG };
        while runs < fewest || short(runs) {
            for (plan, least) in [&mut a, &mut b].into_iter().zip(&mut least) {
                let half = &mut least[runs as usize % 2];
                *half = half.min(plan.seconds()?);
            }
            runs += 1;
        }
        let noise = least.iter().map(|[even, odd]| (even - odd).abs() / even.max(*odd)).fold(0.0, f64::max);
        let [with_s, without_s] =
            [(with, 0), (without, 1)].map(|(side, n)| least[n][0].min(least[n][1]) / f64::from(side.2));
        Ok(Some(Try { at, with_s, without_s, noise }))
    }
}

/// Context length up to which attention of one row is one kernel on this device, if the limit for
/// heads of 128 is `keys`. For heads of `dim` that rotate as a whole, without a softcap.
fn reach_of_whole_heads(dim: u32, caps: &Caps, keys: u32) -> u32 {
    match attention_decode_256::variant(dim, true).filter(|variant| variant.fits(caps)) {
        Some(_) => attention_decode_256::reach(dim, keys),
        None => attention_decode::reach(dim, keys),
    }
}
