// Two rows of a block of 32 to every 32 lanes.
const WG = 512u;
const PARTS = 1u;
