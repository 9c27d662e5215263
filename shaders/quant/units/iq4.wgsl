// The values of IQ4_NL and IQ4_XS for four words of codes, as signed bytes.
fn W_iq4_each(q: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(W_iq4(q.x), W_iq4(q.y), W_iq4(q.z), W_iq4(q.w));
}
