//! Written files are read back unchanged, by this crate and by the Python package.

use gguf::{Array, GgmlType, Gguf, GgufBuilder, MetaValue, OpenOptions, Value, ValueType};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// The Python package wrote `files/python.gguf` (see `files/make.py`). A file of equal bytes
/// therefore reads the same in Python.
#[test]
fn the_writer_makes_the_bytes_of_the_python_package() {
    let f32s: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let i32s: Vec<u8> = (0..24i32).flat_map(i32::to_le_bytes).collect();
    let tokens: Vec<Vec<u8>> = vec![b"ok".to_vec(), b"\xff\xfe".to_vec(), b"<0x0A>".to_vec()];
    let bytes = GgufBuilder::new()
        .set("general.architecture", "qwen3")
        .alignment(64)
        .set("t.u8", 200u8)
        .set("t.i8", -100i8)
        .set("t.u16", 60000u16)
        .set("t.i16", -30000i16)
        .set("t.u32", 4_000_000_000u32)
        .set("t.i32", -2_000_000_000i32)
        .set("t.u64", (1u64 << 63) + 1)
        .set("t.i64", -(1i64 << 62))
        .set("t.f32", 0.1f32)
        .set("t.f64", 0.1f64)
        .set("t.bool", true)
        .set("t.str", "wärp")
        .set("t.strs", vec!["a", "", "Ġthe", "日本"])
        .set("t.ints", vec![1, -2, 3])
        .set("t.floats", vec![0.5f32, -1.5])
        .set("t.bools", vec![true, false])
        .set("tokenizer.ggml.tokens", tokens)
        .tensor_f32("a.weight", &[3, 2], &f32s)
        .tensor("b.weight", &[3, 2], GgmlType::F16, gguf::quantize(GgmlType::F16, &f32s, 3).unwrap())
        .tensor("c.weight", &[64, 2], GgmlType::Q8_0, (0..136).collect::<Vec<u8>>())
        .tensor("d.weight", &[4, 3, 2], GgmlType::I32, i32s)
        .to_bytes()
        .unwrap();
    assert_eq!(bytes, include_bytes!("files/python.gguf"));
}

#[test]
fn data_that_is_produced_while_writing_gives_the_same_bytes_and_must_have_its_size() {
    let (first, second): (Vec<u8>, Vec<u8>) = ((0..40).collect(), (0..136).collect());
    let whole = GgufBuilder::new().tensor("a", &[10], GgmlType::F32, &first[..]).tensor(
        "b",
        &[64, 2],
        GgmlType::Q8_0,
        &second[..],
    );
    let produced = |short: usize| {
        let first = |out: &mut dyn std::io::Write| first.chunks(7).try_for_each(|part| out.write_all(part));
        let (second, first) = (&second[..136 - short], first);
        let file = GgufBuilder::new().tensor_written("a", &[10], GgmlType::F32, first);
        file.tensor_written("b", &[64, 2], GgmlType::Q8_0, move |out| out.write_all(second)).to_bytes()
    };
    assert_eq!(produced(0).unwrap(), whole.to_bytes().unwrap());
    let error = produced(1).unwrap_err().to_string();
    assert!(error.contains("tensor `b` has 135 bytes of data, its shape and type need 136"), "{error}");
}

