// Threads of a workgroup of attention over few keys, where heads of q, k and v are 256 quads or less.
const WG = 256u;
