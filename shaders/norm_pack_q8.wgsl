// h[r] = a[r] + b[r];   packed[r] = 8 bits of h[r, d] / sqrt(mean_d h[r, d]^2 + eps) * w[d]   (pack_q8.wgsl has the layout)
// a, b, h [rows, dim] f32 (b and h not touched when has_add = 0), w [dim] f32 (not read when has_weight = 0), dim a multiple of 32.
// One workgroup per row; a thread takes whole blocks of 32.
struct Params { dim: u32, rows: u32, has_add: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> packed: array<vec4<u32>>;

const WG = 128u;

@compute @workgroup_size(WG)
fn norm_pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * (params.dim >> 2u);
    let blocks = params.dim >> 5u;
    var sums = vec2<f32>(0.0);
    // A thread has one block in rows of up to 4096, and keeps it; the blocks of longer rows are read again.
    var v: array<vec4<f32>, 8>;
    for (var block = lid; block < blocks; block += WG) {
        for (var j = 0u; j < 8u; j++) {
            let at = base + 8u * block + j;
            v[j] = a[at];
            if (params.has_add == 1u) {
                v[j] += b[at];
                h[at] = v[j];
            }
            for (var c = 0u; c < 4u; c++) {
                sums = squares(sums, v[j][c]);
            }
        }
    }
    let total = vec2<f32>(reduce_add(sums.x, lid), reduce_add(sums.y, lid));
    let factors = inverse_root(total, f32(params.dim), params.eps);
    for (var block = lid; block < blocks; block += WG) {
        for (var j = 0u; j < 8u; j++) {
            let at = base + 8u * block + j;
            if (blocks > WG) {
                v[j] = a[at];
                if (params.has_add == 1u) {
                    v[j] += b[at];
                }
            }
            v[j] = v[j] * factors.x * factors.y;
            if (params.has_weight == 1u) {
                v[j] *= w[8u * block + j];
            }
        }
        pack_q8_store(row, params.dim, block, v);
    }
}
