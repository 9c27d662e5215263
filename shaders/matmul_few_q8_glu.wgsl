// packed[t] = 8 bits of activation(f[t] gate x[t]) * (f[t] up x[t]), with f the factor of the norm that was left to the readers of x, or 1
// x [rows, k] and packed [rows, n] activations in 8 bits (pack_q8.wgsl), gate, up [n, k] in one format with units, n a multiple of 32;
// activation is silu or gelu (tanh form). One workgroup for 32 rows of each weight and STEPS of x, as matmul_few_q8.wgsl has them.
struct Params { k: u32, n: u32, rows: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> packed: array<u32>;

// Rows of the two weights per workgroup.
const MOST = 64u;

struct gate_Four { a: gate_Raw, b: gate_Raw, c: gate_Raw, d: gate_Raw }

// A lane's blocks of the rows r, r ^ 1, r ^ 2 and r ^ 3, as they are stored.
fn gate_four(r: u32, k: u32, block: u32) -> gate_Four {
    let g = 2u * block;
    return gate_Four(
        gate_raw(gate_row(r, k), k, g), gate_raw(gate_row(r ^ 1u, k), k, g),
        gate_raw(gate_row(r ^ 2u, k), k, g), gate_raw(gate_row(r ^ 3u, k), k, g));
}

struct up_Four { a: up_Raw, b: up_Raw, c: up_Raw, d: up_Raw }

// A lane's blocks of the rows r, r ^ 1, r ^ 2 and r ^ 3, as they are stored.
fn up_four(r: u32, k: u32, block: u32) -> up_Four {
    let g = 2u * block;
    return up_Four(
        up_raw(up_row(r, k), k, g), up_raw(up_row(r ^ 1u, k), k, g),
        up_raw(up_row(r ^ 2u, k), k, g), up_raw(up_row(r ^ 3u, k), k, g));
}

@compute @workgroup_size(WG)
fn matmul_few_q8_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let steps = (params.rows + STEPS - 1u) / STEPS;
    let t0 = number % steps * STEPS;
    let r0 = number / steps * 32u;
    if (r0 >= params.n) {
        return;
    }
    let k = params.k;
    let blocks = k >> 5u;
    let last = params.rows - 1u - t0;
    // Always 32; drivers that knew would repeat the loops' bodies.
    let count = min(32u, params.n - r0);
    let own = r0 + held_order(lid);
    for (var first = 0u; first < blocks; first += WG) {
        let block = min(first + lid, blocks - 1u);
        let held = held_load(t0, last, k, block, select(0.0, 1.0, first + lid < blocks));
        few_add_share(first, held_share(held, lid), lid);
        if (AHEAD) {
            var next = gate_four(own, k, block);
            for (var r = 0u; r < count; r += 4u) {
                let now = next;
                next = gate_four(min(r + 4u, count - 4u) + own, k, block);
                let a = held_dots(held, gate_block_of(now.a, block), gate_alike);
                let b = held_dots(held, gate_block_of(now.b, block), gate_alike);
                let c = held_dots(held, gate_block_of(now.c, block), gate_alike);
                let d = held_dots(held, gate_block_of(now.d, block), gate_alike);
                few_add(first, r, held_total(a, b, c, d, lid), lid);
            }
        } else {
            for (var r = 0u; r < count; r += 4u) {
                let a = held_dots(held, gate_block(gate_row(r + own, k), k, block), gate_alike);
                let b = held_dots(held, gate_block(gate_row(r + (own ^ 1u), k), k, block), gate_alike);
                let c = held_dots(held, gate_block(gate_row(r + (own ^ 2u), k), k, block), gate_alike);
                let d = held_dots(held, gate_block(gate_row(r + (own ^ 3u), k), k, block), gate_alike);
                few_add(first, r, held_total(a, b, c, d, lid), lid);
            }
        }
        if (AHEAD) {
            var next = up_four(own, k, block);
            for (var r = 0u; r < count; r += 4u) {
                let now = next;
                next = up_four(min(r + 4u, count - 4u) + own, k, block);
                let a = held_dots(held, up_block_of(now.a, block), gate_alike);
                let b = held_dots(held, up_block_of(now.b, block), gate_alike);
                let c = held_dots(held, up_block_of(now.c, block), gate_alike);
                let d = held_dots(held, up_block_of(now.d, block), gate_alike);
                few_add(first, 32u + r, held_total(a, b, c, d, lid), lid);
            }
        } else {
            for (var r = 0u; r < count; r += 4u) {
                let a = held_dots(held, up_block(up_row(r + own, k), k, block), gate_alike);
                let b = held_dots(held, up_block(up_row(r + (own ^ 1u), k), k, block), gate_alike);
                let c = held_dots(held, up_block(up_row(r + (own ^ 2u), k), k, block), gate_alike);
                let d = held_dots(held, up_block(up_row(r + (own ^ 3u), k), k, block), gate_alike);
                few_add(first, 32u + r, held_total(a, b, c, d, lid), lid);
            }
        }
    }
    workgroupBarrier();
    for (var i = lid; i < max(8u * STEPS, WG); i += WG) {
        let t = min(i >> 3u, STEPS - 1u);
        let r = 4u * (i & 7u);
        let gated = activation(vec4<f32>(few_result(r, t), few_result(r + 1u, t), few_result(r + 2u, t), few_result(r + 3u, t)));
        let raised = vec4<f32>(few_result(r + 32u, t), few_result(r + 33u, t), few_result(r + 34u, t), few_result(r + 35u, t));
        let inside = i < 8u * STEPS && t <= last;
        pack_q8_quad(t0 + t, params.n, (r0 + r) >> 2u, inside, gated * raised, 0.0, lid);
    }
}
