//! Formats that are read sequentially: CSV, JSON lines, Arrow IPC. If the messages of an Arrow file are not a valid stream,
//! they are read in the order of its footer.
//!
//! The columns of a text are inferred from its first [`INFERENCE_BYTES`], decompressed, or from its first row if that is longer; later
//! rows must fit them. These bytes are kept, so that the first scan continues after them, with the same request.

mod csv;
mod decompress;
mod head;
mod ipc;
mod json;
mod lines;
mod number;

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::{Buf as _, Bytes};
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;

use crate::formats::{
    format,
    format::Format,
    read_options::{Delimiter, ReadOptions},
};
use csv::CsvTable;
use decompress::decompress;
use head::{Head, RowSyntax};
use ipc::{ArrowTable, StoredFooter};
pub(super) use ipc::{FILE_MAGIC as ARROW_FILE, MESSAGE_MARKER as ARROW_MESSAGE};
use json::JsonTable;
use pushdown_core::{
    Codec, Error, Result, Source, Suffix,
    limits::{BATCH_ROWS, INFERENCE_BYTES, TableLimits},
    step::rowwise::split_batch,
};

/// Byte order mark with which some writers start a text in UTF-8. No other supported format starts with these bytes.
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// An opened object of such a format.
#[derive(Debug, Clone)]
pub(crate) struct StreamFile {
    object: StoredObject,
    codec: Codec,
    content: Content,
    limits: TableLimits,
    /// Where the first scan continues. `None` once it has started.
    opened: Arc<Mutex<Option<OpenedStream>>>,
}

/// The object as stored.
#[derive(Debug, Clone)]
struct StoredObject {
    source: Arc<dyn Source>,
    bytes: u64,
    /// The whole object, if the first read of its end covered it.
    whole: Option<Bytes>,
}

#[derive(Debug, Clone)]
enum Content {
    Csv(CsvTable),
    Json(JsonTable),
    Arrow(ArrowTable),
}

/// A decompressed stream whose first bytes have been read.
struct OpenedStream {
    head: Vec<Bytes>,
    rest: Chunks,
}

type Chunks = BoxStream<'static, Result<Bytes>>;

/// Decodes an object's bytes into record batches.
trait Decoder: Send {
    /// Consumes bytes of `chunk`, until they complete a record batch or all are consumed.
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>>;

    /// Returns the remaining rows at the end of the bytes.
    fn finish(&mut self) -> Result<Option<RecordBatch>>;

    /// Whether the table has ended, even if bytes follow.
    fn is_ended(&self) -> bool {
        false
    }
}

impl StreamFile {
    /// The format of the object.
    pub(crate) const fn format(&self) -> Format {
        match self.content {
            Content::Csv(_) => Format::Csv,
            Content::Json(_) => Format::Json,
            Content::Arrow(_) => Format::Arrow,
        }
    }

    /// Opens an object whose last bytes are `end`: reads its first bytes and infers its columns.
    pub(crate) async fn open(
        reading: &ReadOptions,
        source: Arc<dyn Source>,
        end: Suffix,
        sample_id: &[u8],
        limits: &TableLimits,
    ) -> Result<Self> {
        let whole = (end.bytes.len() as u64 == end.total).then(|| end.bytes.clone());
        let object = StoredObject {
            source,
            bytes: end.total,
            whole,
        };
        let (start, rest) = read_at_least(object.chunks(), Codec::MAGIC_BYTES).await?;
        let codec = Codec::detect(&start.concat())?;
        let decompressed = without_bom(decompress(chain(start, rest), codec, limits));
        let opened = read_at_least(decompressed, INFERENCE_BYTES + 1).await?;
        let head = Head::new(&opened.0);
        let format = match reading.format {
            Some(format) => format,
            None => format::detect_format(&head.bytes, sample_id)?,
        };
        format::check_options(reading, format)?;
        let default = if format::is_tab_separated(sample_id) {
            b'\t'
        } else {
            b','
        };
        let Delimiter(delimiter) = reading.delimiter.unwrap_or(Delimiter(default));
        let syntax = RowSyntax {
            format,
            has_header: reading.header.unwrap_or(true),
            delimiter,
        };
        let (head, start, rest) = head
            .with_first_row(syntax, opened, object.source.as_ref(), limits)
            .await?;
        let content = match format {
            Format::Csv => Content::Csv(CsvTable::infer(&head, syntax.has_header, delimiter, limits)?),
            Format::Json => Content::Json(JsonTable::infer(&head, limits)?),
            Format::Arrow => {
                let is_file = head.bytes.starts_with(ARROW_FILE) && codec == Codec::None;
                let footer = if is_file {
                    StoredFooter::read(object.source.as_ref(), &end, limits).await?
                } else {
                    None
                };
                Content::Arrow(ArrowTable::open(&start, footer.as_ref(), limits)?)
            }
            Format::Parquet => {
                return Err(Error::internal(
                    "unexpected format: Parquet is not read as a stream",
                ));
            }
        };
        Ok(Self {
            object,
            codec,
            content,
            limits: *limits,
            opened: Arc::new(Mutex::new(Some(OpenedStream { head: start, rest }))),
        })
    }

