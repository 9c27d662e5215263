//! Examples: what each form of a line becomes, what is learnt of it, and which lines are refused.

mod common;
mod files;
mod formats;
mod forms;
mod keys;
mod resume;
mod turns;
