// Threads to two rows so long that fewer would go round several times, one load after the other: six subgroups, since rows of 8960 to 12288
// are 140 to 192 steps.
const WG = 192u;
