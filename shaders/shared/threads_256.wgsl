// Threads of a workgroup whose heads have up to 256 elements: a quad of three heads each.
const WG = 256u;
