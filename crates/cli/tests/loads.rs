//! A hundred loads of the default model leave the memory of the process as it was.
#![cfg(target_os = "linux")]

use gguf::Gguf;
use kernels::{Class, Device, Executor};
use model::{GenerateOptions, ModelFile, Sampling, SessionOptions, chat::Message};

/// Bytes that two fifths of the loads may add, where they add least: less than a tenth of the
/// weights of one load.
const MOST_BYTES: u64 = 512 << 10;

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// Loads the model, answers with a few tokens and drops everything. Returns the answer.
fn load(executor: &Executor) -> String {
    let file = Gguf::open(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/default.gguf")).unwrap();
    let model = ModelFile::new(file).unwrap().on(executor).unwrap();
    let mut session = model.session(SessionOptions::default().context(256).chunk(32)).unwrap();
    let options = GenerateOptions::default().sampling(Sampling::greedy()).max_tokens(4);
    let answer = session.chat_with(&[Message::user("What is 3 + 4?")], &Default::default(), options).unwrap();
    answer.map(|token| token.unwrap().text).collect()
}

/// One test, because memory is counted for the whole process.
#[test]
fn a_hundred_loads_leave_memory_flat() {
    let device = Device::auto().expect("an adapter, if only the software one");
    // A software driver compiles shaders for seconds at each load. WEFT_ROUNDS multiplies.
    let times = std::env::var("WEFT_ROUNDS").map_or(1, |times| times.parse().expect("WEFT_ROUNDS is a number"));
    let on_device: usize = if device.adapter().class == Class::Software { 10 * times } else { 100 * times };
    for (executor, loads) in [(Executor::Cpu, 100 * times), (Executor::from(&device), on_device)] {
        let mut after = vec![];
        for _ in 0..loads {
            assert_eq!(load(&executor), "3 + 4");
            after.push(resident_bytes());
        }
        // An allocator may take a few megabytes once, at any load. A leak grows with every load.
        let window = 2 * loads / 5;
        let growth =
            after.windows(window + 1).map(|some| some[window].saturating_sub(some[0])).min().expect("some windows");
        assert!(
            growth < MOST_BYTES,
            "every {window} loads on {} take {growth} bytes or more: {after:?}",
            executor.kind()
        );
        println!("{}: {growth} bytes in {window} loads of {loads}", executor.kind());
    }
}
