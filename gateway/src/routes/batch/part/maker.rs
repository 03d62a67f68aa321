//! Makes a part: adds the values of its samples in their order, and has the store keep it.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use md5::{Digest as _, Md5};
use pushdown::{
    part::{PartNote, PartRow, PartSpec, PartWriter},
    wire::{PartAction, PartError, RefusedPart, RowError, WrittenPart, is_changed_object, is_content_error},
};
use tokio::sync::watch;

use super::{
    super::{
        Batch,
        rows::{ReadyRow, ready_rows},
    },
    max_part_bytes,
    upload::PartUpload,
};
use crate::{
    compute::{Permit, QueuePosition},
    error::{Error, ErrorKind, Result},
    s3::errors::ErrorAnswer,
};

/// Most samples whose changes are reported.
const MAX_CHANGED: usize = 1000;

/// Makes a part.
pub(super) struct PartMaker {
    batch: Arc<Batch>,
    position: QueuePosition,
    writer: PartWriter,
    names: Vec<String>,
    max_bytes: u64,
    /// Bytes of memory that it takes, its buffer and what encodes it.
    memory_bytes: u64,
    /// The memory of the part, once the store has authorized a sample.
    memory: Option<Permit>,
    /// CPU time of the steps in seconds.
    seconds: f64,
    samples: u32,
    /// Samples whose content no step can process.
    errors: Vec<PartError>,
    /// Samples that are no longer those of the caller's list.
    changed: Vec<PartError>,
}

impl PartMaker {
    /// A maker of the part of a batch.
    ///
    /// # Errors
    /// [`ErrorKind::EntityTooLarge`] for values that take too much memory to encode.
    pub(super) fn new(batch: Arc<Batch>, spec: PartSpec) -> Result<Self> {
        let memory = &batch.services.memory;
        let (max_bytes, total_bytes) = (max_part_bytes(memory), memory.total_bytes());
        let memory_bytes = 2 * max_bytes + spec.encoding_bytes();
        if memory_bytes > total_bytes / 3 {
            let message = format!(
                "the values are too large for a part in this format: expected at most {} bytes of memory to encode them, a third of the gateway's \
                 memory budget, found {memory_bytes}",
                total_bytes / 3
            );
            return Err(Error::new(ErrorKind::EntityTooLarge, message));
        }
        let names = (0..batch.request.samples.len()).map(|index| batch.part_name(index));
        let names: Vec<String> = names.collect::<Result<_>>()?;
        Ok(Self {
            position: batch.tenant.position_now(),
            writer: PartWriter::new(spec, names.iter().map(String::as_str))?,
            names,
            max_bytes,
            memory_bytes,
            batch,
            memory: None,
            seconds: 0.0,
            samples: 0,
            errors: Vec::new(),
            changed: Vec::new(),
        })
    }

    /// Makes the part, and writes it if there is a target. Counts samples in `progress`.
    pub(super) async fn make(
        mut self,
        upload: Option<PartUpload>,
        progress: &watch::Sender<u32>,
    ) -> Result<WrittenPart, RefusedPart> {
        let count = self.batch.request.samples.len();
        let (mut next, mut done) = (0, 0);
        while next < count {
            // One at a time until the part has its memory: who waits for more must not have that of many values (deadlock).
            let end = if self.memory.is_none() && self.changed.is_empty() {
                next + 1
            } else {
                count
            };
            let rows = ready_rows(Arc::clone(&self.batch), self.position.clone(), next..end);
            let mut rows = Box::pin(rows.ready_chunks(self.batch.services.limits.batch_in_flight.max(1)));
            while let Some(group) = rows.next().await {
                done += u32::try_from(group.len()).unwrap_or(u32::MAX);
                self = self.add(group).await?;
                progress.send_replace(done);
            }
            next = end;
        }
        if let Some(first) = self.changed.first() {
            return Err(RefusedPart {
                action: PartAction::Read,
                code: first.code.clone(),
                message: first.message.clone(),
                errors: self.changed,
            });
        }
        let (writer, cpu) = (self.writer, self.batch.services.cpu.clone());
        let notes = PartNote::of_errors(&self.errors, &self.names);
        let finish = move || {
            let content = Bytes::from(writer.finish(&notes)?);
            let md5 = <[u8; 16]>::from(Md5::digest(&content));
            Ok::<_, pushdown::Error>((content, md5))
        };
        let finished = cpu.run(&self.position.renewed(), finish).await;
        let (content, md5) = finished
            .and_then(|finished| Ok(finished?))
            .map_err(|error| refused(PartAction::Make, &error))?;
        check_size(content.len() as u64, self.max_bytes)?;
        let bytes = content.len() as u64;
        if let Some(upload) = upload {
            upload.write(&self.batch.services, content, &md5).await?;
        }
        Ok(WrittenPart {
            bytes,
            md5: hex::encode(md5),
            samples: self.samples,
            seconds: self.seconds,
            errors: self.errors,
        })
    }

