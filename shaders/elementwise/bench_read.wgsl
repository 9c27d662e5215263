// sums[t] = the exclusive or of the words that thread t reads
// source [4 * passes * threads] vec4<u32>, sums [threads] u32. Every thread reads 16 bytes at a
// time, next to its neighbours, with four independent loads in flight. The measured rate is the
// roof of every kernel that reads memory.
struct Params { passes: u32, threads: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> sums: array<u32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn bench_read(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let t = id.x * WG + lid;
    let n = params.threads;
    var sum = vec4<u32>(0u);
    for (var i = 0u; i < params.passes; i++) {
        let at = 4u * i * n + t;
        let a = source[at];
        let b = source[at + n];
        let c = source[at + 2u * n];
        let d = source[at + 3u * n];
        sum ^= (a ^ b) ^ (c ^ d);
    }
    sums[t] = (sum.x ^ sum.y) ^ (sum.z ^ sum.w);
}
