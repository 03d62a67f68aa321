//! The rows of tables, from the gateway or this host: the one that is expected to be faster. The size of rows is an estimate,
//! so rows from the gateway end once they have much more bytes than the objects. They also end if a gateway beside the store does not answer.

use std::{sync::Arc, vec};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt as _;
use pushdown::{
    Pipeline, Scan,
    wire::{Compression, Split, TableDecoder, TableForm},
};

use super::{Placement, StoredTable, StoredTables, TablesScan, ValueRequest, ValueStream};
use crate::error::{Error, ErrorKind, Result};

/// The rows that a pipeline computes from one table or several.
#[derive(Debug)]
pub struct TableRows {
    schema: SchemaRef,
    local: LocalRows,
    remote: Option<RemoteRows>,
    /// Rows to skip when local reading begins: those already delivered by the gateway.
    rows_to_skip: u64,
}

/// Rows computed on this host.
#[derive(Debug)]
enum LocalRows {
    Single(Box<SingleTable>),
    Multi(Box<TablesScan>),
}

/// Rows of one table.
#[derive(Debug)]
struct SingleTable {
    table: StoredTable,
    pipeline: Pipeline,
    seed: Option<u64>,
    epoch: u32,
    /// `None` until rows are read locally.
    scan: Option<Scan>,
}

/// Rows received from the gateway.
#[derive(Debug)]
struct RemoteRows {
    value: ValueStream,
    /// Whether this host can compute the rows that the gateway does not deliver.
    is_dispensable: bool,
    /// `None` after the last byte.
    decoder: Option<TableDecoder>,
    decoded: vec::IntoIter<RecordBatch>,
    /// Bytes until the limit.
    bytes_left: u64,
    rows_delivered: u64,
}

/// The next item from the gateway.
enum RemoteItem {
    Rows(RecordBatch),
    End,
    /// The answer exceeds its limit in bytes.
    LimitExceeded,
    /// The rest does not arrive.
    Lost(Error),
}

impl StoredTable {
    /// The rows that a pipeline computes from the object, at the gateway or on this host: where it is expected to be
    /// faster. At most the object's bytes and a sixteenth are received, apart from its footer and the heads of answers.
    ///
    /// # Errors
    /// As [`scan`](Self::scan) and [`Store::stream_value`](super::Store::stream_value).
    pub async fn rows(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<TableRows> {
        let scan = self.scan(pipeline, seed, epoch).await?;
        let (schema, all) = (SchemaRef::clone(scan.schema()), *scan.estimate());
        let (scan, remote) = match self.choose_placement(&all, scan).await? {
            Placement::Local(scan) => (Some(scan), None),
            Placement::Remote { max_bytes } => {
                let is_dispensable = self.store().is_gateway_dispensable(pipeline.steps());
                let request = full_request(pipeline, seed, epoch);
                let value = self.value(&request, is_dispensable).await;
                match RemoteRows::begin(value, max_bytes, is_dispensable)? {
                    Some(remote) => (None, Some(remote)),
                    None => (Some(self.scan(pipeline, seed, epoch).await?), None),
                }
            }
        };
        let single = SingleTable {
            table: self.clone(),
            pipeline: pipeline.clone(),
            seed,
            epoch,
            scan,
        };
        Ok(TableRows {
            schema,
            local: LocalRows::Single(Box::new(single)),
            remote,
            rows_to_skip: 0,
        })
    }
}

impl StoredTables {
    /// The rows that a pipeline computes from all objects, as [`StoredTable::rows`]. The first object decides where they are
    /// computed.
    ///
    /// # Errors
    /// As [`StoredTables::scan`] and [`StoredTables::stream`].
    pub async fn rows(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<TableRows> {
        let mut scan = self.scan(pipeline, seed, epoch).await?;
        let remote = match scan.max_remote_bytes().await? {
            None => None,
            Some(max_bytes) => {
                let is_dispensable = self.store().is_gateway_dispensable(pipeline.steps());
                let request = full_request(pipeline, seed, epoch);
                let value = self.stream_from(&request, is_dispensable).await;
                let remote = RemoteRows::begin(value, max_bytes, is_dispensable)?;
                if remote.is_none() {
                    scan.restart();
                }
                remote
            }
        };
        Ok(TableRows {
            schema: SchemaRef::clone(scan.schema()),
            local: LocalRows::Multi(Box::new(scan)),
            remote,
            rows_to_skip: 0,
        })
    }
}

/// A request for all rows, as record batches.
fn full_request(pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> ValueRequest<'_> {
    ValueRequest {
        pipeline,
        split: Split::Full,
        seed,
        epoch: Some(epoch),
        accept: Some(TableForm::ArrowStream(Compression::None).accept()),
    }
}

impl TableRows {
    /// The columns.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows; `None` after the last ones.
    ///
    /// # Errors
    /// As [`StoredTable::rows`]; [`ErrorKind::Sample`](crate::ErrorKind::Sample) for an object replaced during the read.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(remote) = &mut self.remote {
            let rows = match remote.next(&self.schema).await? {
                RemoteItem::Rows(rows) => return Ok(Some(rows)),
                RemoteItem::End => return Ok(None),
                RemoteItem::LimitExceeded => {
                    let rows = remote.rows_delivered;
                    tracing::info!(
                        rows,
                        "the rows from the gateway have more bytes than expected: reading the rest on this host"
                    );
                    rows
                }
                RemoteItem::Lost(error) => {
                    let rows = remote.rows_delivered;
                    tracing::info!(%error, rows, "the gateway did not send the rest: reading it on this host");
                    rows
                }
            };
            self.rows_to_skip = rows;
            self.remote = None;
            self.local.restart().await?;
        }
        while let Some(rows) = self.local.next().await? {
            let skipped = usize::try_from(self.rows_to_skip)
                .unwrap_or(usize::MAX)
                .min(rows.num_rows());
            self.rows_to_skip -= skipped as u64;
            if skipped < rows.num_rows() {
                return Ok(Some(rows.slice(skipped, rows.num_rows() - skipped)));
            }
        }
        Ok(None)
    }
}

