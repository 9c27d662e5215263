//! The results of cards in docs/parity.tsv: what is recorded, and what is missing or stale.

use crate::records::{self, Digest, Records};
use kernels::testing::sweep::Target;
use kernels::{Caps, Class, Device, Limits};
use std::collections::{BTreeMap, BTreeSet};

/// The results of kernels, by variant. A line of each card says what it can run.
const RECORDS: records::File = ("docs/parity.tsv", "kernel\tadapter\thash\tshaders\tcases\tlargest share of the bound");

/// The subject of the line of a card. It has no hash.
const CARD: &str = "(card)";
const NO_HASH: &str = "-";

/// A shader that was compared with its oracle.
pub struct Passed {
    pub target: Target,
    pub cases: usize,
    /// The largest error, relative to the bound.
    pub share: f64,
    pub holds: bool,
}

/// Fails if the results of a device are not recorded: those of a software driver, which CI has in
/// every run, and those of a card with fewer features than it has.
pub fn admits(device: &Device, limits: Limits) -> anyhow::Result<()> {
    anyhow::ensure!(
        device.adapter().class != Class::Software,
        "--record is for cards: CI runs what a software driver can"
    );
    anyhow::ensure!(
        limits == Limits::Adapter,
        "--record needs everything that the card has: unset WEFT_LIMITS and WEFT_WITHOUT"
    );
    Ok(())
}

/// Writes a line for every variant whose shaders all hold, and drops the line of any other.
pub fn record(device: &Device, targets: &[Target], passed: Vec<Passed>) -> anyhow::Result<()> {
    let (hashes, adapter) = (hashes(targets), records::adapter(device));
    let mut variants: BTreeMap<&str, Vec<Passed>> = BTreeMap::new();
    passed.into_iter().for_each(|of| variants.entry(of.target.shader.variant.name).or_default().push(of));
    let mut records = Records::read(RECORDS)?;
    records.put(CARD, &adapter, NO_HASH, described(device.caps()));
    for (name, shaders) in variants {
        let share = shaders.iter().map(|of| of.share).fold(0.0, f64::max);
        let result = format!("{}\t{}\t{share:.2}", shaders.len(), shaders.iter().map(|of| of.cases).sum::<usize>());
        if shaders.iter().all(|of| of.holds) {
            records.put(name, &adapter, &hashes[name], result);
        } else {
            records.keep(&adapter, |of| of != name);
        }
    }
    records.write()
}

/// Prints which lines of the file are missing or stale, by card. Returns true if none is.
pub fn check() -> anyhow::Result<bool> {
    let records = Records::read(RECORDS)?;
    let mut all = 0;
    for adapter in records.adapters() {
        let caps = records.of(CARD, &adapter, NO_HASH).and_then(caps);
        let caps = caps.ok_or_else(|| {
            anyhow::anyhow!("{}: no line says what {adapter} can run: --record on it writes one", RECORDS.0)
        })?;
        let Gaps { missing, stale } = gaps(&records, &adapter, &hashes(&Target::all(&caps)));
        println!("{}: {adapter}: {} missing, {} stale", RECORDS.0, missing.len(), stale.len());
        for (what, names) in [("missing", &missing), ("stale", &stale)] {
            if !names.is_empty() {
                println!("{what}: {}", names.join(" "));
            }
        }
        all += missing.len() + stale.len();
    }
    println!("{all} lines of {} are missing or stale: verify-shaders --record on a card writes them", RECORDS.0);
    Ok(all == 0)
}

/// Variants that a card can run without a line, and lines whose hash is another or whose variant
/// the card does not have.
#[derive(Debug, PartialEq, Eq)]
struct Gaps {
    missing: Vec<String>,
    stale: Vec<String>,
}

fn gaps(records: &Records, adapter: &str, hashes: &BTreeMap<&'static str, String>) -> Gaps {
    let known: BTreeSet<&str> = records.subjects(adapter).filter(|name| *name != CARD).collect();
    let missing = hashes.keys().filter(|name| !known.contains(*name)).map(ToString::to_string).collect();
    let fresh = |name: &str| hashes.get(name).is_some_and(|hash| records.of(name, adapter, hash).is_some());
    Gaps { missing, stale: known.into_iter().filter(|name| !fresh(name)).map(str::to_string).collect() }
}

