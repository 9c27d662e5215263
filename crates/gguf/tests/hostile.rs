//! Damaged and malicious files. Each gives an error that names the problem, quickly and in bounded
//! memory.

mod common;

use std::time::{Duration, Instant};

use common::Raw;
use gguf::{Error, Gguf};

const F32: u32 = 0;
const Q8_0: u32 = 8;
const STR: u32 = 8;
const ARRAY: u32 = 9;
const HUGE: u64 = 1 << 63;

/// A case: its name, the file, and words that the error message must contain.
type Case = (&'static str, Raw, &'static str);

fn one_tensor(name: &[u8], dims: &[u64], ty: u32, offset: u64, data: usize) -> Raw {
    Raw::header(3, 1, 0).tensor(name, dims, ty, offset).data(data)
}

fn one_key(key: &str, ty: u32) -> Raw {
    Raw::header(3, 0, 1).key(key, ty)
}

fn array(element: u32, count: u64) -> Raw {
    one_key("k", ARRAY).u32(element).u64(count)
}

fn nested(depth: usize) -> Raw {
    (0..depth).fold(one_key("deep", ARRAY), |raw, _| raw.u32(ARRAY).u64(1)).u32(0).u64(0)
}

fn preamble() -> Vec<Case> {
    vec![
        ("empty file", Raw::default(), "ends within magic"),
        ("three bytes", Raw(b"GGU".to_vec()), "ends within magic"),
        ("bad magic", Raw(b"GGML\x03\0\0\0".to_vec()), "not a gguf file"),
        ("older format", Raw(b"tjgg\x03\0\0\0".to_vec()), "older than gguf"),
        ("LFS pointer", Raw(b"version https://git-lfs".to_vec()), "git lfs pull"),
        ("magic alone", Raw(b"GGUF".to_vec()), "ends within version"),
        ("version 0", Raw::header(0, 0, 0), "version 0"),
        ("version 4", Raw::header(4, 0, 0), "version 4"),
        ("version 2^31", Raw::header(1 << 31, 0, 0), "version 2147483648"),
        ("big-endian version", Raw(b"GGUF\0\0\0\x03".to_vec()), "big-endian"),
        ("big-endian magic", Raw(b"FUGG\0\0\0\x03".to_vec()), "big-endian"),
        ("counts missing", Raw(b"GGUF\x03\0\0\0".to_vec()), "ends within tensors"),
        ("2^64 - 1 tensors", Raw::header(3, u64::MAX, 0).data(0), "18446744073709551615 tensors"),
        ("2^64 - 1 keys", Raw::header(3, 0, u64::MAX).data(0), "18446744073709551615 keys"),
        ("tensor count that wraps times its size", Raw::header(3, u64::MAX / 33 + 1, 0).data(0), "tensors announced"),
        (
            "version 1 with a body of version 3",
            Raw::header(1, 1, 0).tensor(b"t", &[1], F32, 0).data(4),
            "name at offset 16 is empty",
        ),
    ]
}

fn metadata() -> Vec<Case> {
    vec![
        ("empty key", one_key("", 0).bytes(&[0]), "key at offset 24 is empty"),
        ("key of 65,536 bytes", one_key(&"k".repeat(65_536), 0).bytes(&[0]), "65536 bytes long"),
        ("key that is not utf-8", Raw::header(3, 0, 1).string(b"\xff\xfe").u32(0).bytes(&[0]), "not valid utf-8"),
        ("duplicate key", Raw::header(3, 0, 2).key("k", 0).bytes(&[1]).key("k", 0).bytes(&[2]), "`k` occurs twice"),
        ("key longer than the file", Raw::header(3, 0, 1).u64(1 << 40).data(64), "ends within key"),
        ("value type 13", one_key("k", 13).u64(0), "unknown value type 13"),
        ("value type 2^32 - 1", one_key("k", u32::MAX).u64(0), "unknown value type 4294967295"),
        ("array of type 13", array(13, 0).u64(0), "unknown value type 13"),
        ("value cut short", one_key("k", 10).u32(0), "ends within metadata value"),
        ("string longer than the file", one_key("k", STR).u64(1 << 40), "ends within metadata string"),
        ("string of 2^64 - 1", one_key("k", STR).u64(u64::MAX).data(64), "ends within metadata string"),
        ("array longer than the file", array(4, 1 << 40).data(64), "array elements"),
        ("array whose size wraps", array(10, (1 << 61) + 1).data(64), "array elements"),
        ("array of strings that wraps", array(STR, u64::MAX / 8 + 2).data(64), "array elements"),
        (
            "array of strings cut short",
            array(STR, 2).string(b"one").u64(5).bytes(b"fo"),
            "ends within string in an array",
        ),
        ("token of 2^31 bytes", array(STR, 1).u64(1 << 31).data(64), "ends within string in an array"),
        ("array of arrays of strings cut short", array(ARRAY, 1).u32(STR).u64(1).u64(9), "ends within"),
        ("array of arrays too many", array(ARRAY, 1 << 40).data(64), "array elements"),
        ("arrays 9 deep", nested(9), "more than 8 deep"),
        ("arrays 100,000 deep", nested(100_000), "more than 8 deep"),
        ("bool of 2", one_key("k", 7).bytes(&[2]), "the byte 2"),
        ("array of bools with 255", array(7, 3).bytes(&[0, 1, 255]), "the byte 255"),
    ]
}

