mod bounds;
mod comparisons;
mod each;
mod formats;
mod grammar;
mod hostile;
mod int96;
mod meaning;
mod patterns;
mod planning;
mod query;
mod ranges;
mod refused;
mod statistics;

use std::{ops::Range, sync::Arc};

use ::parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions},
    file::{
        metadata::{ColumnChunkMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter},
        properties::{EnabledStatistics, WriterProperties},
    },
};
use arrow_array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int8Array, Int64Array,
    RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray,
    cast::AsArray as _,
    types::{Float64Type, Int8Type, Int64Type},
};
use arrow_schema::DataType;
use bytes::Bytes;
use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;

use pushdown::Pipeline;
use pushdown_core::{
    Context, ErrorKind, Estimate, Limits, Result, Sample, Source, Suffix, Table, TableLimits,
};

/// A source that records its reads.
#[derive(Debug, Clone)]
struct CountingSource {
    object: Bytes,
    ranges: Arc<Mutex<Vec<Range<u64>>>>,
    suffixes: Arc<Mutex<usize>>,
}

impl CountingSource {
    fn new(object: Bytes) -> Self {
        Self {
            object,
            ranges: Arc::default(),
            suffixes: Arc::default(),
        }
    }

    fn bytes_read(&self) -> u64 {
        self.ranges
            .lock()
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }
}

impl Source for CountingSource {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        *self.suffixes.lock() += 1;
        self.object.suffix(length)
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        self.ranges.lock().extend(ranges.iter().cloned());
        self.object.ranges(ranges)
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        stream::empty().boxed()
    }
}

fn column(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// A Parquet file with `rows` rows in each row group.
fn parquet_file(batch: &RecordBatch, rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .set_data_page_row_count_limit(rows.div_ceil(4))
        .set_write_batch_size(rows.div_ceil(8))
        .set_statistics_enabled(EnabledStatistics::Page)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap().into()
}

/// A Parquet file with changed metadata of its column chunks.
fn with_chunks(
    object: &Bytes,
    change: impl Fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder,
) -> Bytes {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(object).unwrap();
    let mut metadata = metadata.into_builder();
    for group in metadata.take_row_groups() {
        let mut group = group.into_builder();
        let chunks = group.take_columns().into_iter();
        let chunks = chunks.map(|chunk| change(chunk.into_builder()).build().unwrap());
        let group = group.set_column_metadata(chunks.collect()).build().unwrap();
        metadata = metadata.add_row_group(group);
    }
    let length = u32::from_le_bytes(object[object.len() - 8..][..4].try_into().unwrap());
    let mut file = object[..object.len() - 8 - length as usize].to_vec();
    ParquetMetaDataWriter::new(&mut file, &metadata.build())
        .finish()
        .unwrap();
    file.into()
}

/// `rows` rows: `n` is the row number, `m` is `n` modulo 7, `text` has `n` in words.
fn numbers(rows: i64) -> RecordBatch {
    let text = StringArray::from_iter_values((0..rows).map(|n| format!("row number {n}")));
    let columns: [(&str, ArrayRef); 3] = [
        ("n", column(0..rows)),
        ("m", column((0..rows).map(|n| n % 7))),
        ("text", Arc::new(text)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn pipeline(text: &str) -> Pipeline {
    Pipeline::parse(text).expect(text)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

/// The rows and the estimate of a scan.
fn scan_with(text: &str, source: impl Source, limits: Limits) -> Result<(Table, Estimate)> {
    let context = Context {
        limits,
        ..Context::new(b"object.parquet")
    };
    block_on(async {
        let mut scan = pipeline(text).scan(0..1, Arc::new(source), &context).await?;
        let (schema, estimate) = (Arc::clone(scan.schema()), *scan.estimate());
        let mut batches = Vec::new();
        while let Some(batch) = scan.next().await.transpose()? {
            batches.push(batch);
        }
        Ok((Table::new(schema, batches)?, estimate))
    })
}

fn scan(text: &str, source: impl Source) -> Result<(Table, Estimate)> {
    scan_with(text, source, Limits::default())
}

fn run(text: &str, object: &Bytes) -> Result<Table> {
    let pipeline = pipeline(text);
    let sample = Sample::Bytes(object.clone());
    match pipeline.run(0..pipeline.len(), sample, &Context::new(b"object.parquet"))? {
        Sample::Table(table) => Ok(table),
        other => panic!("found {other:?}"),
    }
}

fn int64s(table: &Table, column: usize) -> Vec<i64> {
    let batches = table.batches().iter();
    batches
        .flat_map(|batch| batch.column(column).as_primitive::<Int64Type>().values().to_vec())
        .collect()
}
