// Threads to two rows of more than 32 steps, which fewer would go round twice.
const WG = 64u;
