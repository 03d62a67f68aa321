//! Reads an epoch: row groups, in which rows are computed a few at a time, and from which batches are assembled.

use std::{collections::VecDeque, iter::once, sync::Arc};

use arrow_schema::SchemaRef;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    TableBatch, TableReader,
    batches::{BatchAssembler, RowGroupTask},
    order::{RowGroupSlice, RowOrder},
};
use crate::{budget::Budget, error::Result, planning::Pacer, reader::ReadPlan, stats::add};

impl TableReader {
    /// The batches of the epoch from the reader's first one on.
    pub(super) fn read_epoch(&self) -> BoxStream<'static, Result<TableBatch>> {
        let ReadPlan {
            batch_size,
            shuffle_seed,
            epoch,
            start: first,
            prefetch_bytes,
            requests,
            ..
        } = self.plan;
        let order = RowOrder::new(shuffle_seed, epoch);
        let mut stretch = self.left.stretch(&self.plan);
        let passed = (first as u64).saturating_mul(batch_size as u64);
        let skipped = stretch.start.saturating_add(passed).min(stretch.end);
        add(&self.rows.source.counters.skipped, skipped - stretch.start);
        stretch.start = skipped;
        let positions = self.left.positions(once(stretch));
        let slices = order.slices(&self.rows.samples, &positions);
        let budget = Budget::new(prefetch_bytes);
        let pacer = Arc::new(Pacer::default());
        let rows = Arc::clone(&self.rows);
        let start = move |(number, slice): (usize, RowGroupSlice)| {
            let (budget, pacer, rows) = (Arc::clone(&budget), Arc::clone(&pacer), Arc::clone(&rows));
            async move {
                let expected_bytes = |split| rows.expected_bytes(slice.group, split);
                pacer.wait_for_next().await;
                // Uses the plan that is in force after the wait.
                let split = rows.split(number);
                let paced = pacer.begin().of_bytes(expected_bytes(split), requests);
                let charge = budget.admit(number, expected_bytes(split)).await;
                let reading = async move { rows.read(&slice, split, order, epoch, paced).await };
                RowGroupTask::new(AbortOnDropHandle::new(tokio::spawn(reading)), number, charge)
            }
        };
        let started = stream::iter(slices.into_iter().enumerate()).then(start);
        let arrived = started.map(RowGroupTask::finish).buffered(requests);
        let rows = Arc::clone(&self.rows);
        let chunks = arrived.flat_map(move |arrived| {
            let (chunks, error) = match arrived {
                Ok(held) => (Some(rows.chunks(held)), None),
                Err(error) => (None, Some(Err(error))),
            };
            stream::iter(chunks.into_iter().flatten().map(Ok).chain(error))
        });
        let rows = Arc::clone(&self.rows);
        let in_flight = rows.chunks_in_flight(prefetch_bytes);
        let computed = chunks.map(move |chunk| {
            let rows = Arc::clone(&rows);
            async move { rows.compute(chunk?, epoch).await }
        });
        let blocks = computed.buffered(in_flight).boxed();
        let assembler = BatchAssembler {
            blocks,
            ready: VecDeque::new(),
            positions: positions.into_iter().flatten(),
            schema: SchemaRef::clone(&self.rows.columns.schema),
            size: batch_size,
            number: first,
        };
        assembler.assemble()
    }
}
