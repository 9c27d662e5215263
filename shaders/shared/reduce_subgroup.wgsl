// Sum (of scalars or vectors) and maximum over a workgroup of WG threads, through subgroup
// operations. Each subgroup leaves one partial result in workgroup memory. Then every thread
// combines the partial results; for maxima, every subgroup does. Subgroups are full, a power of
// two, and hold consecutive threads.
// Needs: WG. Gives: reduce_add, reduce_max, reduce_add4, reduce_add2, reduce_add_max.
var<workgroup> reduce_scratch: array<f32, WG>;
var<workgroup> reduce_scratch4: array<vec4<f32>, WG>;

fn reduce_add(v: f32, lid: u32) -> f32 {
    let width = subgroupAdd(1u);
    let shift = firstTrailingBit(width);
    let part = subgroupAdd(v);
    if ((lid & (width - 1u)) == 0u) {
        reduce_scratch[lid >> shift] = part;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < (WG >> shift); i++) { //~ zeros: comparison
        sum += reduce_scratch[i];
    }
    workgroupBarrier();
    return sum;
}

fn reduce_max(v: f32, lid: u32) -> f32 {
    let width = subgroupAdd(1u);
    let shift = firstTrailingBit(width);
    let part = subgroupMax(v);
    if ((lid & (width - 1u)) == 0u) {
        reduce_scratch[lid >> shift] = part;
    }
    workgroupBarrier();
    var most = reduce_scratch[0];
    for (var i = lid & (width - 1u); i < (WG >> shift); i += width) { //~ cancels: comparison
        most = max(most, reduce_scratch[i]);
    }
    workgroupBarrier();
    return subgroupMax(most);
}

fn reduce_add4(v: vec4<f32>, lid: u32) -> vec4<f32> {
    let width = subgroupAdd(1u);
    let shift = firstTrailingBit(width);
    let part = subgroupAdd(v);
    if ((lid & (width - 1u)) == 0u) {
        reduce_scratch4[lid >> shift] = part;
    }
    workgroupBarrier();
    var sum = vec4<f32>(0.0);
    for (var i = 0u; i < (WG >> shift); i++) { //~ zeros: comparison
        sum += reduce_scratch4[i];
    }
    workgroupBarrier();
    return sum;
}

// Loads four partial results at a time. Results past the last one are zero, because workgroup
// memory starts as zeros.
fn reduce_add2(v: vec2<f32>, lid: u32) -> vec2<f32> {
    let width = subgroupAdd(1u);
    let shift = firstTrailingBit(width);
    let part = subgroupAdd(v);
    if ((lid & (width - 1u)) == 0u) {
        reduce_scratch4[lid >> shift] = vec4<f32>(part, 0.0, 0.0);
    }
    workgroupBarrier();
    var sum = vec2<f32>(0.0);
    for (var i = 0u; i < (WG >> shift); i += 4u) { //~ zeros: comparison
        sum += (reduce_scratch4[i].xy + reduce_scratch4[i + 1u].xy) + (reduce_scratch4[i + 2u].xy + reduce_scratch4[i + 3u].xy);
    }
    workgroupBarrier();
    return sum;
}

// The sum of v.x and the maximum of v.y. Every subgroup combines the partial results for itself.
fn reduce_add_max(v: vec2<f32>, lid: u32) -> vec2<f32> {
    let width = subgroupAdd(1u);
    let shift = firstTrailingBit(width);
    let part = vec2<f32>(subgroupAdd(v.x), subgroupMax(v.y));
    if ((lid & (width - 1u)) == 0u) {
        reduce_scratch4[lid >> shift] = vec4<f32>(part, 0.0, 0.0);
    }
    workgroupBarrier();
    var all = vec2<f32>(0.0, reduce_scratch4[0].y);
    for (var i = lid & (width - 1u); i < (WG >> shift); i += width) { //~ zeros: comparison
        all = vec2<f32>(all.x + reduce_scratch4[i].x, max(all.y, reduce_scratch4[i].y));
    }
    workgroupBarrier(); //~ synced: barrier dropped
    return vec2<f32>(subgroupAdd(all.x), subgroupMax(all.y));
}
