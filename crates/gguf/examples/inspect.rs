//! Prints the metadata and the tensors of a GGUF file.

use std::process::ExitCode;

use gguf::Gguf;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: inspect FILE.gguf");
        return ExitCode::from(2);
    };
    match inspect(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn inspect(path: &str) -> gguf::Result<()> {
    let gguf = Gguf::open(path)?;
    println!("version {}, alignment {}", gguf.version(), gguf.alignment());
    for (key, value) in gguf.metadata() {
        println!("{key} = {value}");
    }
    for tensor in gguf.tensors() {
        let ty = tensor.ty().map_or_else(|_| format!("type {}", tensor.ty_number), |ty| ty.to_string());
        println!("{:48} {ty:8} {:?} {} bytes at {}", tensor.name(), tensor.shape(), tensor.bytes, tensor.offset);
    }
    Ok(())
}
