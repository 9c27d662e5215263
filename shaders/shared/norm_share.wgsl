// The part of four of a row's `dim` values in the sum 2^-64 (mean of squares + eps). The factor
// 2^-64 keeps squares of large values finite.
// Needs: nothing. Gives: TWO_POW_MINUS_32, TWO_POW_MINUS_64, norm_share.
const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;

fn norm_share(v: vec4<f32>, dim: u32, eps: f32) -> f32 {
    let small = v * TWO_POW_MINUS_32;
    return (dot(small, small) + 4.0 * (eps * TWO_POW_MINUS_64)) / f32(dim);
}
