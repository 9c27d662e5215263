// Two rows of a block of 32 to every 64 lanes.
const WG = 1024u;
const PARTS = 2u;
