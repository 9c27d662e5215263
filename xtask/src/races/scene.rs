//! The dispatches on which a shader is analysed: those of the smallest parity cases that reach it.

use super::finding::Finding;
use super::machine::{Machine, Space};
use super::program::Program;
use crate::shaders;
use anyhow::{Context as _, anyhow};
use kernels::testing::kernel::compose::Piece;
use kernels::testing::kinds::card;
use kernels::testing::parity::Case;
use kernels::testing::parity::calls::Call;
use kernels::testing::sweep::Target;
use kernels::{Caps, Class};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Steps of all workgroups of a dispatch, at most. Cases with more are left out.
const STEPS: u64 = 1_000_000;

/// Steps of all workgroups of a dispatch before the shader's own, at most. The shader reads the
/// results of this dispatch.
const STEPS_BEFORE: u64 = 6_000_000;

/// Workgroups of the shader's own dispatch that are run, at most.
const GROUPS: u32 = 4;

/// Cases that reach a shader, of which the smallest are taken first.
const DRAWN: usize = 8;

/// Seeds that are tried for these cases, and for as many further ones of any size.
const SEEDS: u64 = 200;

/// A shader with the dispatches on which it is analysed.
pub struct Subject {
    pub target: Target,
    pub source: String,
    /// Threads per subgroup of the device for whose plans the shader is analysed.
    pub threads: u32,
    scenes: Mutex<Scenes>,
}

#[derive(Default)]
struct Scenes {
    /// Cases that were not run yet, the next one last.
    cases: Vec<Case>,
    /// Seeds that were tried.
    seeds: u64,
    known: Vec<Arc<Scene>>,
}

/// A dispatch of a shader, with the contents of the buffers before it.
struct Scene {
    call: Call,
    buffers: Vec<Vec<u8>>,
    /// What is wrong with the shader's own text.
    shown: Option<Shown>,
    /// The offsets in the text at which several invocations write equal words.
    equal: BTreeSet<u32>,
}

/// What is wrong with a text, and the threads per subgroup that show it.
#[derive(Clone, Debug)]
pub struct Shown {
    pub finding: Finding,
    pub subgroup: usize,
}

/// The verdict on a shader's own text.
#[derive(Default)]
pub struct Verdict {
    /// Dispatches that were run.
    pub scenes: usize,
    pub shown: Option<Shown>,
    /// The offsets in the text at which several invocations write equal words.
    pub equal: BTreeSet<u32>,
}

/// The device for whose plans a shader is analysed.
fn device(subgroup_size: u32, cooperative: bool) -> Caps {
    card(Class::Discrete, subgroup_size, cooperative)
}

/// Every shader with a barrier.
pub fn subjects() -> Vec<Subject> {
    let mut found: Vec<Subject> = vec![];
    for caps in [device(8, false), device(32, false), device(32, true)] {
        for target in Target::all(&caps) {
            let subject = Subject::of(target);
            let known = found.iter().any(|known| known.target.shader == subject.target.shader);
            if !known && subject.caps() == caps && subject.has_barrier() {
                found.push(subject);
            }
        }
    }
    found.extend(exchanging());
    found
}

/// Shaders that are told how many threads a subgroup has, again for plans of a device with 16: then
/// their groups of 16 threads have no barriers. The weight format does not matter, so one of each.
fn exchanging() -> Vec<Subject> {
    let told =
        |of: &Subject| of.target.shader.subgroups && !of.target.shader.wide && of.source.contains("params.exchange");
    let all: Vec<_> = Target::all(&device(16, false)).into_iter().map(Subject::of).filter(told).collect();
    let firsts: BTreeSet<_> = first_of_each(&all, |_| None).into_values().map(|of| of.target.shader.label()).collect();
    let firsts = all.into_iter().filter(|of| firsts.contains(&of.target.shader.label()));
    firsts.map(|of| Subject { threads: 16, ..of }).collect()
}

