// Products of eight rows with eight columns, which a thread of a tile of 64 x 64 results in f32
// accumulates. 16 reads of workgroup memory serve 256 products.
// Needs: nothing. Gives: Sums, add.
struct Sums { a: mat2x4<f32>, b: mat2x4<f32>, c: mat2x4<f32>, d: mat2x4<f32>, e: mat2x4<f32>, f: mat2x4<f32>, g: mat2x4<f32>, h: mat2x4<f32> }

// Adds the products of four elements of one row with four elements of each column. `near` and `far`
// have four columns each, element by element.
fn add(sums: mat2x4<f32>, row: vec4<f32>, near: mat4x4<f32>, far: mat4x4<f32>) -> mat2x4<f32> {
    return mat2x4<f32>(add4(sums[0], row, near), add4(sums[1], row, far));
}

fn add4(sum: vec4<f32>, row: vec4<f32>, four: mat4x4<f32>) -> vec4<f32> {
    let two = fma(vec4<f32>(row.y), four[1], fma(vec4<f32>(row.x), four[0], sum));
    return fma(vec4<f32>(row.w), four[3], fma(vec4<f32>(row.z), four[2], two));
}
