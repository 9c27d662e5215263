// Rows of x that a workgroup of matmul_few_q8.wgsl multiplies.
const STEPS = 8u;