fn alignment() -> Vec<Case> {
    let aligned = |value: u32| one_key("general.alignment", 4).u32(value);
    vec![
        ("alignment 0", aligned(0), "`general.alignment` is u32 0"),
        ("alignment 3", aligned(3), "`general.alignment` is u32 3"),
        ("alignment 2^31", aligned(1 << 31), "`general.alignment` is u32 2147483648"),
        ("alignment of type u64", one_key("general.alignment", 10).u64(32), "u64 32"),
        ("alignment of type string", one_key("general.alignment", STR).string(b"32"), "string \"32\""),
    ]
}

fn tensors() -> Vec<Case> {
    let two = |a: u64, b: u64| Raw::header(3, 2, 0).tensor(b"a", &[16], F32, a).tensor(b"b", &[16], F32, b).data(128);
    vec![
        ("empty name", one_tensor(b"", &[1], F32, 0, 4), "tensor name at offset 24 is empty"),
        ("name of 513 bytes", one_tensor(&[b'n'; 513], &[1], F32, 0, 4), "513 bytes long"),
        ("name that is not utf-8", one_tensor(b"\xc3(", &[1], F32, 0, 4), "not valid utf-8"),
        (
            "duplicate name",
            Raw::header(3, 2, 0).tensor(b"a", &[8], F32, 0).tensor(b"a", &[8], F32, 32).data(64),
            "`a` occurs twice",
        ),
        ("0 dimensions", one_tensor(b"t", &[], F32, 0, 32), "0 dimensions"),
        ("5 dimensions", one_tensor(b"t", &[1; 5], F32, 0, 32), "5 dimensions"),
        ("2^32 - 1 dimensions", Raw::header(3, 1, 0).string(b"t").u32(u32::MAX).data(64), "4294967295 dimensions"),
        ("dimension 0", one_tensor(b"t", &[4, 0], F32, 0, 32), "impossible shape [4, 0]"),
        ("dimension 2^63", one_tensor(b"t", &[HUGE], F32, 0, 32), "impossible shape"),
        ("product that wraps to 0", one_tensor(b"t", &[1 << 32, 1 << 32], F32, 0, 32), "impossible shape"),
        ("product that wraps to 1", one_tensor(b"t", &[u64::MAX, u64::MAX], F32, 0, 32), "impossible shape"),
        ("byte size that wraps", one_tensor(b"t", &[1 << 62], F32, 0, 32), "impossible shape"),
        ("row that is no multiple of the block", one_tensor(b"t", &[33, 2], Q8_0, 0, 96), "not a multiple of the 32"),
        ("misaligned offset", one_tensor(b"t", &[8], F32, 16, 64), "not a multiple of the alignment"),
        ("offset beyond the end", one_tensor(b"t", &[8], F32, 4096, 64), "cut short"),
        ("offset whose sum wraps", one_tensor(b"t", &[8], F32, u64::MAX - 31, 64), "cut short"),
        ("overlap", two(0, 32), "`a` and `b` overlap"),
        ("same place", two(64, 64), "overlap"),
        ("overlap in another order", two(32, 0), "`b` and `a` overlap"),
        ("data one byte short", one_tensor(b"t", &[8], F32, 0, 31), "32 bytes at data offset 0"),
        ("data missing", one_tensor(b"t", &[8], F32, 0, 0), "has 0"),
        ("padding missing", Raw::header(3, 1, 0).tensor(b"t", &[8], F32, 0), "has 0"),
        ("tensor info cut short", Raw::header(3, 1, 0).string(b"tensor").u32(2).u64(1).u64(1), "ends within"),
    ]
}

#[test]
fn every_hostile_class_ends_in_an_error_that_names_it() {
    for (name, raw, words) in [preamble(), metadata(), alignment(), tensors()].concat() {
        let start = Instant::now();
        let error = Gguf::from_bytes(raw.0.clone()).map(|_| ()).expect_err(name).to_string();
        assert!(error.contains(words), "{name}: {error:?} lacks {words:?}");
        assert!(start.elapsed() < Duration::from_millis(500), "{name}");
        // With positioned reads the header is buffered instead of borrowed. The error must be the
        // same.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &raw.0).unwrap();
        let from_file = Gguf::open(file.path()).map(|_| ()).expect_err(name).to_string();
        assert_eq!(from_file, format!("{}: {error}", file.path().display()), "{name}");
    }
}