impl Subject {
    pub fn of(target: Target) -> Self {
        let threads = if target.shader.wide || target.shader.variant.kernel.cooperative() { 32 } else { 8 };
        Self { source: target.shader.source(), target, threads, scenes: Mutex::default() }
    }

    /// The device for whose plans the shader is analysed. It has cooperative matrices only if the
    /// shader needs them: devices that have them choose other kernels.
    pub(super) fn caps(&self) -> Caps {
        device(self.threads, self.target.shader.variant.kernel.cooperative())
    }

    fn has_barrier(&self) -> bool {
        ["workgroupBarrier(", "subgroupBarrier(", "workgroupUniformLoad("]
            .iter()
            .any(|barrier| self.source.contains(barrier))
    }

    /// The numbers of threads per subgroup with which the shader is analysed.
    fn sizes(&self) -> &'static [usize] {
        match self.threads {
            8 if self.target.shader.subgroups => &[8, 32],
            16 => &[16],
            _ => &[32],
        }
    }

    /// Analyses the shader on so many dispatches, and keeps none of them.
    pub fn verdict(&self, scenes: usize) -> anyhow::Result<Verdict> {
        let mut verdict = Verdict::default();
        for n in 0..scenes {
            let Some(scene) = self.scene(n)? else { break };
            verdict.scenes += 1;
            verdict.equal.extend(&scene.equal);
            verdict.shown = verdict.shown.or_else(|| scene.shown.clone());
        }
        *self.scenes.lock().expect("no panic") = Scenes::default();
        Ok(verdict)
    }

    /// Whether a text is a valid shader in place of the shader's own.
    pub fn is_valid(&self, source: &str) -> bool {
        shaders::validate(source, &self.target.shader).is_ok()
    }

    /// Runs a valid text in place of the shader's own, on at most `scenes` dispatches. Returns the
    /// first finding.
    pub fn shown(&self, source: &str, scenes: usize) -> anyhow::Result<Option<Shown>> {
        for n in 0..scenes {
            let Some(scene) = self.scene(n)? else { break };
            for &subgroup in self.sizes() {
                let mut space = Space { buffers: scene.buffers.clone(), ..Space::default() };
                match analysed(source, &scene.call, &mut space, subgroup, (STEPS, GROUPS))?.0 {
                    None | Some(Finding::Endless) => {}
                    Some(finding) => return Ok(Some(Shown { finding, subgroup })),
                }
            }
        }
        Ok(None)
    }

    /// The n-th dispatch, if there are so many.
    fn scene(&self, n: usize) -> anyhow::Result<Option<Arc<Scene>>> {
        let mut scenes = self.scenes.lock().expect("no panic");
        while scenes.known.len() <= n {
            if scenes.cases.is_empty() {
                let tried = scenes.seeds..SEEDS * (1 + u64::from(scenes.seeds > 0));
                (scenes.cases, scenes.seeds) = self.draw(tried);
            }
            let Some(case) = scenes.cases.pop() else { return Ok(None) };
            let scene = self.prepare(&case).with_context(|| self.target.shader.label())?;
            scenes.known.extend(scene.map(Arc::new));
        }
        Ok(Some(Arc::clone(&scenes.known[n])))
    }

    /// The first cases of these seeds that reach the shader, the smallest last, and the next seed.
    fn draw(&self, mut seeds: Range<u64>) -> (Vec<Case>, u64) {
        let (portable, caps) = (!self.target.shader.subgroups, self.caps());
        let found = std::iter::from_fn(|| self.target.find(&caps, &mut seeds)).take(DRAWN);
        let mut found: Vec<_> =
            found.filter_map(|(_, case)| Some((case.invocations(&caps, portable).ok()?, case))).collect();
        found.sort_by_key(|(size, _)| Reverse(*size));
        (found.into_iter().map(|(_, case)| case).collect(), seeds.start)
    }

    /// Runs the dispatches of a case up to the shader's own. `None` if that takes too long.
    fn prepare(&self, case: &Case) -> anyhow::Result<Option<Scene>> {
        let caps = self.caps();
        let calls = case.calls(&caps, !self.target.shader.subgroups)?;
        let mut space = Space { buffers: calls.buffers, ..Space::default() };
        for call in calls.calls {
            if call.shader == self.target.shader {
                return self.own(call, space.buffers);
            }
            match analysed(
                &call.shader.source(),
                &call,
                &mut space,
                caps.subgroup_size as usize,
                (STEPS_BEFORE, u32::MAX),
            )?
            .0
            {
                None => {}
                Some(Finding::Endless) => return Ok(None),
                Some(other) => return Err(anyhow::Error::from(other).context(call.shader.label())),
            }
        }
        Ok(None)
    }

    fn own(&self, call: Call, buffers: Vec<Vec<u8>>) -> anyhow::Result<Option<Scene>> {
        let mut scene = Scene { call, buffers, shown: None, equal: BTreeSet::new() };
        for &subgroup in self.sizes() {
            let mut space = Space { buffers: scene.buffers.clone(), ..Space::default() };
            let (finding, equal) = analysed(&self.source, &scene.call, &mut space, subgroup, (STEPS, GROUPS))?;
            if finding == Some(Finding::Endless) {
                return Ok(None);
            }
            scene.equal.extend(equal);
            scene.shown = scene.shown.or(finding.map(|finding| Shown { finding, subgroup }));
        }
        Ok(Some(scene))
    }
}

