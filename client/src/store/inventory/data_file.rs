//! A data file that arrives from another task, and its check.

use std::io::{self, Read};

use bytes::{Buf as _, Bytes};
use md5::{Digest as _, Md5};
use tokio::sync::mpsc;

use super::{
    csv,
    fault::Fault,
    manifest::{DataFile, FileFormat},
    parquet,
    rows::InventoryRows,
};

/// The bytes of a data file, for a thread that may block. If the sender is dropped early, the check of the sum fails.
#[derive(Debug)]
pub(super) struct ArrivingFile {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
    md5: Md5,
}

impl ArrivingFile {
    pub(super) fn new(pieces: mpsc::Receiver<Bytes>) -> Self {
        Self {
            pieces,
            piece: Bytes::new(),
            md5: Md5::new(),
        }
    }

    /// Reads the file to its end, and adds its objects to `rows`.
    ///
    /// # Errors
    /// If the file is not the one of the manifest, or is invalid.
    pub(super) fn decode(
        mut self,
        format: FileFormat,
        file: &DataFile,
        rows: &mut InventoryRows,
    ) -> Result<(), Fault> {
        let decoded = match format {
            FileFormat::Csv(columns) => csv::read(&mut self, &columns, rows),
            FileFormat::Parquet => {
                let mut held = Vec::with_capacity(usize::try_from(file.size).unwrap_or_default());
                let read = self.read_to_end(&mut held);
                self.check(file)?;
                return match read {
                    Ok(_) => parquet::read(held.into(), rows),
                    Err(error) => Err(Fault::Damaged(error.to_string())),
                };
            }
        };
        // A damaged file often cannot be decoded. Its sum says why.
        self.check(file)?;
        decoded
    }

    /// Waits for the rest of the file, and compares its sum.
    fn check(&mut self, file: &DataFile) -> Result<(), Fault> {
        while self.next_piece() {}
        let found = hex::encode(self.md5.finalize_reset());
        if found.eq_ignore_ascii_case(&file.md5) {
            return Ok(());
        }
        Err(Fault::Checksum {
            expected: file.md5.clone(),
            found,
        })
    }

    /// Waits for the next piece. False at the end of the file.
    fn next_piece(&mut self) -> bool {
        let Some(piece) = self.pieces.blocking_recv() else {
            return false;
        };
        self.md5.update(&piece);
        self.piece = piece;
        true
    }
}

impl Read for ArrivingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && self.next_piece() {}
        let read = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..read]);
        Ok(read)
    }
}
