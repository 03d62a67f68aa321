//! Batches, made of parts of row groups as they arrive.

use std::collections::VecDeque;

use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{TableBatch, read::Part};
use crate::{
    budget::Charge,
    error::{Error, Result},
};

/// A row group on its way. It counts against the budget until a batch is made of it: a batch may take several.
pub(super) struct Started {
    task: AbortOnDropHandle<Result<Part>>,
    charge: Charge,
}

impl Started {
    pub(super) const fn new(task: AbortOnDropHandle<Result<Part>>, charge: Charge) -> Self {
        Self { task, charge }
    }

    /// The rows, once they are there.
    pub(super) async fn part(self) -> Result<Part> {
        let failed = |error| Err(Error::internal("the task of a row group failed").with_source(error));
        let part = self.task.await.unwrap_or_else(failed);
        drop(self.charge);
        part
    }
}

/// Batches of `size` rows made of parts that follow each other, the first one with this number.
pub(super) fn of(
    parts: BoxStream<'static, Result<Part>>,
    schema: SchemaRef,
    size: usize,
    number: usize,
) -> BoxStream<'static, Result<TableBatch>> {
    let assembling = Assembling {
        parts,
        ready: VecDeque::new(),
        schema,
        size,
        number,
    };
    stream::try_unfold(assembling, Assembling::next).boxed()
}

/// Batches in the making: parts of row groups, one behind the other.
struct Assembling {
    parts: BoxStream<'static, Result<Part>>,
    ready: VecDeque<Part>,
    schema: SchemaRef,
    size: usize,
    number: usize,
}

impl Assembling {
    async fn next(mut self) -> Result<Option<(TableBatch, Self)>> {
        let rows = |ready: &VecDeque<Part>| ready.iter().map(|part| part.ids.len()).sum::<usize>();
        while rows(&self.ready) < self.size
            && let Some(part) = self.parts.try_next().await?
        {
            self.ready.push_back(part);
        }
        let (mut batches, mut ids) = (Vec::new(), Vec::new());
        while ids.len() < self.size
            && let Some(mut part) = self.ready.pop_front()
        {
            let (taken, taken_ids) = part.split_off_front(self.size - ids.len());
            batches.push(taken);
            ids.extend(taken_ids);
            if !part.ids.is_empty() {
                self.ready.push_front(part);
            }
        }
        if ids.is_empty() {
            return Ok(None);
        }
        let rows = concat_batches(&self.schema, &batches);
        let rows = rows.map_err(|error| Error::internal("rows do not fit together").with_source(error))?;
        let batch = TableBatch {
            number: self.number,
            rows,
            ids,
        };
        self.number += 1;
        Ok(Some((batch, self)))
    }
}
