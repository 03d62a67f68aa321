//! What a reader reads of an epoch, computed without threads.

use pushdown_client::{
    reader::{PushdownReaderBuilder, ReaderShare},
    table::RowsRead,
};
use pyo3::prelude::*;

use crate::{error::native, settings};

/// What a reader with some settings reads of an epoch.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Share(ReaderShare);

#[pymethods]
impl Share {
    /// Of an epoch of `total` samples, over all ranks.
    #[new]
    fn new(spec_json: &str, total: usize) -> PyResult<Self> {
        let builder = PushdownReaderBuilder::from(settings::spec(spec_json)?);
        let share = builder.share(total).map_err(|error| native(&error))?;
        Ok(Self(share))
    }

    /// Samples of the reader's rank, padding included.
    #[getter]
    fn samples(&self) -> usize {
        self.0.rank().sample_count()
    }

    /// Batches of the reader's rank; the last one may be short.
    #[getter]
    fn batches(&self) -> usize {
        self.0.rank().batch_count()
    }

    /// Samples that the tail policy drops and repeats, over all ranks.
    #[getter]
    fn tail_counts(&self) -> (usize, usize) {
        let counts = self.0.rank().tail_counts();
        (counts.dropped, counts.repeated)
    }

    /// Position in the order of the epoch after the first `batches` batches of the reader, the same on every rank. If the rank has several
    /// readers, it stays where the share begins.
    fn position_after(&self, batches: usize) -> usize {
        self.0.position_after(batches)
    }

    /// Whether no rank has a batch after the first `batches` batches of the reader.
    fn is_complete_after(&self, batches: usize) -> bool {
        self.0.is_complete_after(batches)
    }
}

/// What was read of an epoch's rows, as pairs of a world and the rows of each rank, after each rank of `world` has read more of them.
#[pyfunction]
pub(crate) fn rows_read_after(
    rows_read: Vec<(usize, u64)>,
    world: usize,
    rows_per_rank: u64,
) -> Vec<(usize, u64)> {
    let entry = |(world, rows_per_rank)| RowsRead { world, rows_per_rank };
    let mut entries: Vec<RowsRead> = rows_read.into_iter().map(entry).collect();
    entry((world, rows_per_rank)).append_to(&mut entries);
    let pairs = entries.into_iter().map(|read| (read.world, read.rows_per_rank));
    pairs.collect()
}
