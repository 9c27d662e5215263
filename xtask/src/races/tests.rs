//! Tests of the analysis on small texts.

use super::finding::Finding;
use super::machine::{Machine, Space};
use super::program::Program;
use kernels::testing::kernel::compose::Shader;
use kernels::testing::language;
use kernels::testing::parity::calls::{Bound, Call};
use naga::valid::{Capabilities, ValidationFlags, Validator};

const INVOCATIONS: u32 = 16;
const SUBGROUP: usize = 4;

/// Runs an entry point's body in workgroups of 16 invocations, 4 to a subgroup, over a buffer `y`
/// of 64 words with the numbers from 0. Returns what is wrong, and the buffer.
fn run(declared: &str, body: &str) -> (Option<Finding>, Vec<u32>) {
    let arguments = "@builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32";
    let buffer = "@group(0) @binding(1) var<storage, read_write> y: array<u32>;";
    let entry = format!("@compute @workgroup_size({INVOCATIONS}) fn main({arguments}) {{ {body} }}");
    let text = [declared, buffer, &entry].join("\n");
    let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module);
    let info = info.unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
    let program = Program::new(&module, &info, SUBGROUP).unwrap();
    let shader = language::variants().flat_map(|variant| Shader::all(variant, &[0])).next().unwrap();
    let call = Call { shader, params: vec![], bindings: vec![Bound { buffer: 0, bytes: 0..256 }], grid: [1; 3] };
    let bytes = (0..64_u32).flat_map(u32::to_le_bytes).collect();
    let mut space = Space { buffers: vec![bytes], ..Space::default() };
    let mut machine = Machine::new(&program, &call, &mut space, 10_000);
    let found = machine.run(u32::MAX).err().map(|e| e.downcast::<Finding>().unwrap());
    let found = found.or(machine.unsure.into_values().next());
    let words = space.buffers[0].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    (found, words)
}

/// What is wrong with a body that has this variable in workgroup memory: 16 words.
fn shared(body: &str) -> Option<Finding> {
    run("var<workgroup> s: array<u32, 16>;", body).0
}

fn races(found: &Option<Finding>) -> bool {
    matches!(found, Some(Finding::Race { .. }))
}

/// A sum of 16 numbers through workgroup memory.
const SUM: &str = "
    s[lid] = y[lid];
    workgroupBarrier();
    for (var half = 8u; half > 0u; half >>= 1u) {
        if (lid < half) { s[lid] += s[lid + half]; }
        workgroupBarrier();
    }
    y[lid] = s[0];";

#[test]
fn a_reduction_is_computed_and_needs_each_of_its_barriers() {
    let (found, words) = run("var<workgroup> s: array<u32, 16>;", SUM);
    assert_eq!(found, None);
    assert_eq!(words[..16], [120; 16]);
    assert_eq!(words[16], 16);
    for (at, barrier) in SUM.match_indices("workgroupBarrier();") {
        let without = format!("{}{}", &SUM[..at], &SUM[at + barrier.len()..]);
        let found = shared(&without);
        assert!(races(&found), "{without}: {found:?}");
        assert!(matches!(found, Some(Finding::Race { ref what, .. }) if what == "s"));
    }
}

#[test]
fn each_invocation_has_its_own_private_variables() {
    let declared = "var<private> p: u32; var<private> q = 5u; fn next() { p += 1u; q += p; }";
    let (found, words) = run(declared, "p = lid; next(); next(); y[lid] = p + 100u * q;");
    assert_eq!(found, None);
    // q = 5 + (lid + 1) + (lid + 2)
    assert!((0..16).all(|lid| words[lid as usize] == lid + 2 + 100 * (2 * lid + 8)), "{words:?}");
}

#[test]
fn a_barrier_of_a_subgroup_orders_no_other_subgroup() {
    let body = |other: u32| format!("s[lid] = lid; subgroupBarrier(); y[lid] = s[lid ^ {other}u];");
    assert_eq!(shared(&body(1)), None);
    assert!(races(&shared(&body(4))));
    assert!(races(&shared(&body(1).replace("subgroupBarrier();", ""))));
}

#[test]
fn subgroups_may_be_in_different_iterations() {
    let body = "for (var n = 0u; n < subgroup + 2u; n++) { s[lid] = n; subgroupBarrier(); y[lid] = s[lid ^ 1u]; subgroupBarrier(); }";
    assert_eq!(shared(body), None);
    let (first, last) = (body.find("subgroupBarrier();").unwrap(), body.rfind("subgroupBarrier();").unwrap());
    for at in [first, last] {
        assert!(races(&shared(&format!("{}{}", &body[..at], &body[at + 18..]))), "{at}");
    }
}