    /// The columns.
    pub(crate) const fn schema(&self) -> &SchemaRef {
        match &self.content {
            Content::Csv(table) => &table.schema,
            Content::Json(table) => &table.schema,
            Content::Arrow(table) => &table.schema,
        }
    }

    /// Size of the object in bytes.
    pub(crate) const fn object_bytes(&self) -> u64 {
        self.object.bytes
    }

    /// Reads record batches of `columns`, in ascending order.
    pub(crate) fn read(&self, columns: &[usize]) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let footer = match &self.content {
            Content::Arrow(table) => table.footer(),
            Content::Csv(_) | Content::Json(_) => None,
        };
        let chunks = match (footer, self.opened.lock().take()) {
            (Some(footer), _) => footer.chunks(self.object.range_source()),
            (None, Some(OpenedStream { head, rest })) => chain(head, rest),
            (None, None) => without_bom(decompress(self.object.chunks(), self.codec, &self.limits)),
        };
        let decoder: Box<dyn Decoder> = match &self.content {
            Content::Csv(table) => Box::new(table.decoder(columns, &self.limits)?),
            Content::Json(table) => Box::new(table.decoder(columns, &self.limits)?),
            Content::Arrow(table) => Box::new(table.decoder(columns, &self.limits)?),
        };
        let reader = BatchReader {
            chunks,
            chunk: Bytes::new(),
            decoder: Some(decoder),
        };
        let batches = stream::try_unfold(reader, BatchReader::next);
        Ok(batches
            .flat_map(|batch| stream::iter(split_batch(batch, BATCH_ROWS)))
            .boxed())
    }
}

impl StoredObject {
    fn chunks(&self) -> Chunks {
        match &self.whole {
            Some(bytes) => stream::iter([Ok(bytes.clone())]).boxed(),
            None => self.source.stream(),
        }
    }

    /// The source for reads of ranges.
    fn range_source(&self) -> Arc<dyn Source> {
        match &self.whole {
            Some(bytes) => Arc::new(bytes.clone()),
            None => Arc::clone(&self.source),
        }
    }
}

impl fmt::Debug for OpenedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedStream")
            .field("head", &self.head.len())
            .finish_non_exhaustive()
    }
}

/// Reads chunks of at least `min_bytes` bytes in total, or all chunks. Returns them and the rest.
async fn read_at_least(mut chunks: Chunks, min_bytes: usize) -> Result<(Vec<Bytes>, Chunks)> {
    let (mut start, mut length) = (Vec::new(), 0);
    while length < min_bytes
        && let Some(chunk) = chunks.next().await.transpose()?
    {
        length += chunk.len();
        start.push(chunk);
    }
    Ok((start, chunks))
}

fn chain(start: Vec<Bytes>, rest: Chunks) -> Chunks {
    stream::iter(start.into_iter().map(Ok)).chain(rest).boxed()
}

/// The chunks without a byte order mark at the start.
fn without_bom(chunks: Chunks) -> Chunks {
    let stripped = async move {
        let (start, rest) = read_at_least(chunks, UTF8_BOM.len()).await?;
        let mut start = match start.as_slice() {
            [whole] => whole.clone(),
            parts => parts.concat().into(),
        };
        if start.starts_with(UTF8_BOM) {
            start.advance(UTF8_BOM.len());
        }
        Ok::<_, Error>(chain(vec![start], rest))
    };
    stream::once(stripped).try_flatten().boxed()
}

/// Reads an object's bytes and decodes them into record batches.
struct BatchReader {
    chunks: Chunks,
    /// The rest of the current chunk.
    chunk: Bytes,
    /// `None` after the last rows.
    decoder: Option<Box<dyn Decoder>>,
}

impl BatchReader {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Ok(None);
            };
            if let Some(batch) = decoder.push(&mut self.chunk)? {
                return Ok(Some((batch, self)));
            }
            let next = if decoder.is_ended() {
                None
            } else {
                self.chunks.next().await.transpose()?
            };
            if let Some(chunk) = next {
                self.chunk = chunk;
                continue;
            }
            let last = decoder.finish()?;
            self.decoder = None;
            return Ok(last.map(|batch| (batch, self)));
        }
    }
}
