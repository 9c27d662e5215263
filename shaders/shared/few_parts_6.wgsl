// Subgroups of a workgroup of matmul_few.wgsl, each with a part of the columns, and sixteens of rows of weights.
const PARTS = 6u;
const GROUPS = 2u;
