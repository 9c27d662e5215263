// Threads of a workgroup for few rows of 8-bit activations of few columns (few_rows.wgsl): blocks of 32 columns at once.
const WG = 32u;