#[test]
fn values_of_a_python_file_read_as_their_types() {
    let gguf = Gguf::from_bytes(&include_bytes!("files/python.gguf")[..]).unwrap();
    assert_eq!((gguf.version(), gguf.alignment(), gguf.architecture().unwrap()), (3, 64, "qwen3"));
    assert_eq!(gguf.get::<usize>("t.u8").unwrap(), 200);
    assert_eq!(gguf.get::<i64>("t.u32").unwrap(), 4_000_000_000);
    assert_eq!(gguf.get::<u64>("t.u64").unwrap(), (1 << 63) + 1);
    assert_eq!(gguf.get::<f64>("t.f32").unwrap(), 0.1f32 as f64);
    assert!(gguf.get::<bool>("t.bool").unwrap());
    assert_eq!(gguf.get::<&str>("t.str").unwrap(), "wärp");
    assert_eq!(gguf.get::<Vec<&str>>("t.strs").unwrap(), ["a", "", "Ġthe", "日本"]);
    assert_eq!(gguf.get_opt::<u32>("t.absent").unwrap(), None);
    let tokens: Array = gguf.get("tokenizer.ggml.tokens").unwrap();
    assert_eq!(tokens.byte_strs().unwrap().collect::<Vec<_>>(), [&b"ok"[..], b"\xff\xfe", b"<0x0A>"]);
    let error = tokens.strs().unwrap().nth(1).unwrap().unwrap_err().to_string();
    assert_eq!(error, r#"`tokenizer.ggml.tokens[1]` should be utf-8 text but is "\xff\xfe""#);
    assert!(matches!(tokens.get(1), Some(Value::Bytes(b"\xff\xfe"))) && tokens.get(3).is_none());
    assert_eq!(gguf.tensor("d.weight").unwrap().shape(), [4, 3, 2]);
    assert_eq!(gguf.dequantized(gguf.tensor("b.weight").unwrap()).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn wrong_types_name_the_key_what_was_expected_and_what_was_found() {
    let gguf = Gguf::from_bytes(&include_bytes!("files/python.gguf")[..]).unwrap();
    let says = |error: gguf::Error, words: &str| assert_eq!(error.to_string(), words);
    says(gguf.get::<u8>("t.u32").unwrap_err(), "`t.u32` should be u8 but is u32 4000000000");
    says(gguf.get::<u32>("t.i8").unwrap_err(), "`t.i8` should be u32 but is i8 -100");
    says(gguf.get::<u32>("t.f32").unwrap_err(), "`t.f32` should be u32 but is f32 0.1");
    says(gguf.get::<f32>("t.bool").unwrap_err(), "`t.bool` should be f32 but is bool true");
    says(gguf.get::<f32>("t.str").unwrap_err(), "`t.str` should be f32 but is string \"wärp\"");
    says(gguf.get::<&str>("t.strs").unwrap_err(), "`t.strs` should be string but is array of 4 string");
    says(gguf.get_opt::<bool>("t.u8").unwrap_err(), "`t.u8` should be bool but is u8 200");
    says(gguf.get::<Vec<u32>>("t.ints").unwrap_err(), "`t.ints` should be array of u32 but is array of 3 i32");
    says(gguf.get::<u32>("t.absent").unwrap_err(), "the metadata lacks `t.absent`");
    says(gguf.tensor("e.weight").unwrap_err(), "the file has no tensor `e.weight`");
    let array = |key| gguf.get::<Array>(key).unwrap();
    says(
        array("t.ints").u32s().map(|_| ()).unwrap_err(),
        "`t.ints` should be an array of u32 but is i32 -2 at index 1",
    );
    says(
        array("t.ints").strs().map(|_| ()).unwrap_err(),
        "`t.ints` should be an array of string but is array of 3 i32",
    );
    says(
        array("t.strs").f32s().map(|_| ()).unwrap_err(),
        "`t.strs` should be an array of f32 but is string \"a\" at index 0",
    );
    assert_eq!(array("t.ints").i32s().unwrap().collect::<Vec<_>>(), [1, -2, 3]);
    assert_eq!(array("t.bools").bools().unwrap().collect::<Vec<_>>(), [true, false]);
}

/// A file with one value under the key `k`.
fn of(value: impl Into<MetaValue>) -> Gguf {
    Gguf::from_bytes(GgufBuilder::new().set("k", value).to_bytes().unwrap()).unwrap()
}

#[test]
fn a_number_of_every_type_converts_to_every_type_that_it_fits() {
    for value in [0u8, 1, 100] {
        let integers: [MetaValue; 8] = [
            value.into(),
            (value as i8).into(),
            u16::from(value).into(),
            i16::from(value).into(),
            u32::from(value).into(),
            i32::from(value).into(),
            u64::from(value).into(),
            i64::from(value).into(),
        ];
        let floats: [MetaValue; 2] = [f32::from(value).into(), f64::from(value).into()];
        for stored in integers.iter().chain(&floats) {
            let file = of(stored.clone());
            assert_eq!(
                (file.get::<u8>("k").unwrap(), file.get::<i64>("k").unwrap()),
                (value, value.into()),
                "{stored:?}"
            );
            assert_eq!(
                (file.get::<f32>("k").unwrap(), file.get::<f64>("k").unwrap()),
                (value.into(), value.into()),
                "{stored:?}"
            );
            assert_eq!(
                of(MetaValue::Array(stored.ty(), vec![stored.clone()])).get::<Vec<u32>>("k").unwrap(),
                [u32::from(value)]
            );
        }
        for stored in integers {
            let bools = of(MetaValue::Array(stored.ty(), vec![stored.clone()]))
                .get::<Array>("k")
                .unwrap()
                .bools()
                .map(Iterator::collect);
            let expected = (value < 2).then_some(value == 1);
            assert_eq!((of(stored).get::<bool>("k").ok(), bools.ok()), (expected, expected.map(|bool| vec![bool])));
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_and_a_float_is_rounded() {
    assert_eq!(
        (of(1e-6f64).get::<f32>("k").unwrap(), of(16_777_217u32).get::<f32>("k").unwrap()),
        (1e-6f32, 16_777_216.0)
    );
    assert_eq!(of(u64::MAX).get::<f32>("k").unwrap(), 2f32.powi(64));
    assert_eq!(of(f64::NEG_INFINITY).get::<f32>("k").unwrap(), f32::NEG_INFINITY);
    assert!(of(f64::NAN).get::<f32>("k").unwrap().is_nan());
    for beyond in [1e39, -1e300, 1e-60] {
        assert!(of(beyond).get::<f32>("k").is_err(), "{beyond}");
    }
    for beyond in [-1.0, 0.5, 2f64.powi(64), f64::NAN, f64::INFINITY, 1e300] {
        assert!(of(beyond).get::<u64>("k").is_err(), "{beyond}");
    }
    assert!(
        of(-1i32).get::<u32>("k").is_err()
            && of(-1i32).get::<bool>("k").is_err()
            && of(1.0f32).get::<bool>("k").is_err()
    );
    assert!(of("7").get::<u32>("k").is_err() && of(true).get::<u32>("k").is_err());
    assert_eq!(of(2f64.powi(63)).get::<u64>("k").unwrap(), 1 << 63);
}

fn scalar() -> impl Strategy<Value = MetaValue> {
    prop_oneof![
        any::<u8>().prop_map(MetaValue::from),
        any::<i16>().prop_map(MetaValue::from),
        any::<u32>().prop_map(MetaValue::from),
        any::<i64>().prop_map(MetaValue::from),
        any::<u64>().prop_map(MetaValue::from),
        any::<f32>().prop_map(MetaValue::from),
        any::<f64>().prop_map(MetaValue::from),
        any::<bool>().prop_map(MetaValue::from),
        vec(any::<u8>(), 0..20).prop_map(MetaValue::Str),
    ]
}

fn value() -> impl Strategy<Value = MetaValue> {
    let strings = vec(vec(any::<u8>(), 0..9), 0..30);
    let nested = vec(vec(any::<u16>(), 0..4), 0..4);
    prop_oneof![
        4 => scalar(),
        1 => vec(any::<i32>(), 0..30).prop_map(MetaValue::from),
        1 => vec(any::<bool>(), 0..30).prop_map(MetaValue::from),
        1 => strings.prop_map(MetaValue::from),
        1 => nested.prop_map(|rows| MetaValue::Array(ValueType::Array, rows.into_iter().map(MetaValue::from).collect())),
    ]
}

/// A type's index, rows and blocks per row.
fn tensor() -> impl Strategy<Value = (GgmlType, u64, u64)> {
    (0..GgmlType::ALL.len(), 1..5u64, 1..4u64).prop_map(|(ty, rows, blocks)| (GgmlType::ALL[ty], rows, blocks))
}

proptest! {
    #[test]
    fn files_survive_writing_and_reading_from_every_source(
        metadata in btree_map("[a-z]{1,8}(\\.[a-z_]{1,8}){0,2}", value(), 0..12),
        tensors in vec(tensor(), 0..8),
        alignment in 0..8u32,
    ) {
        let mut builder = GgufBuilder::new().alignment(1 << alignment);
        for (key, value) in &metadata {
            builder = builder.set(key.clone(), value.clone());
        }
        let data = |i: usize, ty: GgmlType, rows: u64, blocks: u64| vec![i as u8 + 1; (rows * blocks) as usize * ty.block_bytes()];
        for (i, &(ty, rows, blocks)) in tensors.iter().enumerate() {
            let dims = [blocks * ty.block_size() as u64, rows];
            builder = builder.tensor(format!("t{i}"), &dims, ty, data(i, ty, rows, blocks));
        }
        let bytes = builder.to_bytes().unwrap();
        prop_assert_eq!(builder.len_bytes().unwrap(), bytes.len() as u64);
        let file = tempfile::NamedTempFile::new().unwrap();
        builder.save(file.path()).unwrap();
        let ways = [
            Gguf::from_bytes(bytes.clone()),
            Gguf::open(file.path()),
            Gguf::open_with(file.path(), OpenOptions::default().mmap(true)),
        ];
        for gguf in ways {
            let gguf = gguf.unwrap();
            prop_assert_eq!(gguf.metadata().count(), metadata.len() + 1);
            for (key, value) in &metadata {
                // Compares text, so that NaN equals NaN.
                let back = MetaValue::from(gguf.get::<Value>(key).unwrap());
                prop_assert_eq!(format!("{:?}", back), format!("{:?}", value));
            }
            prop_assert_eq!(gguf.tensors().len(), tensors.len());
            for (i, &(ty, rows, blocks)) in tensors.iter().enumerate() {
                let info = gguf.tensor(&format!("t{i}")).unwrap();
                prop_assert_eq!((info.ty().unwrap(), info.rows(), info.cols()), (ty, rows, blocks * ty.block_size() as u64));
                let mut back = vec![0; info.bytes as usize];
                gguf.read_tensor(info, 0, &mut back).unwrap();
                prop_assert_eq!(&back, &data(i, ty, rows, blocks));
                prop_assert!(gguf.tensor_bytes(info).is_none_or(|bytes| bytes == back));
            }
            let copy = GgufBuilder::new().copy_metadata(&gguf).to_bytes().unwrap();
            prop_assert_eq!(Gguf::from_bytes(copy).unwrap().metadata().count(), metadata.len() + 1);
        }
    }
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let tensor = |name: &str, dims: &[u64], bytes: usize| {
        GgufBuilder::new().tensor(name, dims, GgmlType::Q8_0, vec![0; bytes]).to_bytes()
    };
    let says = |result: gguf::Result<Vec<u8>>, words: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} lacks {words:?}");
    };
    says(tensor("t", &[32], 33), "33 bytes of data, its shape and type need 34");
    says(tensor("t", &[31], 34), "not a multiple of the 32");
    says(tensor("t", &[], 34), "0 dimensions");
    says(tensor("t", &[1; 5], 34), "5 dimensions");
    says(tensor("", &[32], 34), "empty");
    says(tensor(&"n".repeat(513), &[32], 34), "513 bytes long");
    says(GgufBuilder::new().set("", 1u8).to_bytes(), "empty");
    says(GgufBuilder::new().alignment(3).to_bytes(), "power of two");
    let twice = GgufBuilder::new().tensor_f32("t", &[1], &[0.0]).tensor_f32("t", &[1], &[0.0]);
    says(twice.to_bytes(), "`t` occurs twice");
    let mixed = MetaValue::Array(ValueType::U8, vec![MetaValue::U8(1), MetaValue::Bool(true)]);
    says(GgufBuilder::new().set("k", mixed).to_bytes(), "mixes u8 and bool");
}
