//! Runs the pipeline on a sample.

use std::sync::Arc;

use bytes::Bytes;
use pushdown::{Context, Sample, wire::RowError};

use super::{ShardSession, sample::StoredSample};
use crate::{batch::Row, cpu::Work, epoch::Charge, sample_name::member_draw_id, stats::add};

/// What a row takes of the budget beside its value, so that the budget bounds the number of rows as well.
pub(super) const ROW_BYTES: u64 = 1 << 10;

/// The batch of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchContext<'a> {
    pub(super) session: &'a Arc<ShardSession>,
    pub(super) number: usize,
    pub(super) epoch: u32,
    pub(super) charge: &'a Arc<Charge>,
}

/// A row whose steps run.
#[derive(Debug)]
pub(super) struct PendingRow {
    position: u64,
    index: usize,
    key: Arc<str>,
    member: Option<Arc<str>>,
    columns: Vec<Option<Bytes>>,
    value: PendingValue,
}

#[derive(Debug)]
enum PendingValue {
    Running(Work<Result<Sample, RowError>>),
    Done(Result<Sample, RowError>),
}

impl PendingRow {
    /// Starts the pipeline on a sample of the shard with this index.
    pub(super) fn start(batch: &BatchContext<'_>, position: u64, index: usize, sample: StoredSample) -> Self {
        let key: Arc<str> = batch.session.shards.key(index).into();
        let bytes = sample.bytes();
        let StoredSample {
            member,
            value,
            columns,
        } = sample;
        batch.charge.adjust(bytes.saturating_add(ROW_BYTES), 0);
        let value = match value {
            Ok(content) => batch.run(&key, member.as_deref().unwrap_or_default(), content),
            Err(error) => PendingValue::Done(Err(error)),
        };
        Self {
            position,
            index,
            key,
            member,
            columns,
            value,
        }
    }

    /// Waits for the value.
    pub(super) async fn finish(self) -> Row {
        let value = match self.value {
            PendingValue::Done(value) => value,
            PendingValue::Running(work) => work.await.unwrap_or_else(|error| {
                Err(RowError::new(
                    pushdown::ErrorKind::Internal.code(),
                    error.to_string(),
                ))
            }),
        };
        Row {
            position: self.position,
            index: self.index,
            key: self.key,
            member: self.member,
            is_padding: false,
            stage: 0,
            value,
            columns: self.columns,
        }
    }
}

impl BatchContext<'_> {
    /// Runs all steps on a content.
    fn run(&self, key: &str, member: &str, content: Bytes) -> PendingValue {
        let session = Arc::clone(self.session);
        let bytes = content.len() as u64;
        add(&session.counters.value_bytes, bytes);
        add(&session.counters.stored_bytes, bytes);
        let (epoch, charge) = (self.epoch, Arc::clone(self.charge));
        let id = member_draw_id(key, member);
        let work = self.session.cpu.run_for(self.number, move || {
            let context = Context {
                seed: session.seed,
                epoch: Some(epoch),
                limits: session.limits,
                ..Context::new(&id)
            };
            let steps = 0..session.pipeline.len();
            let value = session.pipeline.run(steps, Sample::Bytes(content), &context);
            let value = value.map_err(|error| RowError::from(&error));
            charge.adjust(value.as_ref().map_or(0, Sample::bytes), bytes);
            value
        });
        PendingValue::Running(work)
    }
}
