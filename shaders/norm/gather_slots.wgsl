// scales[p], halves[p] = x_scales[r / heads], x[r] for r = slots[p] / per: the packed row of every
// slot, in the order of `slots`
// x [rows heads, k] f16 (pack_f16.wgsl), `heads` of its rows divided by one of x_scales [rows] f32,
// k a multiple of 32, slots [rows of x, per] u32 (group_experts.wgsl), scales [rows of x, per] f32,
// halves [k / 16, slab, 16] f16, 16 columns of all slots together. One workgroup per slot.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { k: u32, slots: u32, slab: u32, per: u32, heads: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> x_scales: array<f32>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read_write> scales: array<f32>;
@group(0) @binding(5) var<storage, read_write> halves: array<vec4<u32>>;

const WG = 64u;

@compute @workgroup_size(WG)
fn gather_slots(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let place = workgroup_number(id, extents);
    if (place >= params.slots) {
        return;
    }
    let row = slots[place] / params.per;
    if (lid == 0u) {
        scales[place] = x_scales[row / params.heads];
    }
    let eights = params.k >> 3u;
    for (var eight = lid; eight < eights; eight += WG) {
        halves[((eight >> 1u) * params.slab + place) * 2u + (eight & 1u)] = x[row * eights + eight];
    }
}
