//! The rows of a scan, encoded on the CPU pool.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use pushdown::{
    Scan,
    wire::{TableEncoder, TableForm},
};

use crate::{compute::CooperativeTask, error::Result};

/// The encoded rows of a scan.
#[derive(Debug)]
pub(super) struct EncodedRows {
    task: CooperativeTask,
    /// `None` after the last row.
    next: Option<(Scan, TableEncoder)>,
}

impl EncodedRows {
    /// The rows of a scan, encoded in `form`.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::error::ErrorKind) for columns that the form cannot encode.
    pub(super) fn new(scan: Scan, task: CooperativeTask, form: TableForm) -> Result<Self> {
        let encoder = TableEncoder::new(form, scan.schema())?;
        Ok(Self {
            task,
            next: Some((scan, encoder)),
        })
    }

    /// The next pieces, of one or more record batches; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        let Some((mut scan, mut encoder)) = self.next.take() else {
            return Ok(None);
        };
        let encoding = async move {
            loop {
                let Some(batch) = scan.next().await.transpose()? else {
                    return Ok((encoder.finish()?, None));
                };
                let pieces = encoder.write(&batch)?;
                if !pieces.is_empty() {
                    return Ok((pieces, Some((scan, encoder))));
                }
            }
        };
        let encoded: pushdown::Result<_> = self.task.run(encoding).await?;
        let (pieces, next) = encoded?;
        self.next = next;
        Ok(Some(pieces))
    }

    /// Time of the rows so far on the CPU pool.
    pub(super) const fn compute_time(&self) -> Duration {
        self.task.compute_time()
    }
}
