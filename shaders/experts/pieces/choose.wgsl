// The experts of a row and their weights (route.wgsl). PARTS neighbouring threads rank an expert:
// the rank is the number of experts before it. Keys are integers, so every driver finds the same
// order.
// Needs: MOST, params.count, WG, order_key, logits, PARTS, parts_add, key_value, params.chosen,
// params.normalize, reduce_add, experts, weights, scale, params.has_scale. Gives: order,
// order_load, choose.

// The keys of a row's logits plus one, four at a time. Without an expert they are zero, the lowest,
// because workgroup memory starts as zeros.
var<workgroup> keys: array<vec4<u32>, MOST / 4u>;
// The experts in their order.
var<workgroup> order: array<u32, MOST>;

fn order_load(row: u32, lid: u32) {
    for (var e = lid; e < params.count; e += WG) {
        keys[e >> 2u][e & 3u] = order_key(bitcast<u32>(logits[row * params.count + e])) + 1u; //~ small: sign, off by one
    }
    workgroupBarrier();
    // An element of `order` that no thread writes holds zero, the number of the first expert.
    for (var first = 0u; first < params.count; first += WG / PARTS) { //~ alike: off by one
        let e = first + lid / PARTS;
        let before = parts_add(rank(min(e, params.count - 1u), lid % PARTS), lid);
        if (e < params.count && lid % PARTS == 0u) {
            order[before] = e;
        }
    }
    workgroupBarrier();
}

// The number of experts that come before this one: larger, or equal and earlier. A thread counts
// every PARTS-th quad of experts.
fn rank(expert: u32, part: u32) -> u32 {
    let own = expert >> 2u;
    let mine = keys[own][expert & 3u];
    let earlier = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(expert & 3u); //~ never: off by one
    var before = vec4<u32>((keys[own] == vec4<u32>(mine)) & earlier & vec4<bool>(part == 0u));
    for (var q = part; 4u * q < params.count; q += PARTS) {
        before += vec4<u32>(keys[q] > vec4<u32>(mine - u32(q < own)));
    }
    return before.x + before.y + before.z + before.w;
}

fn logit(expert: u32) -> f32 {
    return key_value(keys[expert >> 2u][expert & 3u] - 1u); //~ small: sign, off by one
}

fn choose(row: u32, lid: u32) {
    order_load(row, lid);
    let largest = logit(order[0]);
    var part = 0.0;
    for (var e = lid; e < select(params.count, params.chosen, params.normalize == 1u); e += WG) {
        part += exp(logit(select(e, order[e], params.normalize == 1u)) - largest);
    }
    let sum = reduce_add(part, lid);
    for (var j = lid; j < params.chosen; j += WG) {
        let e = order[j];
        let weight = exp(logit(e) - largest) / sum;
        experts[row * params.chosen + j] = e;
        weights[row * params.chosen + j] = select(weight, weight * scale[e], params.has_scale == 1u);
    }
}
