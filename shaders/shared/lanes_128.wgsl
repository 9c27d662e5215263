// Threads to two rows so long that fewer would go round several times, one load after the other.
const WG = 128u;
