//! The command `weft`.

fn main() {}
