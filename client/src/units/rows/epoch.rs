//! Reads an epoch of rows: its units are row groups, in which rows are computed a few at a time, and from which batches are assembled.

use std::{collections::VecDeque, future, iter::once, sync::Arc};

use arrow_schema::SchemaRef;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};

use super::{
    TableBatch, TableReader,
    arrived_rows::bytes_beside_values,
    batches::BatchAssembler,
    compute::HeldRows,
    order::{RowGroupSlice, RowOrder},
    read::RowReader,
};
use crate::{
    epoch::{Charge, Deliveries, PaceClass, PacedRead, ReadPlan, Units, read_units},
    error::Result,
    stats::add,
};

/// The row groups of an epoch.
#[derive(Debug)]
struct EpochRowGroups {
    rows: Arc<RowReader>,
    slices: Vec<RowGroupSlice>,
    order: RowOrder,
    epoch: u32,
    /// The most row groups in flight.
    requests: usize,
}

/// A row group before it is read.
#[derive(Debug)]
struct RowGroupRequest {
    number: usize,
    split: usize,
}

impl Units for EpochRowGroups {
    type Request = RowGroupRequest;
    type Arrived = HeldRows;

    fn numbers(&self) -> impl Iterator<Item = usize> + Send {
        0..self.slices.len()
    }

    fn request(&self, number: usize) -> RowGroupRequest {
        let split = self.rows.split(number);
        RowGroupRequest { number, split }
    }

    fn pace_class(&self, request: &RowGroupRequest) -> PaceClass {
        if request.split == 0 {
            PaceClass::Plain
        } else {
            PaceClass::Pushed
        }
    }

    fn expected_bytes(&self, request: &RowGroupRequest) -> u64 {
        let slice = &self.slices[request.number];
        let values = self.rows.expected_bytes(slice.group, request.split);
        values.saturating_add(bytes_beside_values(slice.count()))
    }

    fn read(
        self: Arc<Self>,
        request: RowGroupRequest,
        paced: PacedRead,
        charge: Arc<Charge>,
    ) -> impl Future<Output = Result<HeldRows>> + Send + 'static {
        let group = self.slices[request.number].group;
        let paced = paced.of_bytes(self.rows.expected_bytes(group, request.split), self.requests);
        let RowGroupRequest { number, split } = request;
        async move {
            let (slice, order, epoch) = (&self.slices[number], self.order, self.epoch);
            let rows = self.rows.read(slice, split, order, epoch, paced).await?;
            Ok(HeldRows::new(rows, number, charge))
        }
    }
}

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
        let units = EpochRowGroups {
            rows: Arc::clone(&self.rows),
            slices: order.slices(&self.rows.samples, &positions),
            order,
            epoch,
            requests,
        };
        let arrived: Deliveries<HeldRows> = read_units(&self.runtime, &self.plan, future::ready(Ok(units)));
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
