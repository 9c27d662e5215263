// count[0] += by if `squares` is finite: counts the steps in which adamw.wgsl changed parameters
// squares [1] f32, count [1] f32. One workgroup.
// Needs: workgroup_number (grid.wgsl), is_number (is_number.wgsl). Gives: nothing.
struct Params { by: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> squares: array<f32>;
@group(0) @binding(2) var<storage, read_write> count: array<f32>;

@compute @workgroup_size(1)
fn count_step(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>) {
    if (workgroup_number(id, extents) == 0u && is_number(squares[0])) {
        count[0] += params.by;
    }
}
