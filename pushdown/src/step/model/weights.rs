//! Where the weights of a network come from.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    iter,
    path::Path,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};

use super::Runtime;
use crate::Result;

/// Where weights come from: a file, or a gateway. They are asked for whenever layers are made ready to run, and nobody
/// holds them for longer than that takes.
pub trait Weights: fmt::Debug + Send + Sync {
    /// The ONNX file.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) with the reason.
    fn fetch(&self) -> Result<Arc<[u8]>>;

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

/// Reads a file into memory that can be shared. A vector would have to be copied there.
///
/// # Errors
/// When it cannot be read, or gets shorter meanwhile.
pub fn read_file(path: &Path) -> io::Result<Arc<[u8]>> {
    let mut file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes: Arc<[u8]> = iter::repeat_n(0, length).collect();
    // Nobody else has them yet.
    if let Some(bytes) = Arc::get_mut(&mut bytes) {
        file.read_exact(bytes)?;
    }
    Ok(bytes)
}
