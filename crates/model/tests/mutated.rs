//! Damaged copies of the reference checkpoints in `tests/goldens` and of tiny models of the other
//! architectures. Each copy is refused or runs; none panics or takes more memory than its size
//! explains. The damage is the same on every run.

mod common;
#[path = "common/counting.rs"]
mod counting;

use common::Tiny;
use counting::Counting;
use gguf::{Gguf, GgufBuilder};
use kernels::Executor;
use kernels::testing::kernel::random::Gen;
use model::{Error, KvType, ModelFile, SessionOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

#[global_allocator]
static HEAP: Counting = Counting::new();

/// Damaged copies per file.
const COPIES: u64 = 400;
/// Of the copies that load, one in this many is run.
const RUN_EVERY: usize = 8;
/// Bytes that loading or a refusal may use beyond a few copies of the file.
const MOST_BYTES: usize = 32 << 20;

/// Numbers at the limits of lengths, counts and floats, as the bits of a u32, an i32 or an f32.
const WORDS: [u32; 20] = [
    0,
    1,
    2,
    3,
    5,
    8,
    16,
    31,
    33,
    64,
    255,
    1 << 16,
    (1 << 20) + 1,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX,
    0x7fc0_0000, // NaN
    0x7f80_0000, // infinity
    0xbf80_0000, // -1
    0x0000_0001,
];

fn goldens() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens");
    let folders = std::fs::read_dir(root).expect("tests/goldens").map(|entry| entry.expect("an entry").path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|path| std::fs::read_dir(path).expect("a folder"));
    let mut files: Vec<_> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "gguf"))
        .collect();
    files.sort();
    files
}

/// The positions directly behind each `needle` in the header.
fn behind(header: &[u8], needle: &[u8]) -> Vec<usize> {
    let found = header.windows(needle.len()).enumerate().filter(|(_, window)| *window == needle);
    found.map(|(at, _)| at + needle.len()).collect()
}

/// Positions in a header for targeted damage: values of the architecture's keys, and the fields
/// behind the names of tensors.
struct Places {
    header: usize,
    /// Positions of value types, which follow the keys. The values follow them.
    keys: Vec<usize>,
    /// Positions of the numbers of dimensions. Dimensions, type and offset follow.
    tensors: Vec<usize>,
}

impl Places {
    fn of(bytes: &[u8]) -> Self {
        let file = Gguf::from_bytes(bytes.to_vec()).expect("a good file");
        let data: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
        let header = bytes.len() - usize::try_from(data).expect("a small file");
        let architecture = file.architecture().expect("a good file");
        let keys = file.metadata().map(|(key, _)| key).filter(|key| key.starts_with(architecture));
        let keys = keys.flat_map(|key| behind(&bytes[..header], key.as_bytes())).collect();
        let tensors =
            file.tensors().iter().flat_map(|tensor| behind(&bytes[..header], tensor.name().as_bytes())).collect();
        Self { header, keys, tensors }
    }

    /// Damages a copy in one to three places.
    fn damaged(&self, bytes: &[u8], g: &mut Gen) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let below = |g: &mut Gen, end: usize| (g.bits() % end as u64) as usize;
        for _ in 0..1 + below(g, 3) {
            let header = self.header.min(bytes.len());
            let word = g.pick(&WORDS).to_le_bytes();
            let at = match g.bits() % 8 {
                0 => {
                    bytes.truncate(below(g, bytes.len()).max(1));
                    continue;
                }
                1 => {
                    let at = below(g, header);
                    bytes[at] ^= 1 << below(g, 8);
                    continue;
                }
                2 | 3 => self.tensors[below(g, self.tensors.len())] + g.pick(&[0, 4, 8, 12, 16, 20, 24, 28]),
                4 => self.keys[below(g, self.keys.len())],
                _ => self.keys[below(g, self.keys.len())] + g.pick(&[4, 4, 4, 8, 16, 20]),
            };
            if let Some(place) = bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&word);
            }
        }
        bytes
    }
}

/// Opens, checks and loads a file, and runs a few tokens if `runs`. An error means that the file
/// was refused.
fn take(bytes: Vec<u8>, runs: bool) -> Result<(), Error> {
    let file = ModelFile::new(Gguf::from_bytes(bytes)?)?;
    file.check(&Executor::Cpu)?;
    let model = file.on(Executor::Cpu)?;
    if runs {
        let options = SessionOptions::default().chunk(4).kv(KvType::F32).context(6.min(model.summary().context_length));
        let mut session = model.session(options)?;
        session.feed(&[1, 2, 3, 4])?;
        session.logits(|_, _, _| ())?;
    }
    Ok(())
}