/// The hash of each variant: of its shaders, their bounds and their cases.
fn hashes(targets: &[Target]) -> BTreeMap<&'static str, String> {
    let cases = records::cases(targets);
    let mut variants: BTreeMap<&'static str, Vec<&Target>> = BTreeMap::new();
    targets.iter().for_each(|target| variants.entry(target.shader.variant.name).or_default().push(target));
    let hash = |mut shaders: Vec<&Target>| {
        shaders.sort_by_key(|target| target.shader.label());
        let mut digest = Digest::default();
        shaders.iter().for_each(|target| digest.shader(target, &target.shader.source(), &cases));
        digest.text()
    };
    variants.into_iter().map(|(name, shaders)| (name, hash(shaders))).collect()
}

/// What decides which shaders a device can run.
fn described(caps: &Caps) -> String {
    let Caps { subgroup_size, cooperative, max_workgroup, max_workgroup_bytes, max_storage_buffers, .. } = caps;
    let matrices = if *cooperative { "cooperative matrices" } else { "no matrices" };
    format!(
        "subgroups of {subgroup_size}\t{matrices}\t{max_workgroup} threads\t{max_workgroup_bytes} bytes\t{max_storage_buffers} buffers"
    )
}

/// A device that runs the same shaders as the one that was described.
fn caps(described: &str) -> Option<Caps> {
    let [subgroups, matrices, threads, bytes, buffers] = described.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let number = |text: &str, unit: &str| text.strip_suffix(unit)?.parse().ok();
    let subgroup_size = subgroups.strip_prefix("subgroups of ")?.parse().ok()?;
    Some(Caps {
        subgroups: subgroup_size > 0,
        subgroup_size,
        cooperative: match matrices {
            "cooperative matrices" => true,
            "no matrices" => false,
            _ => return None,
        },
        max_workgroup: number(threads, " threads")?,
        max_workgroup_bytes: number(bytes, " bytes")?,
        max_storage_buffers: number(buffers, " buffers")?,
        ..Caps::WEBGPU
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::testing::kinds::kinds;
    use std::path::PathBuf;

    fn labels(caps: &Caps) -> Vec<String> {
        Target::all(caps).iter().map(|target| target.shader.label()).collect()
    }

    #[test]
    fn a_line_of_a_card_has_everything_that_decides_which_shaders_it_runs() {
        for kind in kinds() {
            let text = described(&kind);
            let read = caps(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((described(&read), labels(&read)), (text, labels(&kind)));
        }
        for bad in [
            "",
            "subgroups of 32",
            "subgroups of x\tno matrices\t1 threads\t1 bytes\t1 buffers",
            "subgroups of 8\tmatrices\t1 threads\t1 bytes\t1 buffers",
        ] {
            assert!(caps(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn variants_without_a_line_are_missing_and_lines_of_other_hashes_or_of_no_variant_are_stale() {
        let hashes =
            BTreeMap::from([("a", "01".to_string()), ("b", "02".to_string()), ("only_cards", "03".to_string())]);
        let text = "head\n(card)\tcard\t-\tx\na\tcard\t01\t1\nb\tcard\t99\t1\nb\tother\t02\t1\ngone\tcard\t05\t1\n";
        let records = Records::parse(PathBuf::new(), "head", text).unwrap();
        let of = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(gaps(&records, "card", &hashes), Gaps { missing: of(&["only_cards"]), stale: of(&["b", "gone"]) });
        assert_eq!(gaps(&records, "other", &hashes), Gaps { missing: of(&["a", "only_cards"]), stale: vec![] });
        assert_eq!(records.adapters(), ["card", "other"].map(str::to_string).into());
    }

    /// The check needs no device, so each adapter in the file must say what it runs.
    #[test]
    fn every_card_of_the_file_can_be_checked_and_runs_kernels_that_no_software_driver_runs() {
        let records = Records::read(RECORDS).unwrap();
        assert!(!records.adapters().is_empty());
        for adapter in records.adapters() {
            let caps =
                records.of(CARD, &adapter, NO_HASH).and_then(caps).unwrap_or_else(|| panic!("no line of {adapter}"));
            assert!(hashes(&Target::all(&caps)).contains_key("matmul_tile128_glu_silu"), "{adapter}");
        }
    }

    #[test]
    fn the_hash_of_a_variant_is_that_of_all_its_shaders() {
        let mut targets = Target::all(&Caps::WEBGPU);
        targets.retain(|target| target.shader.variant.name == "embed");
        let all = hashes(&targets);
        targets.reverse();
        assert_eq!(hashes(&targets), all, "in any order");
        assert_ne!(hashes(&targets[1..]), all);
        assert_eq!(all.len(), 1);
    }
}