#[test]
fn every_truncation_of_a_good_file_is_an_error() {
    let good = include_bytes!("files/python.gguf");
    let last =
        Gguf::from_bytes(&good[..]).unwrap().tensors().iter().map(|t| t.offset + t.bytes).max().unwrap() as usize;
    for len in 0..last {
        assert!(Gguf::from_bytes(&good[..len]).is_err(), "{len}");
    }
    // The padding after the last tensor belongs to no tensor.
    assert!(Gguf::from_bytes(&good[..last]).is_ok());
}

#[test]
fn unknown_tensor_types_list_but_cannot_be_used() {
    let gguf =
        Gguf::from_bytes(Raw::header(3, 2, 0).tensor(b"new", &[7], 99, 0).tensor(b"t", &[8], F32, 32).data(64).0)
            .unwrap();
    let new = gguf.tensor("new").unwrap();
    assert_eq!((new.ty_number, new.bytes), (99, 0));
    for error in
        [new.ty().unwrap_err(), gguf.read_tensor(new, 0, &mut []).unwrap_err(), gguf.dequantized(new).unwrap_err()]
    {
        assert_eq!(
            error.to_string(),
            "tensor `new` has the unknown type number 99; requantize the model or update this program"
        );
    }
    assert!(gguf.tensor_bytes(new).is_none());
    assert_eq!(gguf.dequantized(gguf.tensor("t").unwrap()).unwrap(), [0.0; 8]);
}

#[test]
fn strictness_does_not_refuse_good_files() {
    let long = [b'n'; 512];
    let raw = Raw::header(3, 2, 3).key("x.unknown", 11).u64(7).key("x.empty", ARRAY).u32(4).u64(0);
    // Arrays of arrays, a tensor name of 512 bytes, tensors out of order with a gap between them.
    let raw = raw.key("x.nested", ARRAY).u32(ARRAY).u64(2).u32(STR).u64(1).string(b"a").u32(0).u64(2).bytes(&[5, 6]);
    let gguf = Gguf::from_bytes(raw.tensor(&long, &[8], F32, 96).tensor(b"t", &[8], F32, 0).data(128).0).unwrap();
    assert_eq!(gguf.get::<i64>("x.unknown").unwrap(), 7);
    assert_eq!(gguf.get::<Vec<u32>>("x.empty").unwrap(), []);
    let nested: gguf::Array = gguf.get("x.nested").unwrap();
    let shown: Vec<String> = nested.iter().map(|value| value.to_string()).collect();
    assert_eq!(shown, ["[\"a\"]", "[5, 6]"]);
    assert_eq!(nested.get(1).unwrap().to_string(), "[5, 6]");
    assert!(gguf.tensor(std::str::from_utf8(&long).unwrap()).is_ok());
}

#[test]
fn version_1_has_narrow_lengths() {
    let string = |raw: Raw, s: &str| raw.u32(s.len() as u32).bytes(s.as_bytes());
    let mut raw = string(Raw(b"GGUF".to_vec()).u32(1).u32(1).u32(1), "k").u32(ARRAY).u32(STR).u32(2);
    raw = string(string(raw, "one"), "two");
    raw = string(raw, "t").u32(2).u32(4).u32(2).u32(F32).u64(0).data(32);
    let gguf = Gguf::from_bytes(raw.0).unwrap();
    let words = gguf.get::<gguf::Array>("k").unwrap();
    assert_eq!(words.strs().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), ["one", "two"]);
    assert_eq!(words.get(1).unwrap().to_string(), "\"two\"");
    assert_eq!((gguf.version(), gguf.tensor("t").unwrap().shape()), (1, &[4, 2][..]));
}

#[test]
fn reads_outside_a_tensor_are_refused() {
    let gguf = Gguf::from_bytes(one_tensor(b"t", &[8], F32, 0, 64).0).unwrap();
    let t = gguf.tensor("t").unwrap();
    assert!(gguf.read_tensor(t, 28, &mut [0; 4]).is_ok());
    for offset in [29, 32, u64::MAX, u64::MAX - 3] {
        assert!(matches!(gguf.read_tensor(t, offset, &mut [0; 4]), Err(Error::TensorRange { .. })), "{offset}");
    }
    // A caller may change the public fields. Reads must still stay inside the file.
    let mut wrong = t.clone();
    (wrong.offset, wrong.bytes) = (u64::MAX - 8, u64::MAX);
    assert!(matches!(gguf.read_tensor(&wrong, 4, &mut [0; 4]), Err(Error::ReadTensor { .. })));
    assert!(gguf.tensor_bytes(&wrong).is_none());
}
