// The sampling parameters of one row of logits: kernels::SampleParams, word for word.
// Needs: nothing. Gives: SampleParams.
struct SampleParams {
    repetition: f32,
    frequency: f32,
    presence: f32,
    last_n: u32,
    top_k: u32,
    top_p: f32,
    min_p: f32,
    temperature: f32,
    seed: vec2<u32>,
    sequence: u32,
    unused: u32,
}
