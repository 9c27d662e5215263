//! Weight formats without a GPU: every piece is valid WGSL, layouts are aligned, and each format is
//! written down in two places.

use gguf::GgmlType;
use kernels::testing::kernel::compose::instantiate;
use kernels::testing::kernel::format::{FORMATS, Format, format, random_block};
use std::path::{Path, PathBuf};
use wgpu::naga::{front::wgsl, valid};

/// Reads two weights of one format, in bindings whose names share a prefix, as in a kernel of gate
/// and up.
fn two_weights(format: &Format) -> String {
    let kernel = "
        @group(0) @binding(0) var<storage, read> up: array<vec4<u32>>;
        @group(0) @binding(1) var<storage, read> up_2: array<vec4<u32>>;
        @group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
        @compute @workgroup_size(64)
        fn product(@builtin(global_invocation_id) id: vec3<u32>) {
            y[id.x] = up_load4(up_row(id.y, 512u), 512u, id.x) * up_2_load4(up_2_row(id.y, 512u), 512u, id.x);
        }";
    format!("{kernel}\n{}\n{}", instantiate(format.elements, "W", "up"), instantiate(format.elements, "W", "up_2"))
}

#[test]
fn every_piece_validates_beside_a_second_instance_of_itself() {
    for format in FORMATS {
        let source = two_weights(format);
        let module =
            wgsl::parse_str(&source).unwrap_or_else(|e| panic!("{}: {}", format.ty, e.emit_to_string(&source)));
        let capabilities = valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        let checked = valid::Validator::new(valid::ValidationFlags::all(), capabilities).validate(&module);
        checked.unwrap_or_else(|e| panic!("{}: {}", format.ty, e.emit_to_string(&source)));
    }
}

#[test]
fn every_weight_type_has_one_format_and_no_other_type_has_any() {
    use GgmlType::{F64, I8, I16, I32, I64};
    for &ty in GgmlType::ALL.iter().chain(GgmlType::IN_MEMORY) {
        let count = FORMATS.iter().filter(|format| format.ty == ty).count();
        assert_eq!(count, usize::from(![F64, I8, I16, I32, I64].contains(&ty)), "{ty}");
        assert_eq!(format(ty).map(|format| format.ty), (count == 1).then_some(ty));
    }
}

#[test]
fn planes_are_disjoint_parts_of_the_block_and_all_but_the_last_whole_words() {
    for format in FORMATS {
        assert_eq!(format.table().len() % 4, 0, "{}", format.ty);
        let whole = format.ty.block_bytes().is_multiple_of(16) || !format.ty.is_quantized();
        assert_eq!(format.planes.is_empty(), whole, "{}", format.ty);
        let mut kept = vec![false; format.ty.block_bytes()];
        for (i, &(offset, bytes)) in format.planes.iter().enumerate() {
            assert!(i + 1 == format.planes.len() || bytes % 4 == 0, "{} plane {i}", format.ty);
            for byte in &mut kept[offset..offset + bytes] {
                assert!(!std::mem::replace(byte, true), "{} plane {i} overlaps another", format.ty);
            }
        }
    }
}

#[test]
fn relay_pads_rows_and_overwrites_what_was_there() {
    let relaid = |ty, cols, src: &[u8]| {
        let format = format(ty).expect("a weight type");
        let mut row = vec![0xee; format.row_words(cols) as usize * 4];
        format.relay_row(cols, src, &mut row);
        row
    };
    assert_eq!(relaid(GgmlType::BF16, 3, &[1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let blocks: Vec<u8> = (0..34).collect();
    let expected: Vec<u8> = (1..17).chain(18..34).chain([0, 17]).chain([0; 14]).collect();
    assert_eq!(relaid(GgmlType::MXFP4, 64, &blocks), expected);
}

#[test]
fn random_blocks_have_finite_values_of_ordinary_size_and_both_signs() {
    let mut state = 1u64;
    let mut bits = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state ^ (state >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    for format in FORMATS.iter().filter(|format| format.ty.is_quantized()) {
        let blocks: Vec<u8> = (0..64).flat_map(|_| random_block(format.ty, &mut bits)).collect();
        let mut values = vec![0.0; 64 * format.ty.block_size()];
        gguf::dequantize(format.ty, &blocks, &mut values).expect("whole blocks");
        let (least, most) = values.iter().fold((0.0f32, 0.0f32), |(least, most), &v| (least.min(v), most.max(v)));
        assert!(
            values.iter().all(|v| v.is_finite()) && most > 0.25 && least < -0.25 && most - least < 8.0,
            "{}: {least}..{most}",
            format.ty
        );
    }
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Whether the code of a file (without comments, unit tests and KV cache types) contains this
/// identifier, in any case.
fn mentions(text: &str, name: &str) -> bool {
    let code = text
        .split("#[cfg(test)]")
        .next()
        .unwrap_or_default()
        .to_lowercase()
        .replace("kvtype::", "kv_")
        .replace("kv/", "kv_");
    let words = code.lines().filter_map(|line| line.split("//").next());
    words.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).any(|word| word == name)
}

#[test]
fn adding_a_format_touches_one_piece_and_one_rust_file() {
    let (src, shaders) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), Path::new(env!("WEFT_SHADERS")));
    let mut all = Vec::new();
    files(&src, &mut all);
    files(shaders, &mut all);
    all.retain(|path| path.file_name().is_none_or(|name| name != "tests.rs"));
    let texts: Vec<_> = all.iter().map(|path| (path, std::fs::read_to_string(path).expect("UTF-8"))).collect();
    for format in FORMATS.iter().filter(|format| format.ty.is_quantized()) {
        let name = format.ty.name().to_lowercase();
        assert!(all.contains(&shaders.join(format!("quant/{name}.wgsl"))), "{name} has no piece of its own");
        let mentioning: Vec<_> =
            texts.iter().filter(|(_, text)| mentions(text, &name)).map(|(path, _)| path.as_path()).collect();
        assert_eq!(mentioning, [src.join("kernel/format/table.rs")], "{name}");
    }
}
