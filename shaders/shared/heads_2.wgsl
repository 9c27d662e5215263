// Heads that share their keys in one workgroup of attention_split.wgsl.
const HEADS = 2u;
