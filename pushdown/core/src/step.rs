//! The interfaces of steps.

mod cells;
mod draws;
mod inner_pipeline;
mod nearest;
pub mod operator;
mod philox;
pub mod rowwise;
mod table_step;

pub use cells::{CachedCell, CellComputation, CellHost, CellMemory, CellValue, CellValues, TOO_MUCH_MEMORY};
pub use draws::{Draws, RowDraws};
pub use inner_pipeline::{GroupTimes, InnerPipeline, InnerSteps};
pub use nearest::{distance, nearest};
pub use operator::{Operator, Pixels, Scope, StageValue};
pub use table_step::{OpenTable, RowProgress, RowSelection, RowTransform, RowwiseStep, TableReader};
