// Of the n rows of a product with one expert's weights, those that are in this part of all experts'
// rows: the first (.x), the row after the last (.y), and the number to add to find the row within
// the part (.z). Without such rows, .y is not above .x.
// Needs: params.stride, params.first, params.n, params.row_base, params.row_count. Gives:
// rows_in_part.
fn rows_in_part(expert: u32) -> vec3<u32> {
    let top = expert * params.stride + params.first;
    let end = min(top + params.n, params.row_base + params.row_count);
    return vec3<u32>(max(top, params.row_base) - top, max(end, top) - top, top - params.row_base);
}
