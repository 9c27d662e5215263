// Undoes the two-dimensional layout of long grids: the number of this workgroup, from the extents that the
// host dispatched. Numbers at or past the count that a kernel wants must return at once.
// Needs: nothing. Gives: workgroup_number.
fn workgroup_number(id: vec3<u32>, extents: vec3<u32>) -> u32 {
    return id.x + id.y * extents.x;
}
