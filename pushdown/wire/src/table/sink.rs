//! An output buffer of writers that is emptied between record batches.

use std::{
    io::{self, Write},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;

/// A buffer shared with a writer. Clones share the buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// Takes the bytes written since the last call.
    pub(super) fn take(&self) -> Vec<Bytes> {
        let bytes = std::mem::take(&mut *self.0.lock());
        if bytes.is_empty() {
            Vec::new()
        } else {
            vec![bytes.into()]
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
