//! The engine of a pipeline's steps.

use crate::{Engine, Result, Step};

/// The engine of this process for these steps.
///
/// # Errors
/// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why their models cannot run.
#[cfg(feature = "models")]
pub fn engine_of(steps: &[Step]) -> Result<Engine> {
    // All models have the same runtime.
    let model = steps.iter().flat_map(Step::models).next();
    let runtime = model.map(|model| model.runtime()).transpose()?;
    Ok(Engine::new(runtime.map(|runtime| runtime.identity())))
}

/// The engine of this process for these steps.
///
/// # Errors
/// None: without the feature `models`, no step has a model.
#[cfg(not(feature = "models"))]
pub fn engine_of(_steps: &[Step]) -> Result<Engine> {
    Ok(Engine::default())
}
