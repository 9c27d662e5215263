// 32 weights of a row in a format with units, as its piece reads them.
// Needs: nothing. Gives: Unit.
struct Unit {
    // The quants of the two halves of 16, four to a word, signed.
    low: vec4<u32>,
    high: vec4<u32>,
    // w = scale q - least, by half.
    scale: vec2<f32>,
    least: vec2<f32>,
}
