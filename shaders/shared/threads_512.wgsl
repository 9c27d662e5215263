// Threads of a workgroup of attention over few keys, where heads of q, k and v are more than 256 quads, or keys many.
const WG = 512u;
