// The summand of norm_add.wgsl as it lies in memory: b [rows, dim] f32.
// Needs: nothing. Gives: b, Part, part_load, part_factors, part_value.
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
alias Part = vec4<f32>;

fn part_load(row: u32, quad: u32, quads: u32) -> Part {
    return select(vec4<f32>(0.0), b[row * quads + min(quad, quads - 1u)], quad < quads);
}

fn part_factors(row: u32, quads: u32, p0: Part, p1: Part, p2: Part, p3: Part, lid: u32) -> vec4<f32> {
    return vec4<f32>(0.0);
}

fn part_value(p: Part, factors: vec4<f32>) -> vec4<f32> {
    return p;
}
