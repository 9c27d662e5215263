// g[c] += sum_r a[r, c] b[r, c] s[r] over the rows r that count, with 1 for an absent operand: the
// derivative by a row that repeats, such as a bias
// a, b [rows * each, dim] f32, s [rows * each] f32, g [dim] f32. One workgroup for `columns`
// columns, a power of two up to 64. The other threads have other rows of these columns.
// Needs: workgroup_number (grid.wgsl), rows_that_count (step_rows.wgsl). Gives: step_rows,
// params.counted, params.rows, params.first.
struct Params { dim: u32, columns: u32, each: u32, rows: u32, counted: u32, first: u32, has_b: u32, has_s: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> s: array<f32>;
@group(0) @binding(4) var<storage, read> step_rows: array<u32>;
@group(0) @binding(5) var<storage, read_write> g: array<f32>;

const WG = 256u;
var<workgroup> sums: array<f32, WG>;

@compute @workgroup_size(WG)
fn column_sum(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let column = workgroup_number(id, extents) * params.columns + lid % params.columns;
    let rows = rows_that_count() * params.each;
    var sum = 0.0;
    for (var r = lid / params.columns; r < rows && column < params.dim; r += WG / params.columns) { //~ unowned: comparison
        let at = r * params.dim + column;
        var v = a[at];
        if (params.has_b == 1u) {
            v *= b[at] * select(1.0, s[r], params.has_s == 1u);
        }
        sum += v;
    }
    sums[lid] = sum;
    workgroupBarrier();
    if (lid < params.columns && column < params.dim) { //~ surplus: comparison
        var total = 0.0;
        for (var i = lid; i < WG; i += params.columns) {
            total += sums[i];
        }
        g[column] += total;
    }
}
