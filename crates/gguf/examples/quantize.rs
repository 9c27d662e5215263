//! Requantizes a file. Matrices whose rows are whole blocks get the given type; all other tensors
//! are copied unchanged.

use std::process::ExitCode;

use gguf::{GgmlType, Gguf, GgufBuilder, quantize};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, ty] = args.as_slice() else {
        eprintln!("usage: quantize IN.gguf OUT.gguf TYPE");
        return ExitCode::from(2);
    };
    let Some(ty) = GgmlType::from_name(ty) else {
        eprintln!("error: no type is called {ty}");
        return ExitCode::from(2);
    };
    match convert(input, output, ty) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn convert(input: &str, output: &str, ty: GgmlType) -> gguf::Result<()> {
    let gguf = Gguf::open(input)?;
    // The old file type would be wrong. Readers use the type of each tensor.
    let mut builder = GgufBuilder::new().copy_metadata(&gguf).remove("general.file_type");
    for tensor in gguf.tensors() {
        let cols = tensor.cols() as usize;
        if tensor.n_dims > 1 && ty.row_bytes(cols).is_some() {
            let data = quantize(ty, &gguf.dequantized(tensor)?, cols)?;
            builder = builder.tensor(tensor.name(), tensor.shape(), ty, data);
        } else {
            let mut data = vec![0; tensor.bytes as usize];
            gguf.read_tensor(tensor, 0, &mut data)?;
            builder = builder.tensor(tensor.name(), tensor.shape(), tensor.ty()?, data);
        }
    }
    builder.save(output)
}
