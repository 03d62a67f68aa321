//! Where the weights of a model come from.

use std::fmt;

use parking_lot::{Mutex, MutexGuard};

use super::{Files, Runtime};
use crate::Result;

/// Where weights come from: a folder, or a gateway. They are asked for whenever layers are made ready to run, and nobody
/// holds them for longer than that takes.
pub trait Weights: fmt::Debug + Send + Sync {
    /// The ONNX file, and those beside it that have weights.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) with the reason.
    fn fetch(&self) -> Result<Files>;

    /// Whether they are at hand: fetching them asks nobody else.
    fn is_near(&self) -> bool {
        true
    }

    /// What runs them.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason.
    fn runtime(&self) -> Result<Runtime>;
}

/// Waits until no other weights are coming: while they do they are in this process's memory several times, and all that come at
/// once would be. Whoever holds this is next.
pub(super) fn turn() -> MutexGuard<'static, ()> {
    static COMING: Mutex<()> = Mutex::new(());
    COMING.lock()
}
