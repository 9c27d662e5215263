// Threads to two rows of ordinary length.
const WG = 32u;
