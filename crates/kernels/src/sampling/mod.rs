//! From logits to ids.

/// The one list of the family.
macro_rules! sampling {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* sampling
            operations {
                argmax: Argmax [ARGMAX] argmax_case,
                penalize: Penalize [PENALIZE] penalize_case,
                sample: Sample [SAMPLE] sample_case,
                top_k: TopK { MAX_K } [TOP_K] top_k_case,
            }
            derivatives {}
            primitives {}
            fused {}
            kernels {
                sample_scan: [SAMPLE_SCAN] sample_scan_case,
            }
            modules {}
            cases {}
        }
    };
}

pub(crate) use sampling as list;

sampling! { family! }
