//! The interfaces of steps.

mod draws;
mod inner_pipeline;
mod nearest;
pub mod operator;
mod philox;
pub mod rowwise;
mod table_step;

pub use draws::{Draws, RowDraws};
pub use inner_pipeline::InnerPipeline;
pub use nearest::{distance, nearest};
pub use operator::{Operator, Pixels, Scope, StageValue};
pub use table_step::{OpenTable, RowSelection, RowTransform, RowwiseStep, TableReader};
