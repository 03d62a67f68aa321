//! Pipelines in a program without the feature `models`.

use std::path::Path;

use pushdown::Pipeline;

use crate::{
    error::{Error, Result},
    store::Store,
};

impl Store {
    /// Parses a pipeline. A step `model` is refused: this program was built without the feature `models`.
    ///
    /// # Errors
    /// [`ErrorKind::Pipeline`](crate::ErrorKind::Pipeline) with the position.
    #[expect(
        clippy::unused_async,
        reason = "the same signature as with models, which are requested from the gateway"
    )]
    pub async fn pipeline(&self, text: &str) -> Result<Pipeline> {
        Ok(Pipeline::parse(text)?)
    }
}

/// Refuses: this program was built without the feature `models`.
///
/// # Errors
/// Always [`ErrorKind::Config`](crate::ErrorKind::Config).
pub fn parse_with_model_folder(_text: &str, folder: &Path) -> Result<Pipeline> {
    let folder = folder.display();
    Err(Error::config(format!(
        "cannot use the models in {folder}: this program was built without the feature `models`"
    )))
}