impl LocalRows {
    /// Begins at the first row.
    async fn restart(&mut self) -> Result<()> {
        match self {
            Self::Single(single) => {
                let scan = single
                    .table
                    .scan(&single.pipeline, single.seed, single.epoch)
                    .await?;
                single.scan = Some(scan);
            }
            Self::Multi(scan) => scan.restart(),
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Single(single) => {
                let Some(scan) = &mut single.scan else {
                    return Ok(None);
                };
                let rows = scan.next().await.transpose();
                rows.map_err(|error| single.table.map_error(error))
            }
            Self::Multi(scan) => scan.next().await,
        }
    }
}

impl RemoteRows {
    /// The rows in an answer of the gateway; `None` if a dispensable gateway gave none.
    fn begin(value: Result<ValueStream>, max_bytes: u64, is_dispensable: bool) -> Result<Option<Self>> {
        let value = match value {
            Err(error) if is_dispensable && error.is_retryable() => return Ok(None),
            // The store has let this host read the footer, and may not let the gateway read.
            Err(error) if is_dispensable && error.kind() == ErrorKind::Refused => {
                tracing::warn!(%error, "the gateway may not read what this host may: reading the rows on this host");
                return Ok(None);
            }
            value => value?,
        };
        Ok(Some(Self {
            value,
            is_dispensable,
            decoder: Some(TableDecoder::new()),
            decoded: Vec::new().into_iter(),
            bytes_left: max_bytes,
            rows_delivered: 0,
        }))
    }

    /// The next piece of the answer; `None` at its end.
    async fn next_piece(&mut self) -> Result<Option<Bytes>> {
        if !self.is_dispensable {
            return self.value.next().await;
        }
        let health = Arc::clone(self.value.replica.health());
        let piece = self.value.next();
        let piece = health.wait_for(piece).await;
        if piece.as_ref().is_err_and(Error::is_retryable) {
            health.after_failure().await;
        }
        piece
    }

    async fn next(&mut self, schema: &SchemaRef) -> Result<RemoteItem> {
        loop {
            if let Some(rows) = self.decoded.next() {
                if rows.schema().fields() != schema.fields() {
                    return Err(Error::protocol(format!(
                        "invalid rows from the gateway: expected the columns {schema}, found {}",
                        rows.schema()
                    )));
                }
                self.rows_delivered += rows.num_rows() as u64;
                return Ok(RemoteItem::Rows(rows));
            }
            if self.decoder.is_none() {
                return Ok(RemoteItem::End);
            }
            let piece = match self.next_piece().await {
                Err(error) if self.is_dispensable && error.is_retryable() => {
                    return Ok(RemoteItem::Lost(error));
                }
                piece => piece?,
            };
            let (Some(decoder), Some(bytes)) = (&mut self.decoder, piece) else {
                if let Some(decoder) = self.decoder.take() {
                    decoder.finish()?;
                }
                return Ok(RemoteItem::End);
            };
            let Some(left) = self.bytes_left.checked_sub(bytes.len() as u64) else {
                return Ok(RemoteItem::LimitExceeded);
            };
            self.bytes_left = left;
            self.decoded = decoder.push(bytes)?.into_iter();
        }
    }
}
