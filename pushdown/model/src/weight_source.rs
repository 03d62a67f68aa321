//! Sources of a model's weights.

use std::{fmt, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use super::{ModelFiles, Runtime};
use pushdown_core::Result;

/// A source of weights: a folder, or a gateway. Weights are fetched each time layers are loaded, and dropped afterwards.
pub trait WeightSource: fmt::Debug + Send + Sync {
    /// The ONNX file and its data files.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) with the reason.
    fn fetch(&self) -> Result<ModelFiles>;

    /// Whether the weights are on this host, so that fetching them needs no request.
    fn is_local(&self) -> bool {
        true
    }

    /// Gets the files to this host in parts, for a later [`fetch`](Self::fetch). `pause` is called after each part with the time that the part
    /// took, and returns whether to go on.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) with the reason.
    fn download(&self, _pause: &dyn Fn(Duration) -> bool) -> Result<()> {
        Ok(())
    }

    /// The runtime that runs them.
    ///
    /// # Errors
    /// [`ModelRuntime`](pushdown_core::ErrorKind::ModelRuntime) with the reason.
    fn runtime(&self) -> Result<Runtime>;
}

/// Waits until no other weights are being loaded in this process. Loading needs several times the memory of the weights,
/// so models load one after the other.
pub(super) fn lock_loading() -> MutexGuard<'static, ()> {
    static LOADING: Mutex<()> = Mutex::new(());
    LOADING.lock()
}
