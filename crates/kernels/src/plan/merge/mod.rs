//! Merges several operations into one: one table of rules, and a pass for each direction in which
//! operations merge.

mod attention;
mod consumers;
mod embed;
mod experts;
mod glu;
mod heads;
mod matmul;
mod norm;
mod packing;
mod producers;
mod prologue;
mod rules;
mod run;
mod view;

pub use consumers::consumers;
pub use packing::packing;
pub use producers::producers;
#[cfg(feature = "testing")]
pub use rules::described;
pub use run::{runs, values};
