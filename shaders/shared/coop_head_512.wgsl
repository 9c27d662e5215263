// How attention_coop.wgsl divides heads of 512: queries of a workgroup and of a subgroup, columns of a subgroup, keys at a time.
const HEAD = 512u;
const ROWS = 64u;
const BAND = 32u;
const SLICE = 128u;
const KEYS = 16u;
