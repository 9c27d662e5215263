// The number of this workgroup. Long grids are dispatched in two dimensions; `extents` are the
// dispatched extents. A kernel returns at once where the number is past its count.
// Needs: nothing. Gives: workgroup_number.
fn workgroup_number(id: vec3<u32>, extents: vec3<u32>) -> u32 {
    return id.x + id.y * extents.x;
}
