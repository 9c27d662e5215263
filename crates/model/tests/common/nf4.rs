//! Tiny models with an NF4 base, and the same models with the values of NF4 as F32.
#![allow(dead_code)]

use crate::common::{F16, Tiny, open};
use gguf::{GgmlType, GgufBuilder};
use model::{Base, ModelFile};

/// The ends of the names of linear layers' matrices.
const LINEARS: [&str; 9] = [
    "attn_q.weight",
    "attn_k.weight",
    "attn_v.weight",
    "attn_output.weight",
    "ffn_gate.weight",
    "ffn_up.weight",
    "ffn_down.weight",
    "_exps.weight",
    "_shexp.weight",
];

pub fn is_linear(name: &str) -> bool {
    LINEARS.iter().any(|end| name.ends_with(end)) && !name.contains("_inp")
}

/// The same model in F16, with rows of whole blocks. Its experts are 64 wide.
pub fn in_blocks(tiny: Tiny) -> Tiny {
    Tiny { types: F16, feed_forward: 192, ..tiny.mixed() }
}

/// The file with an NF4 base.
pub fn nf4(tiny: &Tiny) -> ModelFile {
    open(&tiny.file()).expect("a good file").with_base(Base::Nf4)
}

/// The file with the values of NF4 in its linear layers, as F32.
pub fn dequantized(tiny: &Tiny) -> GgufBuilder<'static> {
    tiny.edited(tiny.metadata(), |name, spec| {
        if is_linear(name) {
            for ty in [spec.ty, GgmlType::NF4] {
                let bytes = gguf::quantize(ty, &spec.values, spec.dims[0] as usize).expect("finite values");
                gguf::dequantize(ty, &bytes, &mut spec.values).expect("whole blocks");
            }
            spec.ty = GgmlType::F32;
        }
        true
    })
}
