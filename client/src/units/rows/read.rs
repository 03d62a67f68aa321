//! Reads row groups up to the stage at which their rows are handed over.

use std::{ops::Range, sync::Arc};

use pushdown::{Pipeline, Step, step::TOO_MUCH_MEMORY};

use super::{
    RowId,
    arrived_rows::ArrivedRows,
    columns::Columns,
    fallback::Fallback,
    order::{RowGroupSlice, RowOrder},
    row_groups::SampleRows,
    source::{TableSource, is_refusal},
    splits::RowSplit,
};
use crate::{
    epoch::PacedBytes,
    error::{Error, ErrorKind, Result},
    monitor::Monitored,
    planning::{ExpansionGuard, Mode, Observations, PlanReport, RowPlanner, SplitBytes},
    stats::Counters,
    store::Store,
};

/// Reads the rows of a data set through a pipeline.
#[derive(Debug)]
pub(super) struct RowReader {
    pub(super) source: TableSource,
    /// The splits of the pipeline, from stored columns to rows after all steps.
    pub(super) splits: Vec<RowSplit>,
    pub(super) mode: Mode,
    /// The split that is used without a planner.
    pub(super) split: usize,
    pub(super) bytes: SplitBytes,
    /// Set if the split was chosen by estimated bytes.
    pub(super) expansion_guard: Option<ExpansionGuard>,
    /// Chooses the split of each row group, in place of `split`.
    pub(super) planner: Option<RowPlanner>,
    /// Set if rows that the gateway does not compute are computed on this host.
    pub(super) fallback: Option<Fallback>,
    pub(super) samples: SampleRows,
    /// Rows of the objects before each object.
    pub(super) first_rows: Vec<u64>,
    pub(super) columns: Columns,
}

impl Monitored for RowReader {
    fn store(&self) -> &Store {
        &self.source.store
    }

    fn counters(&self) -> &Counters {
        &self.source.counters
    }

    fn mode(&self) -> Mode {
        let is_fixed = self.planner.is_none() && self.split == 0;
        if is_fixed || self.is_local() {
            Mode::Plain
        } else {
            self.mode
        }
    }

    /// None once all rows are computed on this host because the gateway does not compute them, or computes rows that are too large.
    fn plan(&self) -> Option<PlanReport> {
        self.planner.as_ref().filter(|_| !self.is_local())?.plan_report()
    }

    fn observations(&self) -> Option<Observations> {
        self.planner.as_ref()?.observations()
    }
}

impl RowReader {
    /// The split at which a row group is read from now on, by its number in this epoch.
    pub(super) fn split(&self, number: usize) -> usize {
        if self.is_local() || self.is_gateway_lost() {
            return 0;
        }
        let planned = self.planner.as_ref().map(|planner| planner.split(number));
        planned.unwrap_or(self.split)
    }

    /// The split at which most row groups are read.
    pub(super) fn main_split(&self) -> usize {
        if self.is_local() {
            return 0;
        }
        let planned = self.planner.as_ref().map(RowPlanner::main_split);
        planned.unwrap_or(self.split)
    }

    /// Whether all rows are computed on this host from now on: those of the gateway are too large, or it does not compute them.
    fn is_local(&self) -> bool {
        let guard = self.expansion_guard.as_ref();
        let fallback = self.fallback.as_ref();
        guard.is_some_and(ExpansionGuard::is_exceeded) || fallback.is_some_and(Fallback::is_local)
    }

    /// Whether this host can do without the gateway.
    fn is_gateway_dispensable(&self) -> bool {
        self.fallback.is_some() && self.source.store.is_gateway_dispensable(self.pipeline().steps())
    }

    /// Whether row groups that begin now are computed on this host, since the gateway does not serve.
    fn is_gateway_lost(&self) -> bool {
        self.fallback.is_some() && self.source.store.is_gateway_lost(self.pipeline().steps())
    }

    /// The whole pipeline.
    fn pipeline(&self) -> &Pipeline {
        &self.splits[self.split].pipeline
    }

    /// The number of a row in the data set: the rows of all objects in their order.
    pub(super) fn index(&self, id: RowId) -> usize {
        let first = self.first_rows.get(id.object).copied().unwrap_or_default();
        usize::try_from(first.saturating_add(id.row)).unwrap_or(usize::MAX)
    }

    /// Expected bytes of the rows of a row group on arrival.
    pub(super) fn expected_bytes(&self, group: usize, split: usize) -> u64 {
        let row_bytes = self.bytes.row_bytes.get(split).copied().flatten();
        let row_bytes = row_bytes.unwrap_or(self.bytes.read_row_bytes);
        self.samples.count(group).saturating_mul(row_bytes)
    }

