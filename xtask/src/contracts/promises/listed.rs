//! The promises, in the order of their projects.

use super::{Promise, Proof, Test};

const BACKWARD: &str = "crates/kernels/tests/promises/backward.rs";
const FORWARD: &str = "crates/kernels/tests/promises/forward.rs";
const LOSSES: &str = "crates/kernels/tests/promises/losses.rs";
const TRAINING: &str = "crates/kernels/tests/promises/training.rs";
const COUNTS: &str = "crates/kernels/tests/promises/counts.rs";
const NF4: &str = "crates/kernels/tests/promises/nf4.rs";
const NF4_BLOCKS: &str = "crates/gguf/tests/nf4.rs";
const PARITY: &str = "crates/kernels/tests/parity/main.rs";
const GRADIENTS: &str = "crates/train/tests/gradients.rs";
const ARCHITECTURES: &str = "crates/train/tests/architectures.rs";

const EVERY_KERNEL: Proof = Proof::Test((PARITY, "every_variant_in_one_format_matches_its_oracle"));
const LARGE_GRIDS: Proof = Proof::Test((PARITY, "grids_above_65535_workgroups"));
const PORTABLE: Proof =
    Proof::Test((PARITY, "every_third_portable_variant_in_one_format_matches_its_oracle_under_webgpus_default_limits"));
const LENGTHS: Proof = Proof::Test(("crates/kernels/tests/run_backward.rs", "slices_that_do_not_fit_are_shape_errors"));
const PRODUCTS: Proof = Proof::Test((BACKWARD, "products_of_any_dimensions_and_their_derivatives"));
const ROTATIONS: Proof = Proof::Test((BACKWARD, "rotations_turn_by_the_angle_and_back"));
const NORMS: Proof = Proof::Test((BACKWARD, "rms_norm_backward_of_short_and_long_rows"));
const TEN_STEPS: Proof = Proof::Test((TRAINING, "ten_steps_of_adamw"));
const ATTENTION_BACKWARD: Proof = Proof::Test((BACKWARD, "attention_backward_of_one_query_and_many_with_windows"));
const VOCABULARIES: Proof = Proof::Test((LOSSES, "losses_over_4096_and_262144_logits_of_the_rows_that_have_a_target"));
const BEHIND_A_SOFTCAP: Proof = Proof::Test((LOSSES, "losses_behind_a_softcap"));
const ONE_SUBMIT: Proof = Proof::Test((COUNTS, "a_step_is_one_submit_and_a_shader_is_compiled_once"));
const ONE_SUBMIT_PER_TOKEN: Proof =
    Proof::Test(("crates/model/tests/memory.rs", "a_token_of_any_number_of_layers_is_one_submit"));
const READS_BACK: Proof =
    Proof::Test(("crates/model/tests/memory.rs", "a_step_reads_back_what_was_drawn_and_no_hidden_state"));
const OVERFIT: Proof = Proof::Test((
    "crates/train/tests/overfit.rs",
    "the_loss_of_one_text_falls_by_30_percent_in_3_steps_and_by_half_in_20",
));
const CHUNKS: Proof =
    Proof::Test(("crates/model/tests/sessions/executors.rs", "prefill_in_any_chunking_equals_token_by_token_decode"));
const TRANSFORMERS: Proof =
    Proof::Test(("crates/model/tests/sessions/references.rs", "the_first_rows_are_those_of_transformers"));
const NF4_BYTES: Proof = Proof::Test((NF4, "every_byte_that_the_cpu_packs_is_unpacked_in_the_order_of_its_elements"));
const NF4_MILLION: Proof = Proof::Test((NF4, "a_million_values_are_those_of_the_cpu"));
const NO_CLAMP: Test = (BACKWARD, "geglu_backward_has_the_slope_of_gelu_beyond_10_as_well");

