// The number of this workgroup. Long grids are dispatched in two dimensions; `extents` are the
// dispatched extents. A kernel must return at once if the number is not below its count.
// Needs: nothing. Gives: workgroup_number.
fn workgroup_number(id: vec3<u32>, extents: vec3<u32>) -> u32 {
    return id.x + id.y * extents.x;
}