#[test]
fn damaged_files_are_refused_or_run_within_memory() {
    let goldens = goldens();
    assert!(goldens.len() >= 8, "{goldens:?}");
    let named = |path: PathBuf| (path.display().to_string(), std::fs::read(path).expect("reads"));
    // No reference checkpoint has the embedding by layer of Gemma 4.
    let tiny = [Tiny::gemma4()].map(|tiny| (format!("{tiny:?}"), tiny.file().to_bytes().expect("writes")));
    let (mut refused, mut taken) = (0, 0);
    for (name, bytes) in goldens.into_iter().map(named).chain(tiny) {
        let places = Places::of(&bytes);
        for seed in 0..common::rounds(COPIES) {
            let damaged = places.damaged(&bytes, &mut Gen::new(seed));
            let runs = taken % RUN_EVERY == 0;
            let (result, most) = HEAP.most_during(|| catch_unwind(AssertUnwindSafe(|| take(damaged, runs))));
            let Ok(result) = result else { panic!("{name}, damage {seed}: panicked") };
            assert!(
                most < 6 * bytes.len() + MOST_BYTES,
                "{name}, damage {seed}: took {most} bytes, {:?}",
                result.err()
            );
            if result.is_ok() { taken += 1 } else { refused += 1 }
        }
    }
    // The damage must be neither harmless nor fatal in all copies, or this test would show nothing.
    assert!(taken > 50 && refused > 1000, "{taken} taken, {refused} refused");
}

/// A copy with edited metadata and without one tensor.
fn copied(file: &Gguf, edit: impl FnOnce(GgufBuilder<'static>) -> GgufBuilder<'static>, without: &str) -> Gguf {
    let mut copy = edit(GgufBuilder::new().copy_metadata(file));
    for tensor in file.tensors().iter().filter(|tensor| tensor.name() != without) {
        let bytes = file.tensor_bytes(tensor).expect("in memory").to_vec();
        copy = copy.tensor(tensor.name(), tensor.shape(), tensor.ty().expect("a known type"), bytes);
    }
    Gguf::from_bytes(copy.to_bytes().expect("writes")).expect("a good file")
}

fn refusal(file: Gguf, what: &str) -> String {
    let result = ModelFile::new(file).and_then(|file| file.check(&Executor::Cpu).map(|_| ()));
    result.err().unwrap_or_else(|| panic!("{what} is accepted")).to_string()
}

#[test]
fn every_tensor_that_is_missing_is_named() {
    for path in goldens().into_iter().filter(|path| path.to_string_lossy().ends_with("-F16.gguf")) {
        let file = Gguf::from_bytes(std::fs::read(&path).expect("reads")).expect("a good file");
        // Two tensors are optional: the embedding replaces the output matrix, and the keys of
        // Gemma 4 replace the values.
        let keys_suffice = path.to_string_lossy().contains("gemma4");
        let optional = |name: &str| name == "output.weight" || (keys_suffice && name.ends_with("attn_v.weight"));
        for tensor in file.tensors().iter().filter(|tensor| !optional(tensor.name())) {
            let message = refusal(copied(&file, |metadata| metadata, tensor.name()), tensor.name());
            assert!(message.contains(tensor.name()), "{}: {message:?} does not name {}", path.display(), tensor.name());
        }
    }
}

#[test]
fn what_gemma3n_files_alone_have_is_checked_by_name() {
    let path = goldens().into_iter().find(|path| path.ends_with("gemma3n-F16.gguf")).expect("gemma3n");
    let file = Gguf::from_bytes(std::fs::read(path).expect("reads")).expect("a good file");
    type Edit = fn(GgufBuilder<'static>, &str) -> GgufBuilder<'static>;
    let cases: [(&str, Edit); 13] = [
        ("altup.num_inputs", |file, key| file.remove(key)),
        ("altup.num_inputs", |file, key| file.set(key, 1_u32)),
        ("altup.num_inputs", |file, key| file.set(key, 5_u32)),
        ("altup.active_idx", |file, key| file.remove(key)),
        ("altup.active_idx", |file, key| file.set(key, 4_u32)),
        ("activation_sparsity_scale", |file, key| file.remove(key)),
        ("activation_sparsity_scale", |file, key| file.set(key, vec![1.0_f32; 5])),
        ("activation_sparsity_scale", |file, key| file.set(key, vec![f32::NAN; 6])),
        ("activation_sparsity_scale", |file, key| file.set(key, vec![f32::INFINITY; 6])),
        ("activation_sparsity_scale", |file, key| file.set(key, 1.0_f32)),
        ("attention.shared_kv_layers", |file, key| file.set(key, 5_u32)),
        ("embedding_length_per_layer_input", |file, key| file.set(key, 0_u32)),
        ("attention.sliding_window_pattern", |file, key| file.set(key, vec![true; 5])),
    ];
    for (key, edit) in cases {
        let key = format!("gemma3n.{key}");
        let message = refusal(copied(&file, |metadata| edit(metadata, &key), ""), &key);
        assert!(message.contains(&key), "{message:?} does not name {key}");
    }
    // The file's tensors are for another number of streams than three.
    let message =
        refusal(copied(&file, |metadata| metadata.set("gemma3n.altup.num_inputs", 3_u32), ""), "three streams");
    assert!(message.contains("altup_proj.weight"), "{message:?}");
}
