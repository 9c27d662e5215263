//! tmp
use kernels::Device;
use kernels::parity::{Gen, cases};
use kernels::sweep::Known;

const M: &[(&str, &str, &str)] = &[
    ("mul", "i % params.period", "min(i, params.period - 1u)"),
    ("mul", "i < params.n", "i + 1u < params.n"),
    ("scale", "* params.s", "* (params.s * 1.00001)"),
    ("softcap", "-15.0, 15.0", "-2.0, 2.0"),
    ("softcap", "(2.0 / 15.0 -", "(2.0 / 14.0 -"),
    ("softcap", "< 0.25", "< 0.0"),
    ("softcap", "sign(z) *", ""),
    ("silu", "v >= 0.0", "v >= 1.0"),
    ("gelu", "0.044715", "0.0447"),
    ("gelu", "clamp(x, -100.0, 100.0)", "clamp(x, -3.0, 3.0)"),
    ("geglu", "* up[i]", ""),
    ("softmax", "largest = reduce_max(largest, lid);", ""),
    ("softmax", "d += WG", "d += WG + 1u"),
    ("log_softmax", "- log_total", "- log_total * 1.00002"),
    ("log_softmax", "total <= 1.0", "total <= 0.0"),
    ("argmax", "key > best.x", "key >= best.x"),
    ("argmax", "a.y < b.y", "a.y > b.y"),
    ("argmax", "bits > 0x80000000u)", "bits >= 0x80000000u)"),
    ("argmax", "magnitude > 0x7f800000u", "magnitude >= 0x7f800000u"),
    ("argmax", "magnitude > 0x7f800000u", "bits > 0x7fffffffu && magnitude > 0x7f800000u"),
    ("top_k", "rank.x == k - 1u", "rank.x + 3u == k - 1u"),
    ("top_k", "        one_by_one(row, base, lid);\n", ""),
    ("top_k", "precedes(last, here)", "here.x < last.x"),
    ("top_k", "0xff800000u, 0xffffffffu", "0u, 0u"),
    ("top_k", "        sort_found(count, lid);", ""),
    ("top_k", "if (i + WG < n)", "if (i + WG + 1u < n)"),
    ("penalize", "logit > 0.0", "logit > 1.0"),
    ("penalize", "f32(count) *", "1.0 *"),
    ("penalize", "p = start + lid", "p = start + 1u + lid"),
    ("penalize", "let end = positions[t] + 1u", "let end = positions[t]"),
    ("penalize", "sampling[row]", "sampling[0]"),
    ("penalize", "let t = out_rows[row]", "let t = row"),
    ("penalize", "v < min(BLOCK, params.vocab - first)", "v + 1u < min(BLOCK, params.vocab - first)"),
    ("penalize", "s.repetition == 1.0 && ", ""),
    ("sample", "17u, 29u, 16u, 24u", "17u, 29u, 16u, 23u"),
    ("sample", "position, here.y", "position + 1u, here.y"),
    ("sample", "s.sequence * 0x9e3779b9u", "s.sequence"),
    ("sample", "logit / s.temperature", "logit"),
    ("sample", "max(min(s.top_k, count), 1u) - 1u", "max(min(s.top_k, count), 2u) - 2u"),
    ("sample", "max(min(s.top_k, count), 1u) - 1u", "min(s.top_k, count - 1u)"),
    ("sample", "f32(s.top_k), top, false", "f32(s.top_k + 1u), top, false"),
    ("sample", "f32(s.top_k), top, false", "f32(s.top_k - 1u), top, false"),
    ("sample", "sum >= wanted);", "sum > wanted * 1.01);"),
    ("sample", "let wanted = s.top_p *", "let wanted = 0.98 * s.top_p *"),
    ("sample", "logit >= lowest", "true"),
    ("sample", "here.x >= least &&", ""),
    ("sample", "if (reached == NAN_KEY) {", "if (false) {"),
    ("sample", "Items(count <= ROOM,", "Items(true,"),
    ("sample", "s.min_p >= 1.0", "s.min_p >= 0.5"),
    ("sample", "(sum >= vec4<f32>(wanted)) & (sum > vec4<f32>(0.0))", "sum >= vec4<f32>(wanted)"),
    ("sample", "(raw[base + best.y] - top)", "(bitcast<f32>(logits[base + best.y]) - top)"),
    ("sample", "- log(sum)", "- log(sum) * 1.0001"),
    ("sample", "+ select(0.0, exp(values.y - top), v + WG < params.vocab)", "+ exp(values.y - top)"),
    ("sample", "let t = out_rows[row];", "let t = row;"),
    ("sample", "sampling[row]", "sampling[0]"),
    ("sample", "s.temperature > 0.0", "true"),
    ("sample", "if (n > WG) {", "if (false) {"),
    ("sample", "if (n > WG) {", "if (true) {"),
    ("sample", "h >= 0x800000u", "false"),
    ("sample", "t * (1.0 / 13.0)", "0.0"),
    ("sample", "(f32(h) + 0.5)", "(f32(h) + 0.0)"),
    ("sample", "s.top_k <= MOST", "true"),
    ("sample", "here.x <", "here.x <"),
];

#[test]
fn mutants() {
    let device = Device::auto().unwrap();
    let mut known: std::collections::HashMap<&str, Vec<Known>> = Default::default();
    for (stem, from, to) in M {
        let make = cases().iter().find(|c| c.0 == *stem).unwrap().1;
        let list = known.entry(stem).or_insert_with(|| (0..150).map(|s| Known::new(make(&mut Gen::new(s))).unwrap()).collect());
        let kernel = make(&mut Gen::new(0)).kernels(device.caps(), true).unwrap()[0].clone();
        let source = kernel.source();
        let text = source.replacen(from, to, 1);
        if text == source { println!("?? {stem}: {from}"); continue; }
        let broken = device.with_source(&kernel, text);
        let bad = list.iter().filter(|k| match k.compare(&broken, true) { Ok(o) => !o.holds(), Err(e) => { println!("{e}"); true } }).count();
        println!("{} {stem}: {bad}/150  {from}  ->  {to}", if bad > 0 { "ok " } else { "SURVIVED" });
    }
}
