// h[r] = scale s (a[r] + b[r, d] / sqrt(mean_d b[r, d]^2 + eps) w[d]), as in norm_add.wgsl;
// scales[r], halves[r] = h[r], or h[r, d] / sqrt(mean_d h[r, d]^2 + next_eps) u[d] (if has_norm),
// in f16, packed as in pack_f16.wgsl
// a, b, h [rows, dim] f32, w, u [dim] f32 (not read when has_weight = 0, has_u = 0), s one f32 (1
// when has_factor = 0), dim a multiple of 4, scales [rows] f32, halves in the order of its pitches.
// A row is normed at 2^-32 times its size, so squares do not overflow. One workgroup per row. A
// thread holds two quads of the row and reads further quads again.
// Needs: halves_of_quad, half_scale, kept_scale (half_scale.wgsl), workgroup_number (grid.wgsl),
// squares4, inverse_root (square_sums.wgsl), reduce_add2, reduce_add_max (reduce.wgsl). Gives: WG.
struct Params {
    dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, has_weight: u32, has_factor: u32, has_norm: u32, has_u: u32, eps: f32, next_eps: f32,
    scale: f32
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> s: array<f32>;
@group(0) @binding(5) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> scales: array<f32>;
@group(0) @binding(8) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 512u;
const SIZE = 2.3283064365386963e-10; // 2^-32

// Operands of a quad: `a` is added to it, `w` is its weight, `u` is the weight of the norm that
// follows. Quads past the end are the last quad.
struct Beside { a: vec4<f32>, w: vec4<f32>, u: vec4<f32> }

fn beside(row: u32, quad: u32) -> Beside {
    let quads = params.dim >> 2u;
    let at = min(quad, quads - 1u);
    var weight = vec4<f32>(1.0);
    if (params.has_weight == 1u) {
        weight = w[at];
    }
    var next = vec4<f32>(1.0);
    if (params.has_norm == 1u && params.has_u == 1u) {
        next = u[at];
    }
    return Beside(a[row * quads + at], weight, next);
}

// A quad of b, or zeros past the end.
fn summand(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.dim >> 2u;
    return select(vec4<f32>(0.0), b[row * quads + min(quad, quads - 1u)], quad < quads);
}

fn keep(row: u32, quad: u32, v: vec4<f32>) {
    if (quad < (params.dim >> 2u)) {
        h[row * (params.dim >> 2u) + quad] = v;
    }
}

fn store(row: u32, quad: u32, v: vec4<f32>) {
    if (quad < (params.dim >> 2u)) {
        halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(v);
    }
}

@compute @workgroup_size(WG)
fn norm_add_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    var factor = params.scale;
    if (params.has_factor == 1u) {
        factor *= s[0];
    }
    let first = summand(row, lid);
    let second = summand(row, lid + WG);
    let near = beside(row, lid);
    let far = beside(row, lid + WG);
    var sums = squares4(squares4(vec2<f32>(0.0), first), second);
    for (var quad = lid + 2u * WG; quad < quads; quad += WG) { //~ zeros: comparison
        sums = squares4(sums, summand(row, quad));
    }
    let factors = inverse_root(reduce_add2(sums, lid), f32(params.dim), params.eps);
    // The size at which the sum is normed and packed.
    let size = select(1.0, SIZE, params.has_norm == 1u);
    let near_sum = (near.a + first * factors.x * factors.y * near.w) * factor;
    let far_sum = (far.a + second * factors.x * factors.y * far.w) * factor;
    keep(row, lid, near_sum);
    keep(row, lid + WG, far_sum);
    var one = select(vec4<f32>(0.0), near_sum * size, lid < quads);
    var two = select(vec4<f32>(0.0), far_sum * size, lid + WG < quads);
    var squares = dot(one, one) + dot(two, two);
    one *= near.u;
    two *= far.u;
    var most = max(abs(one), abs(two));
    for (var quad = lid + 2u * WG; quad < quads; quad += WG) {
        let next = beside(row, quad);
        let sum = (next.a + summand(row, quad) * factors.x * factors.y * next.w) * factor;
        keep(row, quad, sum);
        squares += dot(sum * size, sum * size);
        most = max(most, abs(sum * size * next.u));
    }
    let both = reduce_add_max(vec2<f32>(squares, max(max(most.x, most.y), max(most.z, most.w))), lid);
    let norm = inverseSqrt(both.x / f32(params.dim) + params.next_eps * SIZE * SIZE);
    let by = select(1.0, norm, params.has_norm == 1u);
    let half = half_scale(both.y * by);
    if (lid == 0u) {
        scales[row] = kept_scale(both.y * by);
    }
    store(row, lid, one * (by / half));
    store(row, lid + WG, two * (by / half));
    for (var quad = lid + 2u * WG; quad < quads; quad += WG) { //~ empty: comparison
        store(row, quad, h[row * quads + quad] * size * beside(row, quad).u * (by / half));
    }
}
