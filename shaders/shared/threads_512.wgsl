// Threads of a workgroup whose heads have 512 elements: a quad of three heads each.
const WG = 512u;
