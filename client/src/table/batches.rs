//! Assembles batches from blocks of rows as they arrive.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    TableBatch,
    compute::{HeldRows, RowBlock},
    read::ArrivedRows,
};
use crate::{
    budget::Charge,
    error::{Error, Result},
};

/// The read of a row group in flight.
pub(super) struct RowGroupTask {
    task: AbortOnDropHandle<Result<ArrivedRows>>,
    /// Position of the row group among those that are read.
    number: usize,
    charge: Charge,
}

impl RowGroupTask {
    pub(super) const fn new(
        task: AbortOnDropHandle<Result<ArrivedRows>>,
        number: usize,
        charge: Charge,
    ) -> Self {
        Self { task, number, charge }
    }

    /// Waits for the rows.
    pub(super) async fn finish(self) -> Result<HeldRows> {
        let failed = |error| Err(Error::internal("the task of a row group failed").with_source(error));
        let rows = self.task.await.unwrap_or_else(failed)?;
        Ok(HeldRows::new(rows, self.number, self.charge))
    }
}

/// Batches of `size` rows from consecutive blocks. `number` is that of the first batch.
pub(super) fn assemble(
    blocks: BoxStream<'static, Result<RowBlock>>,
    schema: SchemaRef,
    size: usize,
    number: usize,
) -> BoxStream<'static, Result<TableBatch>> {
    let assembler = BatchAssembler {
        blocks,
        ready: VecDeque::new(),
        schema,
        size,
        number,
    };
    stream::try_unfold(assembler, BatchAssembler::next).boxed()
}

/// Assembles batches from consecutive blocks.
struct BatchAssembler {
    blocks: BoxStream<'static, Result<RowBlock>>,
    ready: VecDeque<RowBlock>,
    schema: SchemaRef,
    size: usize,
    number: usize,
}

impl BatchAssembler {
    async fn next(mut self) -> Result<Option<(TableBatch, Self)>> {
        let rows = |ready: &VecDeque<RowBlock>| ready.iter().map(|block| block.ids.len()).sum::<usize>();
        while rows(&self.ready) < self.size
            && let Some(block) = self.blocks.try_next().await?
        {
            self.ready.push_back(block);
        }
        let (mut batches, mut ids) = (Vec::new(), Vec::new());
        while ids.len() < self.size
            && let Some(mut block) = self.ready.pop_front()
        {
            let (taken, taken_ids) = block.split_off_front(self.size - ids.len());
            batches.push(taken);
            ids.extend(taken_ids);
            if !block.ids.is_empty() {
                self.ready.push_front(block);
            }
        }
        if ids.is_empty() {
            return Ok(None);
        }
        let rows = concat_batches(&self.schema, &batches);
        let rows = rows.map_err(|error| Error::internal("cannot concatenate rows").with_source(error))?;
        let batch = TableBatch {
            number: self.number,
            rows,
            ids,
        };
        self.number += 1;
        Ok(Some((batch, self)))
    }
}
