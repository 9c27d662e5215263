//! Memory while examples are read: it does not grow with the number of lines.

#[path = "data/common.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../model/tests/common/counting.rs"]
mod counting;

use common::{options, qwen2};
use counting::Counting;
use gguf::Source;
use std::io;
use std::sync::Mutex;
use train::{Batches, Data, Stream};

#[global_allocator]
static HEAP: Counting = Counting::new();

/// The tests of this file measure the same heap, so only one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Lines that are made when they are read.
struct Generated {
    lines: u64,
    /// Whether the lines are the elements of one list.
    list: bool,
}

/// Bytes of a line.
const LINE: u64 = 32;

impl Generated {
    fn line(&self, n: u64) -> Vec<u8> {
        let line = format!("{{\"ids\": [{}, {}, {}]}}", n % 251, n / 251 % 251, n / 251 / 251 % 251);
        let before = ["", "[", ","][usize::from(self.list) * (1 + usize::from(n > 0))];
        let behind = if self.list && n + 1 == self.lines { "]" } else { "" };
        format!("{:31}\n", format!("{before}{line}{behind}")).into_bytes()
    }
}

impl Source for Generated {
    fn len_bytes(&self) -> u64 {
        self.lines * LINE
    }

    fn read_at(&self, offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        let mut at = offset;
        while !buf.is_empty() {
            let line = &self.line(at / LINE)[(at % LINE) as usize..];
            let len = line.len().min(buf.len());
            buf[..len].copy_from_slice(&line[..len]);
            (at, buf) = (at + len as u64, &mut buf[len..]);
        }
        Ok(())
    }
}

fn open(lines: u64, list: bool) -> Data {
    Data::new(vec![("made.jsonl".to_string(), Box::new(Generated { lines, list }))], qwen2(), &options(), &|_| ())
        .expect("good lines")
}

#[test]
fn memory_is_flat_over_a_million_lines() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (data, most) = HEAP.most_during(|| open(1_000_000, false));
    // The index has 3 MiB at most, and half as much again while it grows. A place for each line
    // would take 24 MB.
    assert!(most < 6 << 20, "{most} bytes at most");
    assert_eq!(data.len(), 1_000_000);
    let ((), most) = HEAP.most_during(|| {
        let mut batches = Batches::new(data.clone(), 4, 1);
        for _ in 0..50 {
            assert_eq!(batches.next().expect("a batch").len(), 4);
        }
        for n in [0, 1, 7, 8, 123_456, 999_999] {
            let ids = &data.documents(n).expect("read")[0].ids;
            assert_eq!(ids[..], [n % 251, n / 251 % 251, n / 251 / 251 % 251].map(|id| id as u32));
        }
    });
    assert!(most < 1 << 20, "{most} bytes at most");
}

#[test]
fn memory_is_flat_over_a_list_of_many_elements() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (data, most) = HEAP.most_during(|| open(200_000, true));
    assert!(most < 6 << 20, "{most} bytes at most");
    assert_eq!(data.len(), 200_000);
    for n in [0, 1, 7, 123_456, 199_999] {
        assert_eq!(data.documents(n).expect("read")[0].ids[0], (n % 251) as u32);
    }
}

#[test]
fn a_stream_takes_the_memory_of_a_batch() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    struct Made(u64);
    impl io::Read for Made {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let line = Generated { lines: u64::MAX, list: false }.line(self.0);
            self.0 += 1;
            buf[..line.len()].copy_from_slice(&line);
            Ok(line.len())
        }
    }
    let ((), most) = HEAP.most_during(|| {
        let mut stream = Stream::new("-", Box::new(io::BufReader::with_capacity(64, Made(0))), qwen2(), &options());
        for _ in 0..10_000 {
            assert_eq!(stream.next(10).expect("good lines").len(), 10);
        }
    });
    assert!(most < 1 << 20, "{most} bytes at most");
}

#[test]
fn a_line_that_never_ends_takes_the_memory_of_its_limit() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for name in ["long.jsonl", "long.txt"] {
        let (result, most) = HEAP.most_during(|| {
            let endless = io::Read::take(io::repeat(0xfe), 200 << 20);
            let mut stream = Stream::new(name, Box::new(io::BufReader::new(endless)), qwen2(), &options());
            stream.next(1).map(|_| ())
        });
        assert!(result.is_err() && most < 40 << 20, "{name}: {most} bytes at most");
    }
}