#[test]
fn atomic_additions_race_with_other_accesses_alone() {
    let body = "atomicAdd(&n, lid); workgroupBarrier(); y[lid] = atomicLoad(&n);";
    let of = |body: &str| run("var<workgroup> n: atomic<u32>;", body);
    let (found, words) = of(body);
    assert_eq!((found, words[15]), (None, 120));
    assert!(races(&of(&body.replace("workgroupBarrier();", "")).0));
    assert_eq!(of("atomicAdd(&n, 1u);").0, None);
    assert!(races(&of("if (lid == 0u) { atomicStore(&n, 3u); } atomicAdd(&n, 1u);").0));
    let loads = "if (lid == 3u) { atomicStore(&n, 7u); } y[lid] = workgroupUniformLoad(&n);";
    assert_eq!(of(loads).1[15], 7);
    assert!(races(&of(&loads.replace("workgroupUniformLoad", "atomicLoad")).0));
}

#[test]
fn a_loop_needs_the_barrier_at_its_end() {
    let body = "for (var n = 0u; n < 3u; n++) {
        s[lid] = n + lid; workgroupBarrier(); y[lid] += s[15u - lid]; workgroupBarrier();
    }";
    assert_eq!(shared(body), None);
    let at = body.rfind("workgroupBarrier();").unwrap();
    assert!(races(&shared(&format!("{}{}", &body[..at], &body[at + 19..]))));
    let once = body.replace("n < 3u", "n < 1u");
    assert_eq!(shared(&format!("{}{}", &once[..at], &once[at + 19..])), None, "nothing follows the only iteration");
}

#[test]
fn a_guarded_store_is_made_by_one_invocation() {
    assert_eq!(shared("if (lid == 5u) { s[0] = lid; } workgroupBarrier(); y[lid] = s[0];"), None);
    assert!(races(&shared("s[0] = lid; workgroupBarrier(); y[lid] = s[0];")));
    assert_eq!(shared("s[0] = 5u; workgroupBarrier(); y[lid] = s[0];"), None, "equal words");
    assert!(races(&shared("s[0] = 5u; y[lid] = s[0];")), "one may read before another writes");
    assert!(races(&shared("if (lid < 8u) { y[0] = lid; }")), "of the buffer");
    assert!(races(&shared("y[lid] = 1u; workgroupBarrier(); y[63] = y[lid ^ 1u];")), "no barrier orders buffers");
}

#[test]
fn a_barrier_that_only_some_invocations_reach_is_found() {
    let apart = |found| matches!(found, Some(Finding::Apart { .. }));
    assert!(apart(run("", "for (var n = 0u; n < y[lid] % 2u; n++) { workgroupBarrier(); }").0));
    assert!(apart(run("", "for (var n = 0u; n < y[lid] % 2u; n++) { subgroupBarrier(); }").0));
    assert!(!apart(run("", "for (var n = 0u; n < y[0] + 1u; n++) { workgroupBarrier(); }").0));
}

#[test]
fn an_endless_loop_ends() {
    assert_eq!(run("", "loop { if (y[lid] == 77u) { break; } }").0, Some(Finding::Endless));
    assert!(matches!(shared("s[lid + y[lid]] = 1u;"), Some(Finding::Outside { .. })));
}

#[test]
fn invocations_part_and_meet_again() {
    let body = "
        var n = 0u;
        switch lid % 4u { case 0u: { n = 10u; } case 1u, 2u: { if (lid == 1u) { break; } n = 20u; } default: { n = 30u; } }
        loop { n++; if (n % 5u == lid % 5u) { break; } if (lid == 3u) { continue; } continuing { n += lid & 1u; } }
        y[lid] = n * 100u + part(lid);";
    let (found, words) = run(
        "fn part(x: u32) -> u32 { if (x < 4u) { return 1u; } var i = 0u; for (; i < 99u; i++) { if (i == x) { return i; } } return i; }",
        body,
    );
    let expected = |lid: u32| {
        let mut n = match lid % 4 {
            0 => 10,
            1 | 2 if lid == 1 => 0,
            1 | 2 => 20,
            _ => 30,
        };
        loop {
            n += 1;
            if n % 5 == lid % 5 {
                break;
            }
            n += lid & 1;
        }
        n * 100 + if lid < 4 { 1 } else { lid }
    };
    assert_eq!(found, None);
    assert_eq!(words[..16], (0..16).map(expected).collect::<Vec<_>>());
}

#[test]
fn subgroups_exchange_values() {
    let (found, words) =
        run("", "y[lid] = subgroupAdd(lid) * 1000u + subgroupExclusiveAdd(lid) * 10u + subgroupShuffleXor(lid, 1u);");
    let expected = |lid: u32| {
        let first = lid / 4 * 4;
        (first..first + 4).sum::<u32>() * 1000 + (first..lid).sum::<u32>() * 10 + (lid ^ 1)
    };
    assert_eq!((found, &words[..16]), (None, (0..16).map(expected).collect::<Vec<_>>().as_slice()));
    assert!(
        matches!(run("", "y[lid] = subgroupShuffle(lid, 5u);").0, Some(Finding::Outside { .. })),
        "a subgroup has four"
    );
}
