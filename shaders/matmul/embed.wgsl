// y[t, d] = scale * table[tokens[sequences[t] * capacity + positions[t] mod capacity], d]
// tokens [S, capacity] u32, positions and sequences [T] u32, table [row_count, k] in any weight
// format (rows row_base.. of the whole table), y [T, k] f32. One thread per four elements. Nothing
// is written for ids outside this part of the table.
// Needs: workgroup_number (grid.wgsl), table_load4, table_row (the format of table). Gives:
// nothing.
struct Params { k: u32, rows: u32, row_base: u32, row_count: u32, capacity: u32, scale: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> sequences: array<u32>;
@group(0) @binding(4) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WG = 64u;

@compute @workgroup_size(WG)
fn embed(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = (params.k + 3u) / 4u;
    let i = workgroup_number(id, extents) * WG + lid;
    let t = i / quads;
    if (t >= params.rows) {
        return;
    }
    let token = tokens[sequences[t] * params.capacity + positions[t] % params.capacity];
    let r = token - params.row_base;
    if (r >= params.row_count) { //~ later: comparison
        return;
    }
    let quad = i % quads;
    let v = params.scale * table_load4(table_row(r, params.k), params.k, quad);
    let n = min(4u, params.k - 4u * quad);
    for (var j = 0u; j < n; j++) {
        y[t * params.k + 4u * quad + j] = v[j];
    }
}
