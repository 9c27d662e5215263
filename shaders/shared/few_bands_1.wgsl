// Sixteens of rows of x that a workgroup of matmul_few.wgsl multiplies.
const BANDS = 1u;
