// Subgroups of a workgroup of matmul_few.wgsl, each with a part of the columns, and sixteens of rows of weights: where there are few rows.
const PARTS = 8u;
const GROUPS = 1u;
