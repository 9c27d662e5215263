// Threads to two rows of more than 32 steps, which fewer would go round two and three times.
const WG = 96u;
