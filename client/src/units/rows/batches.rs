//! Assembles batches from blocks of rows as they arrive.

use std::{collections::VecDeque, iter::Flatten, ops::Range, vec};

use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};

use super::{TableBatch, compute::RowBlock};
use crate::error::{Error, Result};

/// Assembles batches from consecutive blocks.
pub(super) struct BatchAssembler {
    pub(super) blocks: BoxStream<'static, Result<RowBlock>>,
    pub(super) ready: VecDeque<RowBlock>,
    /// Positions of the rows of all blocks in the order of the epoch.
    pub(super) positions: Flatten<vec::IntoIter<Range<u64>>>,
    pub(super) schema: SchemaRef,
    /// Rows of a batch.
    pub(super) size: usize,
    /// Number of the next batch.
    pub(super) number: usize,
}

impl BatchAssembler {
    /// The batches.
    pub(super) fn assemble(self) -> BoxStream<'static, Result<TableBatch>> {
        stream::try_unfold(self, Self::next).boxed()
    }

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
        let positions = self.positions.by_ref().take(ids.len()).collect();
        let batch = TableBatch {
            number: self.number,
            rows,
            ids,
            positions,
        };
        self.number += 1;
        Ok(Some((batch, self)))
    }
}