/// Runs a dispatch with this text: so many steps and so many workgroups, at most. Returns what is
/// wrong with it, and the offsets in the text at which several invocations write equal words.
fn analysed(
    source: &str,
    call: &Call,
    space: &mut Space,
    subgroup: usize,
    (steps, groups): (u64, u32),
) -> anyhow::Result<(Option<Finding>, BTreeSet<u32>)> {
    let (module, info) = shaders::validate(source, &call.shader).map_err(|e| anyhow!("{e}"))?;
    let program = Program::new(&module, &info, subgroup)?;
    let mut before = Space { buffers: space.buffers.clone(), ..Space::default() };
    let mut machine = Machine::new(&program, call, space, steps);
    let ended = machine.run(groups);
    let (equal, unsure) = (machine.equal(), std::mem::take(&mut machine.unsure));
    if let Err(error) = ended {
        return Ok((Some(error.downcast::<Finding>()?), equal));
    }
    // A read that races with a write is no finding where the value that it reads changes nothing.
    let Some(race) = unsure.values().next().cloned() else { return Ok((None, equal)) };
    let mut machine = Machine::new(&program, call, &mut before, steps);
    machine.changed = unsure.into_keys().collect();
    let same = machine.run(groups).is_ok() && before.buffers == space.buffers;
    Ok((Some(race).filter(|_| !same), equal))
}

/// What shaders of one kernel differ in: its variant, its subgroup form and the threads of a
/// subgroup, the type of its states, and sometimes its weight format.
pub type Form = (&'static str, bool, u32, Option<String>, Option<&'static str>);

/// The first shader of every form. KV types need separate shaders, because they read and write
/// differently. One weight format represents the others, unless `format` gives a name for it.
pub fn first_of_each<'a>(
    composed: impl IntoIterator<Item = &'a Subject>,
    format: impl Fn(&Target) -> Option<&'static str>,
) -> BTreeMap<Form, &'a Subject> {
    let mut found = BTreeMap::new();
    for user in composed {
        let shader = &user.target.shader;
        let kv = shader
            .pieces
            .iter()
            .flatten()
            .find_map(|piece| if let Piece::Kv(ty) = piece { Some(format!("{ty:?}")) } else { None });
        found.entry((shader.variant.name, shader.subgroups, user.threads, kv, format(&user.target))).or_insert(user);
    }
    found
}
