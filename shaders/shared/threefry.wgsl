// Counter-based random bits, and Gumbel noise made from them.
// Needs: nothing. Gives: threefry2x32, gumbel.

// Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3",
// section 4).
fn threefry2x32(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
    var schedule = vec3<u32>(key, 0x1bd11bdau ^ key.x ^ key.y);
    var x = counter + key;
    for (var i = 1u; i <= 5u; i++) {
        let rotations = select(vec4<u32>(17u, 29u, 16u, 24u), vec4<u32>(13u, 15u, 26u, 6u), (i & 1u) == 1u);
        x = threefry_round(x, rotations.x);
        x = threefry_round(x, rotations.y);
        x = threefry_round(x, rotations.z);
        x = threefry_round(x, rotations.w);
        schedule = schedule.yzx;
        x += schedule.xy + vec2<u32>(0u, i);
    }
    return x;
}

fn threefry_round(x: vec2<u32>, rotation: u32) -> vec2<u32> {
    let a = x.x + x.y;
    return vec2<u32>(a, ((x.y << rotation) | (x.y >> (32u - rotation))) ^ a);
}

// -ln(-ln u) with u = ((bits >> 8) + 1/2) / 2^24. In the upper half ln u is computed from 1 - u,
// which is exact, as -2 atanh(s) with s = (1 - u) / (1 + u) <= 1/3. The series has an error of at
// most 2e-8.
fn gumbel(bits: u32) -> f32 {
    let h = bits >> 8u;
    let unit = 5.9604644775390625e-8;
    let u = (f32(h) + 0.5) * unit; //~ small: sign
    let rest = (f32(0xffffffu - h) + 0.5) * unit;
    let s = rest / (2.0 - rest);
    let t = s * s;
    let tail = t * (1.0 / 9.0 + t * (1.0 / 11.0 + t * (1.0 / 13.0))); //~ small: sign, product
    let near_one = 2.0 * s * (1.0 + t * (1.0 / 3.0 + t * (1.0 / 5.0 + t * (1.0 / 7.0 + tail)))); //~ small: sign, product
    return -log(select(-log(u), near_one, h >= 0x800000u)); //~ meet: comparison; small: nibble swapped
}