    /// Adds samples that follow those added so far.
    async fn add(mut self, group: Vec<ReadyRow>) -> Result<Self, RefusedPart> {
        let mut rows = Vec::with_capacity(group.len());
        for ReadyRow { row, memory } in group {
            match row.value {
                Ok(value) => {
                    self.seconds += f64::from(row.seconds);
                    self.hold_memory().await?;
                    rows.push((row.row, value, row.columns, memory));
                }
                Err(error) => self.note_failure(row.row, error)?,
            }
        }
        // What is refused in the end takes no memory.
        if rows.is_empty() || !self.changed.is_empty() {
            return Ok(self);
        }
        let (batch, mut writer) = (Arc::clone(&self.batch), self.writer);
        let added = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let add = move || {
            for (row, value, columns, memory) in rows {
                let index = usize::try_from(row).unwrap_or(usize::MAX);
                let label = batch
                    .request
                    .part
                    .as_ref()
                    .and_then(|part| part.labels.get(index));
                writer.push(&PartRow {
                    index,
                    label,
                    columns,
                    value: &value,
                })?;
                drop((value, memory));
            }
            Ok::<_, pushdown::Error>(writer)
        };
        let cpu = self.batch.services.cpu.clone();
        let added_to = cpu.run(&self.position.renewed(), add).await;
        self.writer = added_to
            .and_then(|writer| Ok(writer?))
            .map_err(|error| refused(PartAction::Make, &error))?;
        self.samples += added;
        check_size(self.writer.bytes(), self.max_bytes)?;
        Ok(self)
    }

    /// Holds the memory of the part: only a caller whom the store has authorized gets it.
    async fn hold_memory(&mut self) -> Result<(), RefusedPart> {
        if self.memory.is_none() {
            let memory = &self.batch.services.memory;
            let permit = memory.acquire(&self.batch.tenant, self.memory_bytes).await;
            self.memory = Some(permit.map_err(|error| refused(PartAction::Make, &error))?);
        }
        Ok(())
    }

    /// Notes a sample without a value.
    ///
    /// # Errors
    /// If the part cannot be made then.
    fn note_failure(&mut self, row: u32, error: RowError) -> Result<(), RefusedPart> {
        let RowError { code, message } = error;
        let error = PartError { row, code, message };
        if is_content_error(&error.code) {
            self.errors.push(error);
        } else if is_changed_object(&error.code) {
            if self.changed.len() < MAX_CHANGED {
                self.changed.push(error);
            }
        } else {
            return Err(RefusedPart {
                action: PartAction::Read,
                code: error.code.clone(),
                message: error.message.clone(),
                errors: vec![error],
            });
        }
        Ok(())
    }
}

fn check_size(bytes: u64, max_bytes: u64) -> Result<(), RefusedPart> {
    if bytes <= max_bytes {
        return Ok(());
    }
    let message = format!(
        "the part is too large: expected at most {max_bytes} bytes, an eighth of the gateway's memory budget, found {bytes}; make parts of \
         fewer samples"
    );
    Err(refused(
        PartAction::Make,
        &Error::new(ErrorKind::EntityTooLarge, message),
    ))
}

/// Why there is no part.
pub(super) fn refused(action: PartAction, error: &Error) -> RefusedPart {
    let answer = ErrorAnswer::from_error(error);
    RefusedPart {
        action,
        code: answer.code.to_owned(),
        message: answer.message.into_owned(),
        errors: Vec::new(),
    }
}
