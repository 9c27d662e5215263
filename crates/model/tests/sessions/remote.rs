//! Models whose bytes are awaited, as a browser has them.

use crate::common::{MIXED, Tiny, both, exact, ids, logits};
use gguf::{AsyncSource, Remote};
use kernels::{Device, Executor, Limits, Select, block_on};
use model::{Error, Model, ModelFile};
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::Poll;

/// A file in memory whose reads take a turn each. It keeps the ranges that were read.
#[derive(Clone)]
struct Awaited {
    bytes: Arc<[u8]>,
    reads: Arc<Mutex<Vec<Range<u64>>>>,
    /// Reads from this offset on fail.
    fails_at: u64,
}

impl Awaited {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), reads: Arc::default(), fails_at: u64::MAX }
    }

    fn take_reads(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }
}

impl AsyncSource for Awaited {
    fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut waited = false;
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let range = offset..offset + buf.len() as u64;
        if range.end > self.fails_at {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        buf.copy_from_slice(&self.bytes[range.start as usize..range.end as usize]);
        self.reads.lock().unwrap().push(range);
        Ok(())
    }
}

/// A model that is loaded from these parts of a file.
async fn load(parts: Vec<Awaited>, executor: &Executor) -> Result<(Model, Remote<Awaited>), Error> {
    let (remote, file) = Remote::open(parts).await?;
    let file = ModelFile::new(file)?;
    let checked = remote.with(|| file.check(executor)).await?;
    let model = file.receive(checked, &remote, &|_| {}).await?;
    Ok((model, remote))
}

fn shapes() -> [Tiny; 3] {
    [Tiny::qwen3(), Tiny { types: MIXED, ..Tiny::qwen2().mixed() }, Tiny::qwen3moe()]
}

#[test]
fn a_model_of_awaited_bytes_is_read_once_in_order_and_has_the_same_bits() {
    for (tiny, executor) in shapes().iter().flat_map(|tiny| both().map(|executor| (tiny, executor))) {
        let bytes = tiny.file().to_bytes().unwrap();
        let source = Awaited::new(bytes.clone());
        let (remote, file) = block_on(Remote::open(vec![source.clone()])).unwrap();
        let begin = file.tensors().iter().map(|tensor| tensor.offset).min().unwrap();
        let of_header = source.take_reads();
        // Reads double, so that they end at most one header behind its end.
        assert!(of_header.last().unwrap().end <= (2 * begin).max(64 << 10).min(bytes.len() as u64), "{of_header:?}");

        let (file, seen) = (ModelFile::new(file).unwrap(), Mutex::new(vec![]));
        let checked = block_on(remote.with(|| file.check(&executor))).unwrap();
        assert_eq!(source.take_reads(), [], "a check needs the header alone");
        let model = block_on(file.receive(checked, &remote, &|progress| seen.lock().unwrap().push(progress))).unwrap();
        let reads = source.take_reads();
        assert!(reads.windows(2).all(|pair| pair[0].end <= pair[1].start), "{reads:?}");
        let seen = seen.into_inner().unwrap();
        let read: u64 = reads.iter().map(|range| range.end - range.start).sum();
        assert_eq!((seen.last().unwrap().done, seen.last().unwrap().total), (read, read));

        let whole = tiny.on(&executor);
        assert_eq!(block_on(remote.with(|| model.digest())).unwrap(), whole.digest().unwrap());
        assert_eq!(model.weight_bytes(), whole.weight_bytes());
        let values = |model: &Model| {
            let mut session = model.session(exact(8)).unwrap();
            session.feed(&ids(20, 3)).unwrap();
            logits(&mut session).0
        };
        assert!(values(&model) == values(&whole), "{} on {}", tiny.architecture, executor.kind());
    }
}

#[test]
fn a_read_that_fails_is_the_error_of_loading_and_frees_every_buffer() {
    let tiny = Tiny::qwen3();
    let bytes = tiny.file().to_bytes().unwrap();
    // A device of its own: other tests make buffers meanwhile.
    let device = Device::open(&Select::Best, Limits::Adapter).unwrap();
    for executor in [Executor::Cpu, Executor::from(&device)] {
        let live = || match &executor {
            Executor::Gpu(device) => device.buffer_count(),
            Executor::Cpu => 0,
        };
        let before = live();
        let source = Awaited { fails_at: bytes.len() as u64 * 3 / 4, ..Awaited::new(bytes.clone()) };
        let failed = block_on(load(vec![source], &executor)).err().expect("it fails");
        assert!(matches!(failed, Error::File(gguf::Error::Read { .. })), "{failed}");
        assert!(failed.to_string().contains("bytes at offset"), "{failed}");
        assert_eq!(live(), before, "on {}", executor.kind());
    }
}
