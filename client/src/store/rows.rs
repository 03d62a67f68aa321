//! The rows of tables from where they are there sooner. What comes of the gateway ends where not much more than the objects' bytes
//! would travel: how many bytes rows have is a guess.

use std::vec;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::StreamExt as _;
use pushdown::{
    Pipeline, Scan,
    wire::{Compression, Split, TableDecoder, TableForm},
};

use super::{GetValue, StoredTable, StoredTables, TablesScan, ValueStream, sooner::Sooner};
use crate::error::{Error, Result};

/// The rows that a pipeline makes of one table or of several.
#[derive(Debug)]
pub struct TableRows {
    schema: SchemaRef,
    here: Here,
    there: Option<There>,
    /// Of the rows that are read here, how many have come from the gateway already.
    given: u64,
}

/// Rows that are read here.
#[derive(Debug)]
enum Here {
    One(Box<One>),
    Several(Box<TablesScan>),
}

/// Rows of one table.
#[derive(Debug)]
struct One {
    table: StoredTable,
    pipeline: Pipeline,
    seed: Option<u64>,
    epoch: u32,
    /// `None` until they are read here.
    scan: Option<Scan>,
}

/// Rows that come from the gateway.
#[derive(Debug)]
struct There {
    value: ValueStream,
    /// `None` behind the last byte.
    decoder: Option<TableDecoder>,
    decoded: vec::IntoIter<RecordBatch>,
    /// Bytes that may still come.
    left: u64,
    /// Rows that were given.
    given: u64,
}

/// What the gateway gives next.
enum Next {
    Rows(RecordBatch),
    End,
    /// More than may come.
    Enough,
}

impl StoredTable {
    /// The rows that a pipeline makes of the object, from where they are there sooner. No more than a sixteenth more than the
    /// object's bytes comes, its footer and the heads of answers apart.
    ///
    /// # Errors
    /// As [`scan`](Self::scan) and [`Store::stream_value`](super::Store::stream_value).
    pub async fn rows(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<TableRows> {
        let scan = self.scan(pipeline, seed, epoch).await?;
        let (schema, all) = (SchemaRef::clone(scan.schema()), *scan.estimate());
        let (scan, there) = match self.sooner_here(&all, scan).await? {
            Sooner::Here(scan) => (Some(scan), None),
            Sooner::There(left) => {
                let value = self.value(&whole(pipeline, seed, epoch)).await?;
                (None, Some(There::new(value, left)))
            }
        };
        let one = One {
            table: self.clone(),
            pipeline: pipeline.clone(),
            seed,
            epoch,
            scan,
        };
        Ok(TableRows {
            schema,
            here: Here::One(Box::new(one)),
            there,
            given: 0,
        })
    }
}

impl StoredTables {
    /// The rows that a pipeline makes of all objects, from where they are there sooner, as the first object shows. As
    /// [`StoredTable::rows`].
    ///
    /// # Errors
    /// As [`StoredTables::scan`] and [`StoredTables::stream`].
    pub async fn rows(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<TableRows> {
        let mut scan = self.scan(pipeline, seed, epoch).await?;
        let there = match scan.sooner_here().await? {
            None => None,
            Some(left) => {
                let value = self.stream(&whole(pipeline, seed, epoch)).await?;
                Some(There::new(value, left))
            }
        };
        Ok(TableRows {
            schema: SchemaRef::clone(scan.schema()),
            here: Here::Several(Box::new(scan)),
            there,
            given: 0,
        })
    }
}

/// All that a pipeline makes, as record batches.
fn whole(pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> GetValue<'_> {
    GetValue {
        pipeline,
        split: Split::Full,
        seed,
        epoch: Some(epoch),
        accept: Some(TableForm::ArrowStream(Compression::None).accept()),
    }
}

// === impl TableRows ===

impl TableRows {
    /// The columns.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows; `None` behind the last ones.
    ///
    /// # Errors
    /// As [`StoredTable::rows`]; [`ErrorKind::Sample`](crate::ErrorKind::Sample) for an object that is replaced meanwhile.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(there) = &mut self.there {
            match there.next(&self.schema).await? {
                Next::Rows(rows) => return Ok(Some(rows)),
                Next::End => return Ok(None),
                Next::Enough => {
                    tracing::info!(
                        rows = there.given,
                        "the rows have more bytes than was to be expected: they are read here"
                    );
                    self.given = there.given;
                    self.there = None;
                    self.here.start().await?;
                }
            }
        }
        while let Some(rows) = self.here.next().await? {
            let known = usize::try_from(self.given)
                .unwrap_or(usize::MAX)
                .min(rows.num_rows());
            self.given -= known as u64;
            if known < rows.num_rows() {
                return Ok(Some(rows.slice(known, rows.num_rows() - known)));
            }
        }
        Ok(None)
    }
}

impl Here {
    /// Begins with the first row.
    async fn start(&mut self) -> Result<()> {
        match self {
            Self::One(one) => {
                let scan = one.table.scan(&one.pipeline, one.seed, one.epoch).await?;
                one.scan = Some(scan);
            }
            Self::Several(scan) => scan.start(),
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::One(one) => {
                let Some(scan) = &mut one.scan else {
                    return Ok(None);
                };
                let rows = scan.next().await.transpose();
                rows.map_err(|error| one.table.fault(error))
            }
            Self::Several(scan) => scan.next().await,
        }
    }
}

impl There {
    fn new(value: ValueStream, left: u64) -> Self {
        Self {
            value,
            decoder: Some(TableDecoder::new()),
            decoded: Vec::new().into_iter(),
            left,
            given: 0,
        }
    }

    async fn next(&mut self, schema: &SchemaRef) -> Result<Next> {
        loop {
            if let Some(rows) = self.decoded.next() {
                if rows.schema().fields() != schema.fields() {
                    return Err(Error::protocol("the gateway answered rows of other columns"));
                }
                self.given += rows.num_rows() as u64;
                return Ok(Next::Rows(rows));
            }
            let Some(decoder) = &mut self.decoder else {
                return Ok(Next::End);
            };
            let Some(bytes) = self.value.next().await? else {
                if let Some(decoder) = self.decoder.take() {
                    decoder.finish()?;
                }
                return Ok(Next::End);
            };
            let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
                return Ok(Next::Enough);
            };
            self.left = left;
            self.decoded = decoder.push(bytes)?.into_iter();
        }
    }
}
