// How attention_coop.wgsl divides heads of 128: queries of a workgroup and of a subgroup, columns of a subgroup, keys at a time.
const HEAD = 128u;
const ROWS = 64u;
const BAND = 16u;
const SLICE = 128u;
const KEYS = 32u;
