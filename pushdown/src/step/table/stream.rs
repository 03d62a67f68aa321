//! Formats that are read from their start to their end: CSV, JSON lines, Arrow IPC. Of Arrow files whose messages are no
//! stream, the messages are read in the order of their footer.
//!
//! What columns a text has is told by its first [`INFERENCE_BYTES`], inflated; what comes later has to fit. These bytes
//! are kept, so that the first scan goes on where looking at them ended, by the same request.

mod csv;
mod inflate;
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

use super::{
    Format, format,
    options::{Delimiter, Reading},
    rowwise::parts,
};
use crate::{
    Error, Result, Source, Suffix,
    limits::{BATCH_ROWS, INFERENCE_BYTES, TableLimits},
};
use inflate::Codec;
pub(super) use ipc::{FILE as ARROW_FILE, MESSAGE as ARROW_MESSAGE, check_fields};

/// Bytes that a text's record batches are to have at most, where its first rows tell the size of the others.
const BATCH_BYTES: u64 = 16 << 20;

/// What some writers start a text with, to tell that it is in UTF-8. Nothing else that is read here starts so.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// An object of such a format, its columns known.
#[derive(Debug, Clone)]
pub(super) struct File {
    raw: Raw,
    codec: Codec,
    content: Content,
    limits: TableLimits,
    begun: Arc<Mutex<Option<Begun>>>,
}

/// The object as it is stored.
#[derive(Debug, Clone)]
struct Raw {
    source: Arc<dyn Source>,
    total: u64,
    /// All of it, where reading its end has brought all of it.
    whole: Option<Bytes>,
}

#[derive(Debug, Clone)]
enum Content {
    Csv(csv::Table),
    Json(json::Table),
    Arrow(ipc::Table),
}

/// Inflated bytes that have been looked at, and those behind them.
struct Begun {
    seen: Vec<Bytes>,
    rest: Chunks,
}

type Chunks = BoxStream<'static, Result<Bytes>>;

/// The start of an object, once inflated.
struct Head {
    bytes: Bytes,
    /// Whether there is more behind it.
    cut: bool,
}

/// Makes record batches of an object's bytes.
trait Decoder: Send {
    /// Takes bytes off `chunk` until they complete a record batch, or all of them.
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>>;

    /// The rows that are left when no more bytes come.
    fn finish(&mut self) -> Result<Option<RecordBatch>>;

    /// Whether the table ended before the bytes do.
    fn ended(&self) -> bool {
        false
    }
}

impl File {
    /// What it is.
    pub(super) const fn format(&self) -> Format {
        match self.content {
            Content::Csv(_) => Format::Csv,
            Content::Json(_) => Format::Json,
            Content::Arrow(_) => Format::Arrow,
        }
    }

    /// Looks at the start of an object whose end is at hand.
    pub(super) async fn open(
        reading: &Reading,
        source: Arc<dyn Source>,
        end: Suffix,
        sample_id: &[u8],
        limits: &TableLimits,
    ) -> Result<Self> {
        let whole = (end.bytes.len() as u64 == end.total).then(|| end.bytes.clone());
        let raw = Raw {
            source,
            total: end.total,
            whole,
        };
        let (start, rest) = begin(raw.chunks(), 8).await?;
        let magic = start.concat();
        let codec = Codec::of(&magic)?;
        let inflated = unmarked(inflate::inflate(chain(start, rest), codec, limits));
        let (seen, rest) = begin(inflated, INFERENCE_BYTES + 1).await?;
        let head = Head::of(&seen);
        let format = match reading.format {
            Some(format) => format,
            None => format::found(&head.bytes, sample_id)?,
        };
        format::suits(reading, format)?;
        let content = match format {
            Format::Csv => {
                let usual = if format::is_tabbed(sample_id) { b'\t' } else { b',' };
                let Delimiter(delimiter) = reading.delimiter.unwrap_or(Delimiter(usual));
                let header = reading.header.unwrap_or(true);
                Content::Csv(csv::Table::infer(&head, header, delimiter, limits)?)
            }
            Format::Json => Content::Json(json::Table::infer(&head, limits)?),
            Format::Arrow => {
                let is_file = head.bytes.starts_with(ARROW_FILE) && codec == Codec::None;
                let footer = if is_file {
                    ipc::StoredFooter::read(raw.source.as_ref(), &end, limits).await?
                } else {
                    None
                };
                Content::Arrow(ipc::Table::open(&seen, footer.as_ref(), limits)?)
            }
            Format::Parquet => return Err(Error::internal("Parquet is read by ranges")),
        };
        Ok(Self {
            raw,
            codec,
            content,
            limits: *limits,
            begun: Arc::new(Mutex::new(Some(Begun { seen, rest }))),
        })
    }

