//! Whether somebody still waits for a result.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// Ends long work early once nobody waits for its result.
///
/// A run checks it between steps; decoding or cropping a JPEG checks it for each row of blocks in each scan.
#[derive(Clone, Copy, Default)]
pub struct Cancellation<'a>(Option<&'a (dyn Fn() -> bool + Sync)>);

impl<'a> Cancellation<'a> {
    /// Work that always runs to its end.
    pub const NEVER: Self = Self(None);

    /// Work that ends once `is_cancelled` returns true. It is called often, and must neither block nor panic.
    pub const fn when(is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self(Some(is_cancelled))
    }

    /// Whether the work should end.
    pub fn is_cancelled(self) -> bool {
        self.0.is_some_and(|is_cancelled| is_cancelled())
    }

    /// Ends cancelled work.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if the work is cancelled; nobody waits for it.
    pub fn check(self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Self::error());
        }
        Ok(())
    }

    /// The error of cancelled work.
    pub fn error() -> Error {
        Error::new(
            ErrorKind::Internal,
            "cancelled: the caller no longer waits for the result",
        )
    }
}

impl fmt::Debug for Cancellation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Cancellation::when"
        } else {
            "Cancellation::NEVER"
        })
    }
}
