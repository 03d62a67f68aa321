//! The answer of a batch while it is sent: groups of rows, as frames of an Arrow stream.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use pushdown::wire::{BatchWriter, Compression, OnError, Row};
use tokio::time::{Instant, timeout_at};

use super::{Batch, rows::ReadyRow};
use crate::{
    body::Body,
    compute::{CpuPool, Memory, QueuePosition},
    error::{Error, ErrorKind, Result},
    routes::{http::stream_body, value::ValueMemory},
    server::StallGuard,
};

/// Ready rows are sent together up to this many bytes of values and further columns, because each write wakes both ends.
pub(super) const MAX_GROUP_BYTES: u64 = 512 << 10;
/// Maximum number of rows that are sent together.
const MAX_GROUP_ROWS: usize = 256;
/// Longest time that a row waits for further rows.
const MAX_GROUP_WAIT: Duration = Duration::from_millis(5);

/// An answer that is being sent.
pub(super) struct BatchAnswer {
    rows: Pin<Box<dyn Stream<Item = ReadyRow> + Send>>,
    /// `None` after the end marker was written.
    writer: Option<BatchWriter>,
    /// The pool that compresses rows, and the request's position in its queue. `None` if rows are not compressed.
    compression: Option<(CpuPool, QueuePosition)>,
    on_error: OnError,
    waits_for_row: bool,
    memory: Memory,
    /// Memory of the last sent rows: hyper may still buffer them until it polls for more.
    sent_memory: Vec<ValueMemory>,
    _guard: Option<StallGuard>,
}

impl BatchAnswer {
    /// The answer with `rows`, whose record batches `writer` writes.
    pub(super) fn new(
        batch: &Batch,
        writer: BatchWriter,
        rows: impl Stream<Item = ReadyRow> + Send + 'static,
        position: QueuePosition,
        guard: Option<StallGuard>,
    ) -> Self {
        let is_compressed = batch.request.compression != Compression::None;
        Self {
            rows: rows.boxed(),
            writer: Some(writer),
            // Compression takes too long for the I/O threads.
            compression: is_compressed.then(|| (batch.services.cpu.clone(), position)),
            on_error: batch.request.on_error,
            waits_for_row: batch.request.on_error == OnError::Fail || batch.request.cache.is_some(),
            memory: batch.services.memory.clone(),
            sent_memory: Vec::new(),
            _guard: guard,
        }
    }

    /// The body that starts with `head`. With `on_error: fail` it waits for the first rows, whose error still becomes the
    /// status of the answer; with hints for the cache, whose state is sent only to callers that the store has authorized.
    pub(super) async fn into_body(mut self, head: Bytes) -> Result<Body> {
        let first = if self.waits_for_row {
            self.frames().await?
        } else {
            Some(Vec::new())
        };
        let mut frames = vec![head];
        let ended = first.is_none();
        frames.extend(first.into_iter().flatten());
        let rest = stream::try_unfold((!ended).then_some(self), |answer| async {
            let Some(mut answer) = answer else {
                return Ok(None);
            };
            let frames = answer.frames().await?;
            Ok(frames.map(|frames| (frames, Some(answer))))
        });
        Ok(stream_body(frames, rest))
    }

    /// The frames of the next record batches; `None` after the end marker.
    async fn frames(&mut self) -> Result<Option<Vec<Bytes>>> {
        let Some(first) = self.rows.next().await else {
            return self
                .writer
                .take()
                .map(|writer| Ok(vec![writer.finish()?]))
                .transpose();
        };
        let mut group = RowsToSend::default();
        group.push(first);
        let deadline = Instant::now() + MAX_GROUP_WAIT;
        while group.bytes < MAX_GROUP_BYTES && group.rows.len() < MAX_GROUP_ROWS {
            match timeout_at(deadline, self.rows.next()).await {
                Ok(Some(row)) => group.push(row),
                Ok(None) | Err(_) => break,
            }
        }
        if self.on_error == OnError::Fail
            && let Some(error) = group.rows.iter().find_map(|row| row.value.as_ref().err())
        {
            let message = format!("a sample failed (the request has on_error=fail): {error}");
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        }
        let Some(mut writer) = self.writer.take() else {
            return Ok(None);
        };
        let may_copy = self.hold_memory(group.memory, |bytes| writer.is_copied(bytes));
        let rows = group.rows;
        let write = move || {
            let frames = if may_copy {
                writer.rows(rows)
            } else {
                writer.rows_apart(rows)
            };
            (frames, writer)
        };
        let (frames, writer) = match &self.compression {
            Some((cpu, position)) => cpu.run(&position.renewed(), write).await?,
            None => write(),
        };
        self.writer = Some(writer);
        Ok(Some(frames?))
    }
}

impl BatchAnswer {
    /// Holds the memory of values that are sent next. Returns whether those that `is_copied` says may be copied: the memory of a value
    /// that other requests can have, too, does not cover a copy.
    fn hold_memory(&mut self, values: Vec<(u64, ValueMemory)>, is_copied: impl Fn(u64) -> bool) -> bool {
        let needs_more = |bytes, memory: &ValueMemory| memory.is_shared() && is_copied(bytes);
        let copies = values.iter().filter(|(bytes, memory)| needs_more(*bytes, memory));
        let copied_bytes: u64 = copies.map(|(bytes, _)| bytes).sum();
        if copied_bytes == 0 {
            self.sent_memory = values.into_iter().map(|(_, memory)| memory).collect();
            return true;
        }
        if let Some(permit) = self.memory.try_acquire(copied_bytes) {
            self.sent_memory = values.into_iter().map(|(_, memory)| memory).collect();
            self.sent_memory.push(ValueMemory::Own(permit));
            return true;
        }
        // Without free memory, a value that no other request has is no longer shared.
        let mut may_copy = true;
        self.sent_memory.clear();
        for (bytes, memory) in values {
            let memory = if needs_more(bytes, &memory) {
                memory.into_own()
            } else {
                memory
            };
            may_copy &= !needs_more(bytes, &memory);
            self.sent_memory.push(memory);
        }
        may_copy
    }
}

/// Rows that are sent together.
#[derive(Default)]
struct RowsToSend {
    rows: Vec<Row>,
    /// The size and the memory of each value.
    memory: Vec<(u64, ValueMemory)>,
    bytes: u64,
}

impl RowsToSend {
    fn push(&mut self, ready: ReadyRow) {
        let value_bytes = ready.row.value.as_ref().map_or(0, pushdown::Sample::bytes);
        self.bytes += value_bytes;
        let columns = ready.row.columns.iter().flatten();
        self.bytes += columns.map(|content| content.len() as u64).sum::<u64>();
        self.rows.push(ready.row);
        self.memory
            .extend(ready.memory.map(|memory| (value_bytes, memory)));
    }
}
