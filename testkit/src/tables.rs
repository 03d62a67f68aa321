//! Parquet files, and an origin that serves ranges of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};

use crate::origin::Exchange;

/// The size of a generated file.
///
/// The columns are `n`, the row number, `text`, which contains it, and `c000`, `c001`, ... with incompressible numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parquet {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns with incompressible numbers.
    pub noise: usize,
    /// Rows per row group.
    pub row_group: usize,
}

impl Parquet {
    /// The file. Tests of one process that need the same one generate it once.
    pub fn write(self) -> Result<Vec<u8>> {
        static FILES: Mutex<BTreeMap<Parquet, Vec<u8>>> = Mutex::new(BTreeMap::new());
        let mut files = FILES.lock();
        if let Some(file) = files.get(&self) {
            return Ok(file.clone());
        }
        let file = self.generate()?;
        files.insert(self, file.clone());
        Ok(file)
    }

    fn generate(self) -> Result<Vec<u8>> {
        let rows = 0..i64::try_from(self.rows)?;
        let text = rows.clone().map(|n| format!("row number {n}"));
        let mut columns: Vec<(String, ArrayRef)> = vec![
            (
                "n".to_owned(),
                Arc::new(Int64Array::from_iter_values(rows.clone())),
            ),
            ("text".to_owned(), Arc::new(StringArray::from_iter_values(text))),
        ];
        for column in 0..self.noise {
            let values = (0..self.rows).map(|row| noise(column, row));
            columns.push((
                format!("c{column:03}"),
                Arc::new(Float64Array::from_iter_values(values)),
            ));
        }
        incompressible_file(columns, self.row_group)
    }

    /// A file of photos: `n` is the number of the photo, `photo` has its bytes.
    pub fn of_photos(photos: &[&[u8]], row_group: usize) -> Result<Vec<u8>> {
        let count = i64::try_from(photos.len())?;
        let columns: Vec<(String, ArrayRef)> = vec![
            ("n".to_owned(), Arc::new(Int64Array::from_iter_values(0..count))),
            (
                "photo".to_owned(),
                Arc::new(BinaryArray::from_iter_values(photos)),
            ),
        ];
        incompressible_file(columns, row_group)
    }

    /// A file of images as Hugging Face stores them: `image` has structs of `bytes` and `path`, and `label` is the number of the
    /// image modulo 3.
    pub fn of_images(images: &[&[u8]], row_group: usize) -> Result<Vec<u8>> {
        let count = i64::try_from(images.len())?;
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values(images));
        let paths: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..count).map(|n| format!("{n}.img")),
        ));
        let structs = StructArray::try_from(vec![("bytes", bytes), ("path", paths)])?;
        let labels = (0..count).map(|n| n % 3);
        let columns: Vec<(String, ArrayRef)> = vec![
            ("image".to_owned(), Arc::new(structs)),
            ("label".to_owned(), Arc::new(Int64Array::from_iter_values(labels))),
        ];
        incompressible_file(columns, row_group)
    }

    /// A file with misleading statistics: `x` ranges from 0 to 1,000,000 in each row group, but is 999,999 in all rows except two.
    /// `n` and `m` are incompressible numbers.
    pub fn skewed(rows: usize, row_group: usize) -> Result<Vec<u8>> {
        let x = (0..rows).map(|row| match row % row_group {
            0 => 0,
            1 => 1_000_000,
            _ => 999_999,
        });
        let noise = |column: usize| {
            let values = (0..rows).map(move |row| noise(column, row));
            Arc::new(Float64Array::from_iter_values(values))
        };
        let columns: Vec<(String, ArrayRef)> = vec![
            ("n".to_owned(), noise(0)),
            ("m".to_owned(), noise(1)),
            ("x".to_owned(), Arc::new(Int64Array::from_iter_values(x))),
        ];
        compressed_file(columns, row_group)
    }

    /// A file of long, distinct and similar texts, `url`, that compress well. `n` has incompressible numbers.
    pub fn unique(rows: usize, row_group: usize) -> Result<Vec<u8>> {
        let url = |row| format!("https://example.com/a/path/whose/beginning/all/of/them/share/{row:09}");
        let columns: Vec<(String, ArrayRef)> = vec![
            (
                "n".to_owned(),
                Arc::new(Float64Array::from_iter_values((0..rows).map(|row| noise(0, row)))),
            ),
            (
                "url".to_owned(),
                Arc::new(StringArray::from_iter_values((0..rows).map(url))),
            ),
        ];
        compressed_file(columns, row_group)
    }

    /// A file without statistics on text lengths: the minimum and the maximum of `t` are single letters, and its other values are
    /// texts of 2,000 bytes from a dictionary. `n` has incompressible numbers.
    pub fn without_text_lengths(rows: usize, row_group: usize) -> Result<Vec<u8>> {
        let long = ["b".repeat(2000), "c".repeat(2000)];
        let text = |row: usize| match row % row_group {
            0 => "a",
            1 => "d",
            index => long[index % 2].as_str(),
        };
        let columns: Vec<(String, ArrayRef)> = vec![
            (
                "n".to_owned(),
                Arc::new(Float64Array::from_iter_values((0..rows).map(|row| noise(0, row)))),
            ),
            (
                "t".to_owned(),
                Arc::new(StringArray::from_iter_values((0..rows).map(text))),
            ),
        ];
        let file = Bytes::from(compressed_file(columns, row_group)?);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        let mut metadata = metadata.into_builder();
        for group in metadata.take_row_groups() {
            let mut group = group.into_builder();
            let without_lengths = |chunk: ColumnChunkMetaData| {
                let chunk = chunk.into_builder();
                chunk.set_unencoded_byte_array_data_bytes(None).build()
            };
            let chunks = group
                .take_columns()
                .into_iter()
                .map(without_lengths)
                .collect::<Result<_, _>>()?;
            metadata = metadata.add_row_group(group.set_column_metadata(chunks).build()?);
        }
        let length = file.len() - 8;
        let footer = u32::from_le_bytes(file[length..length + 4].try_into()?);
        let mut output = file[..length - usize::try_from(footer)?].to_vec();
        ParquetMetaDataWriter::new(&mut output, &metadata.build()).finish()?;
        Ok(output)
    }
}

