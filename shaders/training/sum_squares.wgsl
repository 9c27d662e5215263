// y[at + i] = sum of x^2 over the i-th stretch of `each` elements of x, or sum of x (plain = 1)
// x [n] f32, y f32. One workgroup per stretch. Sums of all stretches of several x, and then the sum
// of these, have a fixed order.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { n: u32, each: u32, at: u32, plain: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn sum_squares(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let stretch = workgroup_number(id, extents);
    let start = stretch * params.each;
    if (start >= params.n) { //~ whole: comparison, guard dropped
        return;
    }
    let end = min(start + params.each, params.n); //~ free: sign
    var sum = 0.0;
    for (var i = start + lid; i < end; i += WG) {
        sum += select(x[i] * x[i], x[i], params.plain == 1u); //~ paired: sign
    }
    let total = reduce_add(sum, lid);
    if (lid == 0u) {
        y[params.at + stretch] = total;
    }
}
