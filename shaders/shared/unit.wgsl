// A unit: 32 weights of a row in a format with units.
// Needs: nothing. Gives: Unit.
struct Unit {
    // Signed quants of the first and the second half of 16, four to a word.
    low: vec4<u32>,
    high: vec4<u32>,
    // w = scale q - least, with one scale and one `least` for each half.
    scale: vec2<f32>,
    least: vec2<f32>,
}