    /// Reads the row group of a slice at a split, and returns the rows of the slice. Reads stored columns if the gateway refuses to
    /// compute them, lacks memory for one of them or does not answer, and the reader may choose. `paced` lets the next read begin once enough has arrived.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`](crate::ErrorKind) for an object replaced since its footer was read; errors of reading it.
    pub(super) async fn read(
        &self,
        slice: &RowGroupSlice,
        split: usize,
        order: RowOrder,
        epoch: u32,
        paced: PacedBytes,
    ) -> Result<ArrivedRows> {
        let read = self
            .read_at(slice, split, order, epoch, Some(Arc::new(paced)))
            .await;
        let Some(fallback) = self.fallback.as_ref().filter(|_| split > 0) else {
            return read.map_err(|error| self.gateway_error(error));
        };
        let is_repeated = match &read {
            // The next row group goes there, if it serves.
            Err(error) if self.is_lost(error) => true,
            Err(error) if is_refusal(error) => {
                if fallback.observe_refusal() {
                    tracing::warn!(%error, "falling back to plain reading: all steps run on this host");
                }
                true
            }
            Err(_) => return read.map_err(|error| self.gateway_error(error)),
            Ok(rows) => {
                let lacked_memory = self.has_lacked_memory(rows);
                fallback.observe_group(lacked_memory);
                lacked_memory
            }
        };
        if !is_repeated {
            return read;
        }
        // The budget counts the rows of only one of both.
        drop(read);
        self.read_at(slice, 0, order, epoch, None).await
    }

    /// Whether an error is that of a gateway that did not answer and that this host can do without.
    fn is_lost(&self, error: &Error) -> bool {
        let has_no_time = error.kind() == ErrorKind::Unavailable;
        error.is_retryable()
            && self.is_gateway_dispensable()
            && !(has_no_time && self.source.store.gateway_serves())
    }

    /// An error of reading rows. It names the model for which this host depends on the gateway, if there is one.
    fn gateway_error(&self, error: Error) -> Error {
        match self.mode {
            Mode::Auto => self
                .source
                .store
                .name_missing_model(error, self.pipeline().steps()),
            Mode::Pushdown | Mode::Plain => error,
        }
    }

    /// Whether the gateway had too little memory for a value.
    fn has_lacked_memory(&self, rows: &ArrivedRows) -> bool {
        let split = &self.splits[rows.split];
        let steps = split.pipeline.steps()[..split.steps].iter();
        steps
            .filter_map(Step::inner_steps)
            .any(|inner| rows.has_error(inner.column, TOO_MUCH_MEMORY))
    }

    async fn read_at(
        &self,
        slice: &RowGroupSlice,
        split: usize,
        order: RowOrder,
        epoch: u32,
        paced: Option<Arc<PacedBytes>>,
    ) -> Result<ArrivedRows> {
        let group = &self.samples.groups()[slice.group];
        let RowSplit { pipeline, steps, .. } = &self.splits[split];
        let over = over(pipeline, group.rows())?;
        let route = self.source.route(group.object()).at_row(group.rows().start);
        let (table, cost) = self
            .source
            .rows(
                group.object(),
                &over,
                *steps,
                epoch,
                paced,
                route.dispensable_if(self.is_gateway_dispensable()),
            )
            .await?;
        if let Some(planner) = &self.planner {
            planner.observe_read(split, &table, &cost);
        }
        if let Some(guard) = self.expansion_guard.as_ref().filter(|_| *steps > 0) {
            let rows = group.rows();
            guard.observe(rows.end.saturating_sub(rows.start), table.bytes());
        }
        let expected = group.count();
        if table.rows() != expected {
            return Err(self.source.replaced(
                group.object(),
                &format!("found {} rows of a row group, expected {expected}", table.rows()),
            ));
        }
        // A row group can have a million rows, whose shuffle takes milliseconds.
        let (slice, shuffled) = (slice.clone(), group.clone());
        let shuffle = move || {
            let taken = order.rows_of(&slice, expected);
            (shuffled.ids(&taken), taken)
        };
        let (ids, taken) = self.source.cpu.run(shuffle).await?;
        Ok(ArrivedRows {
            object: group.object(),
            split,
            ids,
            table,
            taken,
        })
    }
}

/// The pipeline over a range of rows of an object.
pub(super) fn over(pipeline: &Pipeline, rows: Range<u64>) -> Result<Pipeline> {
    pipeline
        .with_rows(rows)
        .ok_or_else(|| Error::internal("expected a pipeline that begins with `select`"))
}