fn incompressible_file(columns: Vec<(String, ArrayRef)>, row_group: usize) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    write_file(columns, row_group, properties)
}

/// A file with dictionaries and compression.
fn compressed_file(columns: Vec<(String, ArrayRef)>, row_group: usize) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    write_file(columns, row_group, properties)
}

fn write_file(
    columns: Vec<(String, ArrayRef)>,
    row_group: usize,
    properties: WriterPropertiesBuilder,
) -> Result<Vec<u8>> {
    let batch = RecordBatch::try_from_iter(columns)?;
    let properties = properties
        .set_max_row_group_row_count(Some(row_group))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// A pseudo-random number from 0 to 1 with 53 random bits: a step of `SplitMix64`.
#[expect(clippy::cast_precision_loss, reason = "a double has 53 bits")]
fn noise(column: usize, row: usize) -> f64 {
    let mut bits = ((column as u64) << 40 | row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The first byte of the `Range` of a GET; `None` for a suffix range or without a range.
pub fn first_byte(exchange: &Exchange) -> Option<usize> {
    range(exchange)?.split_once('-')?.0.parse().ok()
}

fn range(exchange: &Exchange) -> Option<&str> {
    exchange.head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let range = value.trim().strip_prefix("bytes=")?;
        name.eq_ignore_ascii_case("range").then_some(range)
    })
}

/// Answers a GET like a store that supports `Range` and ignores `If-Match`.
pub fn ranged(exchange: &mut Exchange, object: &[u8], etag: &str) -> io::Result<()> {
    let total = object.len();
    let bounds = range(exchange).and_then(|range| {
        let (first, last) = range.split_once('-')?;
        Some(match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..(last + 1).min(total),
            (Ok(first), Err(_)) => first..total,
            (Err(_), Ok(suffix)) => total.saturating_sub(suffix)..total,
            (Err(_), Err(_)) => return None,
        })
    });
    let (status, content_range, part) = match bounds {
        Some(bounds) => {
            let content_range = format!(
                "Content-Range: bytes {}-{}/{total}\r\n",
                bounds.start,
                bounds.end.saturating_sub(1)
            );
            ("206 Partial Content", content_range, &object[bounds])
        }
        None => ("200 OK", String::new(), object),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"{etag}\"\r\n{content_range}\r\n",
        part.len()
    );
    exchange.send(head)?;
    exchange.send(part)
}
