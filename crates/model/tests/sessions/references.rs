//! The first rows of every reference checkpoint in `tests/goldens`, on both executors, compared
//! with transformers' logits within the goldens' bounds. `cargo xtask golden` compares the rest:
//! all rows, hidden states, chunks, taps and continuations.

use crate::common::{exact, gpu, worst};
use kernels::Executor;
use model::Model;
use std::path::{Path, PathBuf};

/// Rows compared: more than the sliding windows of these files.
const FED_ROWS: usize = 20;
/// The largest difference of a logit, on the CPU and on a GPU.
const BOUNDS: [f32; 2] = [1e-4, 5e-4];

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens");
    let entries = std::fs::read_dir(root).expect("tests/goldens").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = entries.filter(|path| path.join("tokens.json").exists()).collect();
    folders.sort();
    folders
}

/// The values of a version 1 file of little-endian f32, in C order.
fn npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("reads");
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let described = String::from_utf8_lossy(&bytes[10..header]);
    assert!(described.contains("'<f4'") && described.contains("'fortran_order': False"), "{described}");
    bytes[header..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

#[test]
fn the_first_rows_are_those_of_transformers() {
    assert!(folders().len() >= 6, "{:?}", folders());
    for folder in folders() {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let ids = std::fs::read_to_string(folder.join("tokens.json")).expect("reads");
        let ids = ids.trim().trim_start_matches('[').trim_end_matches(']').split(',');
        let ids: Vec<u32> = ids.map(|id| id.trim().parse().expect("an id")).collect();
        let reference = npy(&folder.join("hf_logits_f32.npy"));
        let vocabulary = reference.len() / ids.len();
        for (executor, bound) in [Executor::Cpu, gpu()].into_iter().zip(BOUNDS) {
            let kind = executor.kind();
            let file = Model::open(folder.join(format!("{name}-F16.gguf"))).unwrap_or_else(|e| panic!("{name}: {e}"));
            let model = file.on(executor).unwrap_or_else(|e| panic!("{name} on {kind}: {e}"));
            let mut session = model.session(exact(7)).expect("room");
            session.feed(&ids[..FED_ROWS]).expect("room");
            let mut got = vec![];
            session.logits(|_, rows, _| got.extend_from_slice(rows)).expect("logits");
            let apart = worst(&reference[..FED_ROWS * vocabulary], &got);
            assert!(apart <= bound, "{name} on {kind}: {apart:e} from the reference");
        }
    }
}