/// The promises of T, then of R.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "T FALSIFY-WGPU-TRAIN-001..008 (`wgpu-training-v1`)",
        says: "every training shader differs from the CPU by less than 1e-5. Ours also on ragged shapes of several tiles, each with a \
               NMSE bound of its own (above), and products, norms, rotations, units, attention and losses within 1e-5 at sizes below 100",
        held: &[EVERY_KERNEL, LARGE_GRIDS, PRODUCTS, NORMS, ROTATIONS, ATTENTION_BACKWARD, VOCABULARIES, TEN_STEPS],
    },
    Promise {
        name: "T FALSIFY-WGPU-001 silu_backward",
        says: "100 elements from -5 to 4.9 within 1e-4, 0.5 at 0, unequal lengths are errors. Ours within 1e-5, also to 90 and in more \
               than 65,535 workgroups",
        held: &[Proof::Test((BACKWARD, "silu_backward_up_to_90_and_in_more_workgroups_than_a_grid_has")), LENGTHS],
    },
    Promise {
        name: "T FALSIFY-WGPU-001 gemm_backward_a, gemm_backward_b",
        says: "4 by 8 by 6 within 1e-3 (its API says 1e-4). Ours within 1e-5 with dimensions of 1 to 97 around the edges of tiles, 1e-4 to 2048; \
               wrong lengths are errors",
        held: &[PRODUCTS, LENGTHS],
    },
    Promise {
        name: "T FALSIFY-WGPU-001 rope_backward",
        says: "2 heads of 4, 3 positions within 1e-4. Ours within 1e-5, with angles that the test computes itself, and \
               <F x, y> = <x, F' y> with the forward kernel",
        held: &[ROTATIONS],
    },
    Promise {
        name: "T FALSIFY-WGPU-001 adamw_step",
        says: "16 parameters, one step within 1e-4. Ours over 10 steps: parameters within 1e-6, relative errors of the update 1e-4, of m \
               and v 1e-6",
        held: &[TEN_STEPS],
    },
    Promise {
        name: "T FALSIFY-WGPU-001 rmsnorm_backward",
        says: "3 rows of 8, eps 1e-5: by the input within 1e-3, by the weight 1e-2. Ours within 1e-5 (the weight of 300 rows 1e-4), rows to 4096 and of ragged \
               lengths, 300 rows, eps of models",
        held: &[NORMS],
    },
    Promise {
        name: "T FALSIFY-WGPU-002",
        says: "a toy loss falls by half in 100 steps, or by a tenth in 50, with finite gradients. Ours by half in 50, each loss within \
               1e-4 of the same network in f64",
        held: &[Proof::Test((TRAINING, "the_losses_of_a_network_fall_as_in_f64"))],
    },
    Promise {
        name: "T FALSIFY-WGPU-003 nf4_dequant",
        says: "8 values in blocks of 4, packed by hand, within 1e-6. Ours packed by the CPU: all 256 bytes in blocks of 64, rows whose planes \
               end within 16 bytes, also bit for bit",
        held: &[
            NF4_BYTES,
            Proof::Test(("crates/kernels/tests/format_parity.rs", "pieces_read_exactly_what_gguf_reads")),
        ],
    },
    Promise {
        name: "T FALSIFY-NF4-001 (`nf4-dequantization-v1`)",
        says: "16 codes rise, with -1, 0 and 1 at 0, 7 and 15",
        held: &[Proof::Test((NF4_BLOCKS, "the_16_codes_rise_from_minus_1_over_0_to_1"))],
    },
    Promise {
        name: "T FALSIFY-NF4-002",
        says: "a code comes back exactly. Ours also beside each of the 15 thresholds, and all blocks are those of bitsandbytes",
        held: &[
            Proof::Test((NF4_BLOCKS, "every_code_comes_back_and_every_threshold_parts_two_codes")),
            Proof::Test((NF4_BLOCKS, "blocks_are_those_of_bitsandbytes")),
        ],
    },
    Promise {
        name: "T FALSIFY-NF4-003",
        says: "256 values in blocks of 64 within 0.28 of the absmax and 1e-6. Ours within 0.152, half of the widest gap; random, zero and \
               extreme blocks",
        held: &[Proof::Test((NF4_BLOCKS, "the_error_is_at_most_half_of_the_widest_gap")), NF4_MILLION],
    },
    Promise {
        name: "T FALSIFY-NF4-004",
        says: "a million values of the GPU within 1e-6 of the CPU (without a test)",
        held: &[NF4_MILLION],
    },
    Promise {
        name: "T FALSIFY-NF4-006",
        says: "the high nibble is the earlier element, on a GPU alone: its CPU packs the low nibble first",
        held: &[Proof::Rejected {
            reason: "the low nibble is the earlier element on both sides, as the CPU packs it",
            test: (NF4, "every_byte_that_the_cpu_packs_is_unpacked_in_the_order_of_its_elements"),
        }],
    },
    Promise {
        name: "T FALSIFY-COOP-001 (`cooperative-matrix-gemm-v1`)",
        says: "512 by 3584 by 3584 within 1e-3 of the tiled product. Ours on a card, NMSE 1e-6 (1e-3 of the result's size) of the product \
               in f64, in every format, past the edges of tiles (to 300 rows by 300 by 2048)",
        held: &[
            Proof::Card {
                command: "cargo xtask verify-shaders --cases 4",
                line: "With 8 cases also `matmul_tile64*`, `matmul_tile128*`, `attention_flash*`, `attention_decode*` and \
                       `attention_split*`: 231 kernels, 0 beyond their bound.",
            },
            Proof::Card {
                command: "cargo xtask verify-shaders --cases 24 --kernel matmul_tile",
                line: "173 kernels, 0 beyond their bound",
            },
        ],
    },
    Promise {
        name: "T FALSIFY-COOP-002",
        says: "at least twice as fast as tiles without cooperative matrices. Ours 3 times, in whole prompts of 512 tokens",
        held: &[
            Proof::Bench {
                shows: "without, pp512",
                command: "weft bench FILE -p 512 -n 128 -r 3",
                line: "| `--precise`, loops without counters | 1,502 | 70.8 | |",
            },
            Proof::Bench {
                shows: "with, pp512",
                command: "weft bench FILE -p 512 -n 128 -r 3",
                line: "| 8-bit activations, cooperative matrices | 4,497 | 166 | |",
            },
        ],
    },
    Promise {
        name: "T FALSIFY-COOP-003",
        says: "without the feature another kernel runs. Ours is forced to: every product has a portable kernel, which runs under WebGPU's \
               limits; plans for devices with and without the feature",
        held: &[PORTABLE, Proof::Test((PARITY, "every_kernel_is_reached_by_cases_on_devices_of_every_kind"))],
    },
    Promise {
        name: "T `wgpu-forward-pass-v1` rmsnorm_correctness",
        says: "within 2^-21 of the CPU. Ours with rows of 1 to 8960, several rows, both usual eps",
        held: &[Proof::Test((FORWARD, "rms_norm_of_rows_of_1_to_8960"))],
    },
    Promise {
        name: "T `wgpu-forward-pass-v1` gemv_dispatch",
        says: "one row goes to another kernel than several. Ours gives the same row alone and among 2, 3, 4 and 65, within 1e-5, in five \
               formats",
        held: &[Proof::Test((FORWARD, "a_row_of_a_product_is_the_same_alone_and_among_others")), CHUNKS],
    },
    Promise {
        name: "T `wgpu-forward-pass-v1` vec4_alignment",
        says: "K is a multiple of 4. Ours gives the right product for K of 1 to 9; rows of partial blocks are errors",
        held: &[
            Proof::Test((FORWARD, "rows_of_1_to_9_elements_give_the_right_product")),
            Proof::Test(("crates/kernels/tests/run.rs", "sizes_that_no_kernel_takes_are_argument_errors")),
        ],
    },
    Promise {
        name: "T `wgpu-forward-pass-v1` dequant_correctness",
        says: "text not found. Ours: every format on the device is bit for bit what the CPU reads, and the CPU what ggml's reader gives",
        held: &[
            Proof::Test(("crates/kernels/tests/format_parity.rs", "pieces_read_exactly_what_gguf_reads")),
            Proof::Test(("crates/gguf/tests/vectors.rs", "every_type_dequantizes_to_the_bits_of_the_python_package")),
        ],
    },
    Promise {
        name: "T `wgpu-forward-pass-v1` gpu_bias_rope_order",
        says: "text not found. Ours: biases, rotation and attention in their order, against logits of transformers (qwen2 with biases)",
        held: &[TRANSFORMERS, Proof::Test(("crates/model/tests/plan.rs", "qwen2_with_its_biases_in_the_products"))],
    },
    Promise {
        name: "T `wgpu-forward-pass-v1` buffer_size_safety",
        says: "text not found. Ours: a context that is too long and tokens past it are refused and change nothing; queries wider than the \
               hidden state",
        held: &[
            Proof::Test((
                "crates/model/tests/sessions/session.rs",
                "a_context_longer_than_the_models_or_of_nothing_is_refused",
            )),
            Proof::Test((
                "crates/model/tests/sessions/session.rs",
                "feeding_past_the_context_or_the_vocabulary_changes_nothing",
            )),
            CHUNKS,
        ],
    },
    Promise {
        name: "T `gpu-output-norm-v1` / gpu_resident",
        says: "the hidden state stays on the GPU through the last norm. Ours: a step reads back an id and its logarithm for each row that is drawn, no more, and its \
               logits are those of the oracle",
        held: &[READS_BACK, CHUNKS],
    },
    Promise {
        name: "T `forward-pass-perf-v1` / bottleneck_identified",
        says: "the time of each operation of a layer. Ours by timestamps, each dispatch once, and their sum accounts for the step",
        held: &[
            Proof::Test(("crates/kernels/tests/profile.rs", "every_dispatch_is_timed_once_in_order")),
            Proof::Test((
                "crates/kernels/tests/profile.rs",
                "dispatches_account_for_the_step_and_for_nothing_beyond_it",
            )),
        ],
    },
    Promise {
        name: "T C-WGPU-Q4K-001",
        says: "y = deq(W) x with 144 bytes for 256 values and one row, 7.1 times less memory than F32, otherwise F32. Ours with random \
               blocks, 262,145 rows, bytes counted on the device; what does not fit is an error",
        held: &[
            Proof::Test((FORWARD, "a_q4_k_matrix_of_more_rows_than_a_grid_has")),
            Proof::Test(("crates/kernels/tests/run.rs", "a_type_without_kernels_is_named")),
        ],
    },
    Promise {
        name: "T C-TILED-MATMUL-001",
        says: "tiles of 16 by 16 equal the naive product for all M, K, N; 5 to 15 times as fast. Ours for ragged sizes; a row of 512 takes \
               a 14th of the time of a row alone, which reads all weights for itself",
        held: &[
            PRODUCTS,
            Proof::Bench {
                shows: "rows together and alone",
                command: "weft bench FILE -p 512 -n 64 -r 2",
                line: "| qwen3-8b Q4_K_M (5.18 GB) | 1,140 | 81.8 | 383 |",
            },
        ],
    },
    Promise {
        name: "T `wgsl-gemm-tiled-v1`",
        says: "alpha A B within 1e-4 of the naive product. Ours with dimensions of 63, 64, 65 and 97 and alpha -0.37",
        held: &[PRODUCTS],
    },
    Promise {
        name: "T `causal-attention-v1`",
        says: "row i sees the keys to i, probabilities sum to 1, the result has the shape of Q. Ours: other keys and values behind a row \
               change no bit of it, values of 1 give 1 within 1e-6, heads of 64 to 256 also in between, 33 and 2049 rows",
        held: &[Proof::Test((FORWARD, "causal_attention_of_any_head_and_length")), ATTENTION_BACKWARD],
    },
    Promise {
        name: "T `fused-cross-entropy-v1` / fused_forward, fused_backward",
        says: "loss and derivative, of the response alone. Ours also over 262,144 logits and by finite differences; rows without target \
               or weight have a derivative of 0",
        held: &[VOCABULARIES],
    },
    Promise {
        name: "T `wgsl-transpose-v1`",
        says: "B[j, i] = s A[i, j]",
        held: &[Proof::Rejected {
            reason: "derivatives read the weights as they lie, in their format, so there is no transposed copy to make",
            test: (BACKWARD, "products_of_any_dimensions_and_their_derivatives"),
        }],
    },
    Promise {
        name: "T C-BATCH-EXEC-001",
        says: "a batch is one submit, a shader is compiled at most once. Ours are counted",
        held: &[
            ONE_SUBMIT,
            Proof::Test(("crates/kernels/src/device/pipelines/tests.rs", "a_kernel_is_built_once_however_many_ask")),
            Proof::Test(("crates/model/tests/memory.rs", "no_gpu_object_is_made_per_token")),
        ],
    },
    Promise {
        name: "T C-BATCH-IMPORT-001",
        says: "an imported buffer serves all operations and outlives the batch. Ours: weights after the plan and the caller's handle are \
               gone",
        held: &[Proof::Test((COUNTS, "weights_serve_every_operation_and_outlive_the_plan_that_used_them_first"))],
    },
    Promise {
        name: "T, unnamed: a layer",
        says: "14 passes, 1 submit and 1 read-back for a layer. Ours are 1 submit and 1 read-back for a token of any number of layers",
        held: &[ONE_SUBMIT_PER_TOKEN, ONE_SUBMIT, READS_BACK],
    },
    Promise {
        name: "T, unnamed: 27.6 tok/s",
        says: "a model of 1.5 billion parameters on a W5700X",
        held: &[Proof::Bench {
            shows: "tg128 of the same shape on an H100",
            command: "cargo xtask turns OLD NEW -- FILE ..",
            line: "| | tg128 | 975.9 | 976.7 | 1.0007 | 0.3% |",
        }],
    },
    Promise {
        name: "T SOFTMAX_BACKWARD_SHADER",
        says: "announced, absent. Ours for flat and peaked rows of any length, per head",
        held: &[
            EVERY_KERNEL,
            Proof::Test(("crates/cpu-ref/src/ops/backward/softmax_backward.rs", "it_is_the_derivative_of_the_softmax")),
        ],
    },
    Promise {
        name: "T rmsnorm_backward, dg by atomic additions",
        says: "rows add to the derivative by the weight as they come",
        held: &[Proof::Rejected {
            reason: "sums in no fixed order give other bits in every run, and then layers that are recorded again do not give the same bits",
            test: (GRADIENTS, "steps_and_layers_recorded_again_give_the_same_gradients"),
        }],
    },
    Promise {
        name: "R cross_entropy_backward",
        says: "4096 logits: loss within 1e-3, derivative 1e-5, exactly 0 without a target. Ours within 1e-5 and 1e-6, also over 262,144 \
               logits and behind a softcap",
        held: &[VOCABULARIES, BEHIND_A_SOFTCAP],
    },
    Promise {
        name: "R matmul_q4_k_backward_input, matmul_q6_k_backward_input",
        says: "256 by 16 within 1e-3, also relative. Ours within 1e-4, with rows of one to three blocks; all formats by NMSE 1e-10",
        held: &[Proof::Test((BACKWARD, "derivatives_by_the_input_of_k_quants_in_every_block_of_a_row")), EVERY_KERNEL],
    },
    Promise {
        name: "R rmsnorm_backward, rmsnorm_backward_per_row",
        says: "64 elements, and 4 rows of 32 with and without weight, within 1e-4. Ours within 1e-5, rows to 4096",
        held: &[NORMS],
    },
    Promise {
        name: "R sum_of_squares",
        says: "63 to 4097 elements, relative 1e-4. Ours 1e-5, also 3.7 million elements",
        held: &[Proof::Test((TRAINING, "sums_of_squares_of_any_number_of_elements"))],
    },
    Promise { name: "R geglu_backward", says: "64 elements within 1e-5", held: &[Proof::Test(NO_CLAMP)] },
    Promise {
        name: "R geglu_backward, the gate between -10 and 10",
        says: "a gate beyond 10 is taken as 10",
        held: &[Proof::Rejected {
            reason: "the derivative of a clamped gate is not the derivative of the model's GELU, and ours needs no clamp against overflow",
            test: NO_CLAMP,
        }],
    },
    Promise {
        name: "R adam_step",
        says: "128 parameters, one step within 1e-6. Ours over 10 steps, m and v too",
        held: &[TEN_STEPS],
    },
    Promise {
        name: "R lora_forward_backward",
        says: "K 16, rank 4, N 12, scale 0.5 within 1e-5. Ours also 37 rows and rank 8; sums are added to what is there; factors of every \
               linear layer by finite differences",
        held: &[
            Proof::Test((BACKWARD, "low_rank_factors_and_their_derivatives")),
            Proof::Test((
                "crates/cpu-ref/src/ops/backward/matmul_weight.rs",
                "it_is_the_derivative_of_the_product_added_to_what_was_there",
            )),
            EVERY_KERNEL,
            Proof::Test((ARCHITECTURES, "finite_differences")),
        ],
    },
    Promise {
        name: "R attention_backward",
        says: "2 heads, 1 kv head, heads of 8, 5 keys before it within 1e-5. Ours also 70 queries, windows and a softcap",
        held: &[ATTENTION_BACKWARD],
    },
    Promise {
        name: "R rope_forward, rope_backward",
        says: "16 elements at position 11, there and back within 1e-4. Ours within 1e-5, against angles of neither kernel",
        held: &[ROTATIONS],
    },
    Promise {
        name: "R checkpoint_parity",
        says: "gradients with and without checkpoints within 5e-4. Ours bit for bit, in every architecture; the test needs no file from \
               elsewhere",
        held: &[
            Proof::Test((GRADIENTS, "steps_and_layers_recorded_again_give_the_same_gradients")),
            Proof::Test((ARCHITECTURES, "layers_recorded_again_and_on_a_gpu")),
        ],
    },
    Promise {
        name: "R overfit_one",
        says: "the loss falls by half in 20 steps. Ours also by finite differences, on a model that is always there",
        held: &[OVERFIT, Proof::Test((GRADIENTS, "finite_differences_along_random_directions"))],
    },
    Promise { name: "R per_position", says: "the loss falls by 30% in 3 steps", held: &[OVERFIT] },
    Promise {
        name: "R, prose: submits",
        says: "one submit per token (in its code, per layer)",
        held: &[ONE_SUBMIT_PER_TOKEN],
    },
    Promise {
        name: "R, prose: 10 tok/s",
        says: "at least 10 tokens per second. Ours on two CPU cores without a GPU",
        held: &[Proof::Bench {
            shows: "the default model",
            command: "weft run -p \"Where does Mira live?\" --device cpu --stats",
            line: "with other load on the machine: 57.6 tok/s",
        }],
    },
    Promise {
        name: "R, prose: load_kv",
        says: "a load that fails changes nothing",
        held: &[Proof::Test((
            "crates/model/tests/sessions/snapshot.rs",
            "what_is_cut_short_altered_foreign_or_newer_is_refused_and_changes_nothing",
        ))],
    },
    Promise {
        name: "R, prose: targets past the vocabulary",
        says: "loss and gradient are zero",
        held: &[
            VOCABULARIES,
            Proof::Test((
                "crates/cpu-ref/src/ops/backward/cross_entropy_backward.rs",
                "the_derivative_of_the_weighted_sum_of_the_losses",
            )),
        ],
    },
];
