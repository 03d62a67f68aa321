//! The engine of a pipeline's steps.

use crate::{Engine, Result, Step};

/// The engine of this process for these steps.
///
/// # Errors
/// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why their models cannot run.
pub fn engine_of(steps: &[Step]) -> Result<Engine> {
    // All models have the same runtime.
    let model = steps.iter().flat_map(Step::models).next();
    let runtime = model.map(|model| model.runtime_identity()).transpose()?;
    Ok(Engine::new(runtime))
}
