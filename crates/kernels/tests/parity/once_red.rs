//! Cases that failed once, which these tests run first. A failing test adds its case at the end.

use kernels::testing::drawn::Drawn;
#[allow(unused_imports, reason = "cases that did not shrink to simple values name no form")]
use kernels::testing::kernel::random::Fill;

/// The cases, under the stems of their operations.
#[rustfmt::skip]
pub fn once_red() -> Vec<Drawn> {
    vec![
        // 5 of 8 rows:
        // kv_append [8, 2, 256] [8, 2, 256] [8, 1] [8, 1]
        // attention [8, 6, 256] [8, 1] [8, 1] [8, 1] -> [8, 6, 256]
        // pack_q8 [8, 6, 256] -> [8, 576]
        Drawn {
            stem: "attention_merge",
            portable: false,
            split: false,
            seed: 10661897264367146770,
            choices: vec![1 /* F16 */, 2 /* 5 */, 3 /* 256 */, 1 /* true */, 0 /* false */, 3 /* Some(1500) */, 1 /* 2 */, 2 /* 3 */, 0 /* 300 */, 0 /* Any */, 3 /* 4 */, 72 /* 72 */, 3 /* 298 */, 1 /* true */, 3 /* 1 */, 2 /* Some(1) */],
            fills: vec![],
        },
        // 33 of 36 rows:
        // matmul [36, 512] -> [36, 1]
        // add [36, 1] -> [36, 1]
        Drawn {
            stem: "matmul_tile128",
            portable: true,
            split: false,
            seed: 9965122180202307740,
            choices: vec![0 /* 33 */, 16 /* IQ1_S */, 1 /* 2 */, 0 /* 1 */, 1 /* true */, 1 /* true */, 1 /* 0 */],
            fills: vec![],
        },
        // 33 of 36 rows:
        // matmul [36, 768] -> [36, 1]
        // add [36, 1] -> [36, 1]
        Drawn {
            stem: "matmul_tile128",
            portable: true,
            split: false,
            seed: 6653796974641584263,
            choices: vec![0 /* 33 */, 13 /* Q5_K */, 2 /* 3 */, 0 /* 1 */, 0 /* false */, 1 /* true */, 0 /* 0 */],
            fills: vec![],
        },
        // 1 of 1 rows:
        // mul_sigmoid [1, 257] [1, 1] -> [1, 257]
        Drawn {
            stem: "mul_sigmoid",
            portable: true,
            split: false,
            seed: 6653796974641584263,
            choices: vec![0 /* 1 */, 10 /* 257 */, 2 /* 60.0 */, 6 /* 4 */],
            fills: vec![],
        },
    ]
}
