// Subgroups of a workgroup of matmul_few.wgsl, each with a part of the columns.
const PARTS = 4u;
