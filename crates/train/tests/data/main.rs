//! Examples: what each form of a line becomes, what is learnt of it, and which lines are refused.

mod common;
mod files;
mod forms;
mod resume;
mod turns;
