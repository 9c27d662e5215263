//! The operations: one file each, with its row, its dispatcher and its parity case.

use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Lower};
use crate::row::Row;
use crate::tensor::{Counts, Tensor};

/// The tensors that an operation reads and makes.
#[derive(Clone, Debug, Default)]
pub struct Io {
    pub reads: Vec<Tensor>,
    pub writes: Vec<Tensor>,
}

/// What an operation costs: arithmetic operations and the fewest bytes it must move.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub flops: u64,
    pub bytes: u64,
    /// The part of `bytes` that is weights.
    pub weight_bytes: u64,
}

impl Work {
    /// The share of one of `n` equal dispatches.
    #[must_use]
    pub fn divided(self, n: u64) -> Self {
        let n = n.max(1);
        Self { flops: self.flops / n, bytes: self.bytes / n, weight_bytes: self.weight_bytes / n }
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { flops: self.flops + other.flops, bytes: self.bytes + other.bytes, weight_bytes: self.weight_bytes + other.weight_bytes }
    }
}

/// One operation of a recording.
pub trait Operation {
    /// What it reads and makes.
    fn io(&self) -> Io;
    /// Its cost with these row counts; the default moves every tensor once and computes nothing worth counting.
    fn work(&self, counts: Counts) -> Work {
        let io = self.io();
        let bytes = |t: &Tensor| 4 * u64::from(t.shape.rows_at(counts)) * u64::from(t.shape.width());
        Work { bytes: io.reads.iter().chain(&io.writes).map(bytes).sum(), ..Work::default() }
    }
    /// Its kernel calls on this device.
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch>;
    /// The same through the oracle. Fused operations have none: the CPU runs recordings as they were made.
    fn cpu(&self, host: &mut Host<'_>);
}

pub mod attention_coop;
pub mod attention_deep;
pub mod attention_deep_long;
pub mod attention_deep_raw;
pub mod attention_short_128;
pub mod attention_short_batch;
pub mod attention_short_parts;
pub mod attention_short_whole;
pub mod matmul_coop;
pub mod matmul_few;
pub mod matmul_few_q8;
pub mod matmul_few_q8_glu;
pub mod matmul_few_q8_group;
pub mod matmul_vec;
pub mod matmul_vec_experts;
pub mod sample_scan;

macro_rules! ops {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// Every operation.
        #[derive(Clone, Debug)]
        pub enum Op { $($name($module::$name)),* }

        $(impl From<$module::$name> for Op {
            fn from(op: $module::$name) -> Self { Self::$name(op) }
        })*

        impl Operation for Op {
            fn io(&self) -> Io { match self { $(Self::$name(op) => op.io()),* } }
            fn work(&self, counts: Counts) -> Work { match self { $(Self::$name(op) => op.work(counts)),* } }
            fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> { match self { $(Self::$name(op) => op.lower(cx)),* } }
            fn cpu(&self, host: &mut Host<'_>) { match self { $(Self::$name(op) => op.cpu(host)),* } }
        }

        /// The parity case of every operation, by its stem.
        pub const CASES: &[(&str, fn(&mut Gen) -> Case)] = &[$((stringify!($module), $module::case)),*];
    };
}

ops! {
    embed::Embed,
    rms_norm::RmsNorm,
    matmul::Matmul,
    pack_q8::PackQ8,
    pack_f16::PackF16,
    norm_pack_q8::NormPackQ8,
    norm_pack_f16::NormPackF16,
    level_f16::LevelF16,
    matmul_coop_glu::MatmulCoopGlu,
    norm_add::NormAdd,
    glu_pack_q8::GluPackQ8,
    glu_pack_f16::GluPackF16,
    norm_rope::NormRope,
    norm_rope_append::NormRopeAppend,
    norm_rope_heads::NormRopeHeads,
    matmul_few_pair::MatmulFewPair,
    matmul_few_triple::MatmulFewTriple,
    matmul_vec_group::MatmulGroup,
    matmul_vec_glu::MatmulGlu,
    matmul_vec_norm::MatmulVecNorm,
    matmul_vec_q8::MatmulVecAdd,
    norm_pack_matmul_vec::NormPackMatmulVec,
    norm_pack_matmul_vec_glu::NormPackMatmulVecGlu,
    norm_add_matmul_vec::NormAddMatmulVec,
    norm_add_matmul_vec_glu::NormAddMatmulVecGlu,
    glu_matmul_vec::GluMatmulVec,
    merge_matmul_vec::MergeMatmulVec,
    attention_split::AttentionSplit,
    attention_merge::AttentionMerge,
    attention_short::AttentionShort,
    attention_batch::AttentionBatch,
    rope::Rope,
    kv_append::KvAppend,
    attention::Attention,
    add::Add,
    add_rms_norm::AddRmsNorm,
    add_weighted::AddWeighted,
    match_rms::MatchRms,
    gaussian_top_k::GaussianTopK,
    mul::Mul,
    scale::Scale,
    softcap::Softcap,
    silu::Silu,
    gelu::Gelu,
    swiglu::Swiglu,
    geglu::Geglu,
    softmax::Softmax,
    log_softmax::LogSoftmax,
    gather_rows::GatherRows,
    argmax::Argmax,
    top_k::TopK,
    route::Route,
    group_experts::GroupExperts,
    matmul_experts::MatmulExperts,
    combine_experts::CombineExperts,
    mul_sigmoid::MulSigmoid,
    penalize::Penalize,
    sample::Sample,
}

/// Every row, by the file that declares it; `tests/contract.rs` holds the list against the sources.
pub static ROWS: &[&Row] = &[
    &add::ADD,
    &add_rms_norm::ADD_RMS_NORM,
    &add_weighted::ADD_WEIGHTED,
    &argmax::ARGMAX,
    &attention::ATTENTION,
    &attention_batch::ATTENTION_BATCH,
    &attention_batch::ATTENTION_BATCH_2,
    &attention_batch::ATTENTION_BATCH_4,
    &attention_coop::ATTENTION_COOP_64,
    &attention_coop::ATTENTION_COOP_128,
    &attention_coop::ATTENTION_COOP_256,
    &attention_coop::ATTENTION_COOP_512,
    &combine_experts::COMBINE_EXPERTS,
    &attention_deep::ATTENTION_DEEP,
    &attention_deep::ATTENTION_DEEP_2,
    &attention_deep_long::ATTENTION_DEEP_LONG,
    &attention_deep_raw::ATTENTION_DEEP_RAW,
    &attention_deep_raw::ATTENTION_DEEP_RAW_2,
    &attention_merge::ATTENTION_MERGE,
    &attention_merge::ATTENTION_MERGE_Q8,
    &attention_short::ATTENTION_SHORT,
    &attention_short::ATTENTION_SHORT_512,
    &attention_short_128::ATTENTION_SHORT_128,
    &attention_short_batch::ATTENTION_SHORT_BATCH,
    &attention_short_batch::ATTENTION_SHORT_BATCH_2,
    &attention_short_parts::ATTENTION_SHORT_PARTS,
    &attention_short_whole::ATTENTION_SHORT_WHOLE,
    &attention_short_whole::ATTENTION_SHORT_WHOLE_LONG,
    &attention_split::ATTENTION_SPLIT,
    &attention_split::ATTENTION_SPLIT_2,
    &attention_split::ATTENTION_SPLIT_4,
    &attention_split::ATTENTION_SPLIT_LONG,
    &attention_split::ATTENTION_SPLIT_LONG_2,
    &embed::EMBED,
    &gather_rows::GATHER_ROWS,
    &gaussian_top_k::GAUSSIAN_TOP_K,
    &geglu::GEGLU,
    &gelu::GELU,
    &group_experts::GROUP_EXPERTS,
    &glu_matmul_vec::GLU_MATMUL_VEC,
    &glu_pack_f16::GLU_PACK_F16_SILU,
    &glu_pack_f16::GLU_PACK_F16_GELU,
    &glu_pack_q8::GLU_PACK_Q8_SILU,
    &glu_pack_q8::GLU_PACK_Q8_GELU,
    &kv_append::KV_APPEND,
    &level_f16::LEVEL_F16,
    &log_softmax::LOG_SOFTMAX,
    &match_rms::MATCH_RMS,
    &matmul::MATMUL,
    &matmul::MATMUL_TAIL,
    &matmul_coop::MATMUL_COOP,
    &matmul_coop::MATMUL_COOP_GROUPS,
    &matmul_coop::MATMUL_COOP_GROUPS_TAIL,
    &matmul_coop_glu::MATMUL_COOP_GLU_SILU,
    &matmul_coop_glu::MATMUL_COOP_GLU_GELU,
    &matmul_experts::MATMUL_EXPERTS,
    &matmul_experts::MATMUL_EXPERTS_TAIL,
    &matmul_vec::MATMUL_VEC,
    &matmul_vec::MATMUL_VEC_TAIL,
    &matmul_vec_experts::MATMUL_VEC_EXPERTS,
    &matmul_vec_experts::MATMUL_VEC_EXPERTS_TAIL,
    &matmul_few::MATMUL_FEW_16,
    &matmul_few::MATMUL_FEW_16_LONG,
    &matmul_few::MATMUL_FEW_16_NARROW,
    &matmul_few::MATMUL_FEW_32,
    &matmul_few::MATMUL_FEW_32_LONG,
    &matmul_few::MATMUL_FEW_32_NARROW,
    &matmul_few::MATMUL_FEW_64,
    &matmul_few::MATMUL_FEW_64_LONG,
    &matmul_few::MATMUL_FEW_64_NARROW,
    &matmul_few_pair::MATMUL_FEW_PAIR_16,
    &matmul_few_pair::MATMUL_FEW_PAIR_32,
    &matmul_few_pair::MATMUL_FEW_PAIR_64,
    &matmul_few_triple::MATMUL_FEW_TRIPLE_16,
    &matmul_few_triple::MATMUL_FEW_TRIPLE_32,
    &matmul_few_triple::MATMUL_FEW_TRIPLE_64,
    &matmul_few_q8::MATMUL_FEW_Q8_2,
    &matmul_few_q8::MATMUL_FEW_Q8_4,
    &matmul_few_q8::MATMUL_FEW_Q8_8,
    &matmul_few_q8::MATMUL_FEW_Q8_2_SHORT,
    &matmul_few_q8::MATMUL_FEW_Q8_4_SHORT,
    &matmul_few_q8::MATMUL_FEW_Q8_8_SHORT,
    &matmul_few_q8_group::MATMUL_FEW_Q8_GROUP_2,
    &matmul_few_q8_group::MATMUL_FEW_Q8_GROUP_4,
    &matmul_few_q8_group::MATMUL_FEW_Q8_GROUP_8,
    &matmul_few_q8_glu::MATMUL_FEW_Q8_GLU_2_SILU,
    &matmul_few_q8_glu::MATMUL_FEW_Q8_GLU_2_GELU,
    &matmul_few_q8_glu::MATMUL_FEW_Q8_GLU_4_SILU,
    &matmul_few_q8_glu::MATMUL_FEW_Q8_GLU_4_GELU,
    &matmul_few_q8_glu::MATMUL_FEW_Q8_GLU_8_SILU,
    &matmul_few_q8_glu::MATMUL_FEW_Q8_GLU_8_GELU,
    &matmul_vec_glu::MATMUL_VEC_GLU_SILU,
    &matmul_vec_glu::MATMUL_VEC_GLU_GELU,
    &matmul_vec_group::MATMUL_VEC_GROUP,
    &matmul_vec_norm::MATMUL_VEC_NORM,
    &matmul_vec_norm::MATMUL_VEC_NORM_LONG,
    &matmul_vec_q8::MATMUL_VEC_Q8,
    &matmul_vec_q8::MATMUL_VEC_Q8_LONG,
    &matmul_vec_q8::MATMUL_VEC_Q8_MIDDLE,
    &merge_matmul_vec::MERGE_MATMUL_VEC,
    &mul::MUL,
    &mul_sigmoid::MUL_SIGMOID,
    &norm_add::NORM_ADD,
    &norm_add::NORM_ADD_Q8,
    &norm_add_matmul_vec::NORM_ADD_MATMUL_VEC,
    &norm_add_matmul_vec_glu::NORM_ADD_MATMUL_VEC_GLU,
    &norm_pack_matmul_vec::NORM_PACK_MATMUL_VEC,
    &norm_pack_matmul_vec_glu::NORM_PACK_MATMUL_VEC_GLU_SILU,
    &norm_pack_matmul_vec_glu::NORM_PACK_MATMUL_VEC_GLU_GELU,
    &norm_pack_f16::NORM_PACK_F16,
    &norm_pack_q8::NORM_PACK_Q8,
    &norm_rope::NORM_ROPE,
    &norm_rope_append::NORM_ROPE_APPEND,
    &norm_rope_heads::NORM_ROPE_HEADS,
    &pack_f16::PACK_F16,
    &pack_q8::PACK_Q8,
    &penalize::PENALIZE,
    &rms_norm::RMS_NORM,
    &rope::ROPE,
    &route::ROUTE,
    &sample::SAMPLE,
    &sample_scan::SAMPLE_SCAN,
    &scale::SCALE,
    &silu::SILU,
    &softcap::SOFTCAP,
    &softmax::SOFTMAX,
    &swiglu::SWIGLU,
    &top_k::TOP_K,
];

pub use add::{add, add_bias};
pub use add_weighted::{RowWeights, add_weighted};
pub use argmax::argmax;
pub use attention::{Attend, attention};
pub use combine_experts::combine_experts;
pub use embed::embed;
pub use gather_rows::gather_rows;
pub use gaussian_top_k::gaussian_top_k;
pub use geglu::{geglu, geglu_columns};
pub use gelu::gelu;
pub use group_experts::group_experts;
pub use kv_append::kv_append;
pub use level_f16::level_f16;
pub use log_softmax::log_softmax;
pub use match_rms::match_rms;
pub use matmul::{matmul, matmul_exact};
pub use matmul_experts::matmul_experts;
pub use mul::{mul, mul_row};
pub use mul_sigmoid::mul_sigmoid;
pub use pack_f16::pack_f16;
pub use pack_q8::pack_q8;
pub use penalize::penalize;
pub use rms_norm::rms_norm;
pub use rope::rope;
pub use route::{Routes, route};
pub use sample::sample;
pub use scale::scale;
pub use silu::silu;
pub use softcap::softcap;
pub use softmax::softmax;
pub use swiglu::swiglu;
pub use top_k::top_k;
