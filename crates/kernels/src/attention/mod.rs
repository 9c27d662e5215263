//! Attention over a cache or over the rows of a step, and the ladder of its kernels.

/// The one list of the family.
macro_rules! attention {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* attention
            operations {
                attention: Attention { Attend, Keys, MAX_HEAD_DIM } [ATTENTION] attention_case,
                kv_append: KvAppend [KV_APPEND] kv_append_case,
            }
            derivatives {
                attention_backward_kv: AttentionBackwardKv [ATTENTION_BACKWARD_KV],
                attention_backward_q: AttentionBackwardQ [ATTENTION_BACKWARD_Q],
                attention_delta: AttentionDelta [ATTENTION_DELTA],
                attention_lse: AttentionLse { Attended } [ATTENTION_LSE] attention_lse_case,
            }
            primitives {
                tile32: Tile32 [] = |op| op.name(),
            }
            fused {
                attention_merge: AttentionMerge [ATTENTION_MERGE, ATTENTION_MERGE_Q8] attention_merge_case,
                fused: AttentionSplit AttentionDecode AttentionDecodeRowsF16 AttentionByLength [],
                merge_matmul_vec: MergeMatmulVec [MERGE_MATMUL_VEC] merge_matmul_vec_case,
            }
            kernels {
                attention_backward_kv_flash: [ATTENTION_BACKWARD_KV_FLASH],
                attention_backward_q_flash: [ATTENTION_BACKWARD_Q_FLASH],
                attention_decode: [ATTENTION_DECODE] attention_decode_case,
                attention_decode_128: [ATTENTION_DECODE_128] attention_decode_128_case,
                attention_decode_256: [ATTENTION_DECODE_256] attention_decode_256_case,
                attention_decode_rows: [ATTENTION_DECODE_ROWS] attention_decode_rows_case,
                attention_decode_rows_f16: [ATTENTION_DECODE_ROWS_F16] attention_decode_rows_f16_case,
                attention_decode_split: [ATTENTION_DECODE_SPLIT] attention_decode_split_case,
                attention_decode_window: [ATTENTION_DECODE_WINDOW],
                attention_flash: [ATTENTION_FLASH] attention_flash_case,
                attention_lse_flash: [ATTENTION_LSE_FLASH],
                attention_merge_parts: [ATTENTION_MERGE_PARTS, ATTENTION_MERGE_PARTS_F16],
                attention_split: [ATTENTION_SPLIT] attention_split_case,
                attention_split_128: [ATTENTION_SPLIT_128] attention_split_128_case,
                attention_split_512: [ATTENTION_SPLIT_512] attention_split_512_case,
                attention_tile: [ATTENTION_TILE] attention_tile_case,
            }
            modules {
                ladder,
            }
            cases {
                attention_step_case,
            }
        }
    };
}

pub(crate) use attention as list;

attention! { family! }
