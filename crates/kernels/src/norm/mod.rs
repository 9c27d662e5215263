//! Norms, softmax and rotations, and what packs activations for products.

/// The one list of the family.
macro_rules! norm {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* norm
            operations {
                gaussian_top_k: GaussianTopK [GAUSSIAN_TOP_K] gaussian_top_k_case,
                layer_norm: LayerNorm [LAYER_NORM] layer_norm_case,
                log_softmax: LogSoftmax [LOG_SOFTMAX] log_softmax_case,
                match_rms: MatchRms [MATCH_RMS] match_rms_case,
                rms_norm: RmsNorm [RMS_NORM] rms_norm_case,
                rope: Rope [ROPE] rope_case,
                softmax: Softmax [SOFTMAX] softmax_case,
            }
            derivatives {
                gaussian_top_k_backward: GaussianTopKBackward [GAUSSIAN_TOP_K_BACKWARD] gaussian_top_k_backward_case,
                layer_norm_backward: LayerNormBackward [LAYER_NORM_BACKWARD] layer_norm_backward_case,
                log_softmax_backward: LogSoftmaxBackward [LOG_SOFTMAX_BACKWARD] log_softmax_backward_case,
                match_rms_backward: MatchRmsBackward [MATCH_RMS_BACKWARD] match_rms_backward_case,
                rms_norm_backward: RmsNormBackward [RMS_NORM_BACKWARD] rms_norm_backward_case,
                rope_backward: RopeBackward [ROPE_BACKWARD] rope_backward_case,
                softmax_backward: SoftmaxBackward [SOFTMAX_BACKWARD] softmax_backward_case,
            }
            primitives {
                gather_slots: GatherSlots [GATHER_SLOTS] gather_slots_case = |_| "gather_slots",
                level_f16: LevelF16 [LEVEL_F16] level_f16_case = |_| "level_f16",
                pack_f16: PackF16 [PACK_F16] pack_f16_case = |_| "pack_f16",
                pack_q8: PackQ8 [PACK_Q8] pack_q8_case = |_| "pack_q8",
            }
            fused {
                add_rms_norm: AddRmsNorm [ADD_RMS_NORM] add_rms_norm_case,
                glu_pack_f16: GluPackF16 [GLU_PACK_F16] glu_pack_f16_case,
                glu_pack_q8: GluPackQ8 [GLU_PACK_Q8] glu_pack_q8_case,
                norm_add: NormAdd [NORM_ADD, NORM_ADD_Q8, NORM_ADD_PAIR] norm_add_case,
                norm_pack_f16: NormPackF16 [NORM_PACK_F16] norm_pack_f16_case,
                norm_pack_q8: NormPackQ8 [NORM_PACK_Q8] norm_pack_q8_case,
                norm_rope: NormRope [NORM_ROPE] norm_rope_case,
                norm_rope_append: NormRopeAppend [NORM_ROPE_APPEND] norm_rope_append_case,
                norm_rope_heads: NormRopeHeads [NORM_ROPE_HEADS] norm_rope_heads_case,
            }
            kernels {
                norm_add_f16: [NORM_ADD_F16] norm_add_f16_case,
            }
            modules {}
            cases {}
        }
    };
}

pub(crate) use norm as list;

norm! { family! }
