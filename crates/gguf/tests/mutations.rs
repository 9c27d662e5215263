//! Runs the fuzz body over a bounded number of seeded mutations of good files.

use gguf::{GgmlType, GgufBuilder, MetaValue, ValueType};

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Numbers at which arithmetic overflows or changes sign.
const EDGES: [u64; 12] = [0, 1, 7, 8, 31, 32, 255, u32::MAX as u64, 1 << 31, 1 << 32, 1 << 63, u64::MAX];

fn seeds() -> Vec<Vec<u8>> {
    let every_type = GgmlType::ALL.iter().fold(GgufBuilder::new(), |builder, &ty| {
        builder.tensor(ty.name(), &[ty.block_size() as u64, 2], ty, vec![0x55; 2 * ty.block_bytes()])
    });
    let nested =
        MetaValue::Array(ValueType::Array, vec![vec!["a", "b"].into(), vec![1u16, 2].into(), vec![true].into()]);
    let arrays = GgufBuilder::new().alignment(8).set("nested", nested).set("s", vec!["x"; 9]).set("n", vec![-1i64; 5]);
    vec![
        include_bytes!("files/python.gguf").to_vec(),
        every_type.to_bytes().unwrap(),
        arrays.tensor_f32("t", &[2, 1, 2], &[1.0; 4]).to_bytes().unwrap(),
    ]
}

/// Makes one to four changes: flips a bit, sets a byte, writes an edge number in 4 or 8 bytes,
/// truncates, or repeats or removes a run of bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        if bytes.len() < 16 {
            return;
        }
        let at = random.below(bytes.len() - 8);
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes[at..at + 8].copy_from_slice(&EDGES[random.below(EDGES.len())].to_le_bytes()),
            3 => bytes[at..at + 4].copy_from_slice(&EDGES[random.below(EDGES.len())].to_le_bytes()[..4]),
            4 => bytes.truncate(at),
            5 => {
                let run = bytes[at..(at + 1 + random.below(64)).min(bytes.len())].to_vec();
                bytes.splice(at..at, run);
            }
            _ => drop(bytes.drain(at..(at + 1 + random.below(16)).min(bytes.len()))),
        }
    }
}

#[test]
fn mutated_files_neither_panic_nor_differ_between_sources() {
    let (seeds, mut random) = (seeds(), Random(0x9e37_79b9_7f4a_7c15));
    let mut opened = 0;
    for i in 0..6000 {
        let mut bytes = seeds[i % seeds.len()].clone();
        assert!(i > seeds.len() || gguf::fuzz::parse(&bytes), "seed {i}");
        mutate(&mut bytes, &mut random);
        opened += gguf::fuzz::parse(&bytes) as usize;
    }
    // Some mutations must be refused and some accepted, so that both sides of the checks run.
    assert!((600..5400).contains(&opened), "{opened} of 6000 opened");
}
