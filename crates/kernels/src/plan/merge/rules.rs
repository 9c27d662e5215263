//! Every rule by which a plan merges operations, in one table: the operations that merge, the
//! direction and the order.

use super::view::{Merged, Producers, Uses};
use super::{attention, embed, experts, glu, heads, matmul, norm, prologue};
use crate::caps::Caps;
use crate::graph::record::Origin;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::Lower;
use crate::language::{Lowered, Node};
use crate::matmul::norm_pack_matmul_vec::Normed;

/// Looks at the operations from one node on, and may merge the first `n` of them into one.
pub(super) type OfRun = fn(&[Node], &Uses, &Caps) -> Option<(usize, Lowered)>;

/// The values of a plan.
pub(super) type Origins = Vec<(Origin, Shape)>;

/// The direction in which operations merge. The passes run in this order.
#[derive(Copy, Clone)]
pub(super) enum Direction {
    /// A gather of the only row moves into the operation before it. Gathers go first, because
    /// otherwise they would separate neighbours.
    Gather(OfRun),
    /// Operations are replaced by others that have new values between them: parts that a second
    /// operation joins, or results that one kernel leaves for the next. These rules run after the
    /// products have their operands, and before all rules below.
    Values(fn(Vec<Node>, &mut Origins, &[Tensor], &Lower<'_>) -> Vec<Node>),
    /// Neighbours become one operation.
    Run(OfRun),
    /// An operation takes in the producers of values that only it reads, wherever they are.
    Producers(fn(&Lowered, &Producers<'_>) -> Option<Merged>),
    /// The producer of a packed row moves into the only consumer of that row.
    Consumer(fn(&Lowered, &Lowered, &Caps) -> Option<Lowered>),
    /// The norm or the packing of a row moves into the only consumer of that row; the rest of its
    /// producer stays.
    Packing(fn(&Normed, &Lowered, &Caps) -> Option<Lowered>),
}

/// One rule.
pub(super) struct Rule {
    /// The operation that it makes.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub name: &'static str,
    /// The operations that merge.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub merges: &'static str,
    pub direction: Direction,
    /// The gain, with the measurement if there is one.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "the map reads it"))]
    pub beats: &'static str,
}

const fn rule(name: &'static str, merges: &'static str, direction: Direction, beats: &'static str) -> Rule {
    Rule { name, merges, direction, beats }
}

/// For rules that were not measured separately.
const ONE_LESS: &str = "one dispatch less; each waits for 1.7 to 2 us";

/// Every rule as [the operation that it makes, the operations that merge, the direction, the gain],
/// in the order of the passes.
#[cfg(feature = "testing")]
pub fn described() -> impl Iterator<Item = [&'static str; 4]> {
    RULES.iter().map(|rule| {
        let direction = match rule.direction {
            Direction::Gather(_) | Direction::Run(_) => "neighbours",
            Direction::Values(_) => "several, with values between them",
            Direction::Producers(_) => "takes in its producers",
            Direction::Consumer(_) => "moves into its consumer",
            Direction::Packing(_) => "norm or packing moves into its consumer",
        };
        [rule.name, rule.merges, direction, rule.beats]
    })
}

/// The rules. Rules of one direction are tried in this order.
pub(super) static RULES: [Rule; 39] = [
    rule(
        "gather_rows",
        "a gather of the only row with the sum or product that makes it",
        Direction::Gather(embed::gather_rows),
        "rows without requested logits are not computed; one dispatch less",
    ),
    rule("embed", "an embedding with the scale after it", Direction::Run(embed::embed), ONE_LESS),
    rule("add_rms_norm", "a residual sum with the norm after it", Direction::Run(norm::add_rms_norm), ONE_LESS),
    rule("matmul_bias", "a product with its bias", Direction::Run(matmul::matmul_bias), ONE_LESS),
    rule(
        "matmul_tile128_glu",
        "f16 packing with the gated activation and the two products before it",
        Direction::Values(glu::matmul_tile128_glu),
        "up to the table's `glu_columns`: no separate dispatch for activations and packing; 4096 columns lose",
    ),
    rule(
        "attention_split",
        "attention of few rows, in parts of its keys",
        Direction::Values(attention::attention_split),
        "parts up to the table's `split_workgroups`; with one workgroup per head, most of a device is idle over many keys",
    ),
    rule(
        "norm_matmul_vec",
        "a router with the norm before it, if other readers of the norm pack it",
        Direction::Values(experts::norm_matmul_vec),
        "packing takes in the norm and the sum before it, so one dispatch less",
    ),
    rule(
        "norm_matmul_vec",
        "a factor with the router before it",
        Direction::Producers(experts::scaled_router),
        ONE_LESS,
    ),
    rule("norm_pack_q8", "8-bit packing with the norm before it", Direction::Producers(norm::norm_pack_q8), ONE_LESS),
    rule("norm_pack_f16", "f16 packing with the norm before it", Direction::Producers(norm::norm_pack_f16), ONE_LESS),
    rule(
        "matmul_vec_norm",
        "a packed norm with the product and the sum before it",
        Direction::Producers(matmul::matmul_vec_norm),
        "no separate norm, up to the table's `norm_columns`: 12288 columns of 4096 rows gain, 8960 of 1536 lose",
    ),
    rule(
        "norm_add",
        "a residual sum with the norm of one summand or of a sum of two norms, its factors and its packing",
        Direction::Producers(norm::norm_add),
        "sum, norm, factor and packing are one kernel instead of up to five",
    ),
    rule(
        "glu_pack_q8",
        "8-bit packing with the gated activation before it",
        Direction::Producers(glu::glu_pack_q8),
        ONE_LESS,
    ),
    rule(
        "glu_pack_f16",
        "f16 packing with the gated activation before it",
        Direction::Producers(glu::glu_pack_f16),
        ONE_LESS,
    ),
    rule(
        "matmul_vec_glu",
        "a packed gated activation with its two products",
        Direction::Producers(glu::matmul_vec_glu),
        "two products and their activation read one row once; two dispatches less",
    ),
    rule(
        "norm_matmul_vec_group",
        "a product in f32 of one row with others of the same row",
        Direction::Producers(matmul::norm_matmul_vec_group),
        ONE_LESS,
    ),
    rule(
        "norm_matmul_vec_glu",
        "a gated activation of one row in f32 with its two products",
        Direction::Producers(glu::norm_matmul_vec_glu),
        "two dispatches less",
    ),
    rule(
        "matmul_vec_q8_experts_glu",
        "a packed gated activation with the experts' two products",
        Direction::Producers(experts::matmul_vec_q8_experts_glu),
        "two dispatches less",
    ),
    rule(
        "matmul_vec_q8_experts_glu_route",
        "the experts' gated products with the choice of the experts",
        Direction::Producers(experts::matmul_vec_q8_experts_glu_route),
        "a dispatch of 7.4 us less; every workgroup ranks 128 experts itself",
    ),
    rule(
        "matmul_vec_q8_experts_sum",
        "the weighted sum of experts with the product before it",
        Direction::Producers(experts::matmul_vec_q8_experts_sum),
        ONE_LESS,
    ),
    rule("norm_rope", "a rotation with the norm of its heads", Direction::Producers(heads::norm_rope), ONE_LESS),
    rule(
        "norm_rope_append",
        "an append with the rotation and the norms before it",
        Direction::Producers(heads::norm_rope_append),
        ONE_LESS,
    ),
    rule(
        "norm_rope_heads",
        "an append with the rotation of the queries",
        Direction::Producers(heads::norm_rope_heads),
        ONE_LESS,
    ),
    rule(
        "attention_merge",
        "8-bit packing with the join of split attention",
        Direction::Producers(attention::attention_merge),
        ONE_LESS,
    ),
    rule(
        "attention_decode",
        "attention of few keys with the operations before it and its packing, if any",
        Direction::Producers(attention::attention_decode),
        "7.2 us as one kernel at 128 keys of 8 heads of 128; heads, parts and join take 14 us",
    ),
    rule(
        "attention_decode_rows_f16",
        "attention of several sequences with the operations before it and its packing to f16",
        Direction::Producers(attention::attention_decode_rows_f16),
        "27 us as one kernel for 32 rows over 512 keys; five kernels take 46 us",
    ),
    rule(
        "attention_merge_f16",
        "f16 packing with the join of split attention",
        Direction::Producers(attention::attention_merge_f16),
        ONE_LESS,
    ),
    rule(
        "matmul_vec_group",
        "a product in 8 bits with others of the same rows",
        Direction::Producers(matmul::matmul_vec_group),
        ONE_LESS,
    ),
    rule(
        "matmul_tile64_triple",
        "a product in small tiles with two others of the same rows",
        Direction::Producers(matmul::matmul_tile64_triple),
        "the third product runs while the other two wait: q, k and v from 36 to 26 us for 32 rows",
    ),
    rule(
        "matmul_tile64_pair",
        "a product in small tiles with another of the same rows",
        Direction::Producers(matmul::matmul_tile64_pair),
        ONE_LESS,
    ),
    rule(
        "matmul_tile128_pair",
        "a product in large tiles with another of the same rows",
        Direction::Producers(matmul::matmul_tile128_pair),
        "the tiles of the second weight begin while the last tiles of the first one end",
    ),
    rule(
        "norm_add_matmul_vec",
        "a packed sum with the products of one row that read it",
        Direction::Consumer(prologue::norm_add_matmul_vec),
        "a sum with its norm takes 4.4 us as a dispatch and 1.3 us in the prologue of a product",
    ),
    rule(
        "norm_add_matmul_vec_glu",
        "a packed sum with the gated products that read it",
        Direction::Consumer(prologue::norm_add_matmul_vec_glu),
        "the same before a gated pair of products",
    ),
    rule(
        "glu_matmul_vec",
        "a packed gated activation with the product that reads it",
        Direction::Consumer(prologue::glu_matmul_vec),
        ONE_LESS,
    ),
    rule(
        "merge_matmul_vec",
        "attention in parts with the product that reads it",
        Direction::Consumer(prologue::merge_matmul_vec),
        "joining 8 parts takes 1 us in every workgroup and 3.6 us as a separate dispatch",
    ),
    rule(
        "norm_pack_matmul_vec_glu",
        "packing with the gated products that read a row",
        Direction::Packing(prologue::norm_pack_matmul_vec_glu),
        "up to 1024 columns: 3072 results gain 4 us of 32; 8960 results of 1536 columns lose 2",
    ),
    rule(
        "norm_pack_matmul_vec",
        "packing with the products that read a row",
        Direction::Packing(prologue::norm_pack_matmul_vec),
        "up to 1536 columns: three products gain 1.7 us of 32 at 1024, 2.2 of 36 at 1536, and lose at 4096",
    ),
    rule(
        "norm_matmul_vec_group",
        "a norm in f32 with the products of one row that read it",
        Direction::Packing(prologue::norm_matmul_vec_group),
        "no separate norm; the sum before it moves to the product before that",
    ),
    rule(
        "norm_matmul_vec_glu",
        "a norm in f32 with the gated products that read it",
        Direction::Packing(prologue::norm_matmul_vec_glu),
        ONE_LESS,
    ),
];
