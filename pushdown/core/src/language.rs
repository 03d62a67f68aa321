//! The language of pipelines: text, arguments of steps, models by name, digests.

mod call;
mod digest;
mod param;
mod resolver;
mod text;
mod value;

pub use call::{Args, Argument, Call, FromValue, InnerParser, Side};
pub use digest::Digest;
pub use param::Param;
pub use resolver::{NamedModel, NoModels, Normalization, Resolver};
pub use text::parse as parse_calls;
pub use value::{Value, excerpt, is_plain};
