//! Examples: files of JSON lines or of text, as documents, in batches.

mod batches;
mod bytes;
mod example;
mod files;
mod gzip;
mod ids;
mod index;
mod json;
mod keys;
mod kind;
mod line;
mod lines;
mod list;
mod marked;
mod message;
mod options;
mod order;
mod reader;
mod split;
mod stream;
mod text;
mod texts;

pub use batches::{Batches, Position};
pub use example::Piece;
pub use files::Data;
pub use options::{Counts, DataOptions, Learn, Longer};
pub use order::Order;
pub use stream::Stream;
pub use texts::Texts;