    /// The columns.
    pub(super) const fn schema(&self) -> &SchemaRef {
        match &self.content {
            Content::Csv(table) => &table.schema,
            Content::Json(table) => &table.schema,
            Content::Arrow(table) => &table.schema,
        }
    }

    /// Size of the object in bytes.
    pub(super) const fn total(&self) -> u64 {
        self.raw.total
    }

    /// Reads the object: record batches of some columns, which ascend.
    pub(super) fn read(&self, columns: &[usize]) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let footer = match &self.content {
            Content::Arrow(table) => table.footer(),
            Content::Csv(_) | Content::Json(_) => None,
        };
        let chunks = match (footer, self.begun.lock().take()) {
            (Some(footer), _) => footer.chunks(self.raw.ranges()),
            (None, Some(Begun { seen, rest })) => chain(seen, rest),
            (None, None) => unmarked(inflate::inflate(self.raw.chunks(), self.codec, &self.limits)),
        };
        let decoder: Box<dyn Decoder> = match &self.content {
            Content::Csv(table) => Box::new(table.decoder(columns, &self.limits)?),
            Content::Json(table) => Box::new(table.decoder(columns, &self.limits)?),
            Content::Arrow(table) => Box::new(table.decoder(columns, &self.limits)?),
        };
        let reader = Reader {
            chunks,
            chunk: Bytes::new(),
            decoder: Some(decoder),
        };
        let batches = stream::try_unfold(reader, Reader::next);
        Ok(batches
            .flat_map(|batch| stream::iter(parts(batch, BATCH_ROWS)))
            .boxed())
    }
}

impl Raw {
    fn chunks(&self) -> Chunks {
        match &self.whole {
            Some(bytes) => stream::iter([Ok(bytes.clone())]).boxed(),
            None => self.source.stream(),
        }
    }

    /// What parts of it are read from.
    fn ranges(&self) -> Arc<dyn Source> {
        match &self.whole {
            Some(bytes) => Arc::new(bytes.clone()),
            None => Arc::clone(&self.source),
        }
    }
}

impl Head {
    fn of(seen: &[Bytes]) -> Self {
        let mut bytes = Bytes::from(seen.concat());
        let cut = bytes.len() > INFERENCE_BYTES;
        bytes.truncate(INFERENCE_BYTES);
        Self { bytes, cut }
    }

    /// Rows of a record batch, where so many rows have so many of these bytes.
    fn batch_rows(rows: usize, bytes: usize) -> usize {
        let row = (bytes as u64).div_ceil(rows.max(1) as u64).max(1);
        usize::try_from(BATCH_BYTES / row)
            .unwrap_or(BATCH_ROWS)
            .clamp(1, BATCH_ROWS)
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun")
            .field("seen", &self.seen.len())
            .finish_non_exhaustive()
    }
}

/// Chunks of at least `most` bytes together, or all that there are.
async fn begin(mut chunks: Chunks, most: usize) -> Result<(Vec<Bytes>, Chunks)> {
    let (mut seen, mut length) = (Vec::new(), 0);
    while length < most
        && let Some(chunk) = chunks.next().await.transpose()?
    {
        length += chunk.len();
        seen.push(chunk);
    }
    Ok((seen, chunks))
}

fn chain(seen: Vec<Bytes>, rest: Chunks) -> Chunks {
    stream::iter(seen.into_iter().map(Ok)).chain(rest).boxed()
}

/// The chunks without the mark, if they start with it.
fn unmarked(chunks: Chunks) -> Chunks {
    let begun = async move {
        let (seen, rest) = begin(chunks, MARK.len()).await?;
        let mut start = match seen.as_slice() {
            [whole] => whole.clone(),
            parts => parts.concat().into(),
        };
        if start.starts_with(MARK) {
            start.advance(MARK.len());
        }
        Ok::<_, Error>(chain(vec![start], rest))
    };
    stream::once(begun).try_flatten().boxed()
}

/// An object on its way to record batches.
struct Reader {
    chunks: Chunks,
    chunk: Bytes,
    /// `None` once the last rows are out.
    decoder: Option<Box<dyn Decoder>>,
}

impl Reader {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Ok(None);
            };
            if let Some(batch) = decoder.push(&mut self.chunk)? {
                return Ok(Some((batch, self)));
            }
            let more = if decoder.ended() {
                None
            } else {
                self.chunks.next().await.transpose()?
            };
            if let Some(chunk) = more {
                self.chunk = chunk;
                continue;
            }
            let last = decoder.finish()?;
            self.decoder = None;
            return Ok(last.map(|batch| (batch, self)));
        }
    }
}
