//! Writing and reading of batch answers.

mod cache_column;
mod crop_columns;
mod extra_columns;
mod further_columns;
mod generated;
mod hostile;
mod stored_column;

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::{BatchReader, BatchWriter, CacheStatus, Compression, OptionalColumns, Row, RowError, ValueType};
use crate::{FixedShape, arbitrary::chunks};
use pushdown_core::{
    DType, Engine, ErrorKind, Image, ImageKind, Kind, Layout, Limits, Result, Sample, Tensor, TensorKind,
    language::Digest,
};

fn digest() -> Digest {
    Digest::new(b"decode | resize(height=8, width=8) | to_float")
}

fn successful(row: u32, value: Sample) -> Row {
    Row {
        row,
        stage: 3,
        seconds: 0.25,
        cache: CacheStatus::Computed,
        value: Ok(value),
        columns: Vec::new(),
        stored: None,
    }
}

fn failed(row: u32) -> Row {
    Row {
        row,
        stage: 0,
        seconds: 0.0,
        cache: CacheStatus::Computed,
        value: Err(RowError::new("NoSuchKey", format!("no key {row}: none"))),
        columns: Vec::new(),
        stored: None,
    }
}

fn tensor(dtype: DType, shape: &[usize], first: usize) -> Tensor {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    let data = Buffer::from_vec(
        (first..first + bytes)
            .map(|byte| u8::try_from(byte % 251).unwrap())
            .collect(),
    );
    Tensor::new(dtype, Layout::Chw, shape.to_vec(), data).unwrap()
}

fn fixed(sample: &Sample) -> ValueType {
    ValueType::for_kinds([&Kind::from(sample)])
}

/// A stream of `rows`, written `chunk_rows` at a time.
fn write(value_type: &ValueType, rows: &[Row], chunk_rows: usize) -> Bytes {
    let writer = writer(value_type, Compression::None, false);
    write_by(writer, rows, chunk_rows)
}

fn writer(value_type: &ValueType, compression: Compression, cache_column: bool) -> BatchWriter {
    let (engine, pipeline) = (Engine::default(), digest());
    BatchWriter::new(
        value_type.clone(),
        compression,
        &engine,
        &pipeline,
        OptionalColumns {
            cache: cache_column,
            ..OptionalColumns::default()
        },
    )
    .unwrap()
}

fn write_by(mut writer: BatchWriter, rows: &[Row], chunk_rows: usize) -> Bytes {
    let mut stream = writer.start().to_vec();
    for rows in rows.chunks(chunk_rows.max(1)) {
        stream.extend(writer.rows(rows.to_vec()).unwrap().concat());
    }
    stream.extend(writer.finish().unwrap());
    stream.into()
}

fn read(chunks: impl IntoIterator<Item = Bytes>) -> (Vec<Row>, Result<()>) {
    let mut reader = BatchReader::new(Limits::default());
    let mut rows = Vec::new();
    for chunk in chunks {
        match reader.push(chunk) {
            Ok(more) => rows.extend(more),
            Err(error) => return (rows, Err(error)),
        }
    }
    (rows, reader.finish())
}

fn assert_reads_back(value_type: &ValueType, rows: &[Row]) {
    for chunk_rows in [1, 2, rows.len()] {
        let stream = write(value_type, rows, chunk_rows);
        for lengths in [&[usize::MAX][..], &[1], &[7, 64, 1000]] {
            let (found, end) = read(chunks(stream.clone(), lengths));
            end.unwrap();
            assert_eq!(
                found, rows,
                "{chunk_rows} rows at a time, in chunks of {lengths:?}"
            );
        }
    }
}

#[test]
fn fixed_shapes_of_every_dtype() {
    for dtype in DType::ALL {
        for shape in [&[2, 3][..], &[], &[3, 0]] {
            let value = |row| Sample::Tensor(tensor(dtype, shape, row));
            let rows = [
                successful(0, value(0)),
                successful(1, value(1)),
                failed(2),
                failed(3),
                successful(4, value(4)),
            ];
            let value_type = fixed(&value(0));
            assert!(matches!(value_type, ValueType::Fixed(_)));
            assert_reads_back(&value_type, &rows);
        }
    }
}

#[test]
fn images_stay_images() {
    let value = |first| Sample::Image(Image::new(2, 2, (first..first + 12).collect()).unwrap());
    assert_reads_back(
        &fixed(&value(0)),
        &[successful(0, value(0)), failed(1), successful(2, value(2))],
    );
}

#[test]
fn rows_apart_are_the_same_rows_without_copies_of_their_values() {
    let value = Sample::Tensor(tensor(DType::U8, &[128, 128], 0));
    let Sample::Tensor(tensor) = &value else {
        unreachable!()
    };
    let rows = [
        successful(0, value.clone()),
        failed(1),
        successful(2, value.clone()),
    ];
    for compression in [Compression::None, Compression::Lz4] {
        let mut writer = writer(&fixed(&value), compression, false);
        assert!(writer.is_copied(value.bytes()));
        let mut stream = vec![writer.start()];
        let parts = writer.rows_apart(rows.to_vec()).unwrap();
        let shared = parts
            .iter()
            .filter(|part| part.as_ptr() == tensor.data().as_ptr());
        assert_eq!(shared.count(), 2);
        stream.extend(parts);
        stream.push(writer.finish().unwrap());
        let (found, end) = read(stream);
        end.unwrap();
        assert_eq!(found, rows);
    }
}

#[test]
fn quantised_rows_keep_their_scales() {
    let value = |scale| Sample::Tensor(tensor(DType::I8, &[4], 9).with_scale(Some(scale)));
    let rows = [
        successful(0, value(0.1)),
        failed(1),
        successful(2, value(f32::MIN_POSITIVE)),
        successful(3, value(0.0)),
    ];
    assert_reads_back(&fixed(&value(1.0)), &rows);
}

#[test]
fn bytes_of_any_length() {
    let value = |bytes: &'static [u8]| Sample::Bytes(Bytes::from_static(bytes));
    let rows = [
        successful(3, value(b"abc")),
        successful(1, value(b"")),
        failed(0),
        successful(2, value(b"\0\xff")),
    ];
    assert_reads_back(&ValueType::Bytes, &rows);
}

#[test]
fn mixed_stages() {
    let rows = [
        successful(0, Sample::Bytes(Bytes::from_static(b"object"))),
        successful(1, Sample::Image(Image::new(1, 1, vec![1, 2, 3]).unwrap())),
        successful(2, Sample::Tensor(tensor(DType::Bf16, &[2, 2], 0))),
        failed(3),
        failed(4),
        successful(5, Sample::Tensor(tensor(DType::I8, &[], 0).with_scale(Some(2.5)))),
    ];
    assert_reads_back(&ValueType::Any, &rows);
}

#[test]
fn answers_without_rows_are_valid() {
    for value_type in [ValueType::Bytes, ValueType::Any] {
        let (rows, end) = read([write(&value_type, &[], 1)]);
        end.unwrap();
        assert!(rows.is_empty());
    }
}

#[test]
fn the_type_follows_from_the_stages() {
    let tensor = |dtype, quantized| {
        Kind::Tensor(TensorKind {
            dtype,
            layout: Layout::Chw,
            shape: vec![Some(3), Some(8), Some(8)],
            quantized,
        })
    };
    let image = |side| {
        Kind::Image(ImageKind {
            width: side,
            height: side,
        })
    };
    // The stages of `decode | resize(8, 8) | to_float | quantize(int8)`.
    let kinds = [
        Kind::object(),
        image(None),
        image(Some(8)),
        tensor(DType::F32, false),
        tensor(DType::I8, true),
    ];
    let value_type = |stages: &[usize]| ValueType::for_kinds(stages.iter().map(|stage| &kinds[*stage]));
    assert_eq!(value_type(&[0]), ValueType::Bytes);
    assert_eq!(value_type(&[1]), ValueType::Any, "the shape depends on the photo");
    let image = FixedShape {
        dtype: DType::U8,
        layout: Layout::Hwc,
        shape: vec![8, 8, 3],
        quantized: false,
        image: true,
    };
    assert_eq!(value_type(&[2]), ValueType::Fixed(image.clone()));
    assert_eq!(value_type(&[2, 2]), ValueType::Fixed(image));
    assert_eq!(value_type(&[2, 3]), ValueType::Any);
    assert_eq!(value_type(&[0, 2]), ValueType::Any);
    assert_eq!(value_type(&[]), ValueType::Any);
    let ValueType::Fixed(codes) = value_type(&[4]) else {
        panic!("{:?}", value_type(&[4]))
    };
    assert!(codes.quantized && codes.dtype == DType::I8);
}

#[test]
fn the_start_has_engine_and_type() {
    let value_type = fixed(&Sample::Tensor(tensor(DType::Bf16, &[3], 0)));
    let writer = writer(&value_type, Compression::None, false);
    let mut reader = BatchReader::new(Limits::default());
    assert_eq!((reader.engine(), reader.value_type()), (None, None));
    assert!(reader.push(writer.start()).unwrap().is_empty());
    assert_eq!(
        (reader.engine(), reader.value_type()),
        (Some("none"), Some(&value_type))
    );
}

#[test]
fn failed_rows_of_large_arrays_are_small_on_the_wire() {
    let value = Sample::Tensor(tensor(DType::F32, &[3, 224, 224], 0));
    let rows: Vec<Row> = (0..300).map(failed).collect();
    let stream = write(&fixed(&value), &rows, rows.len());
    assert!(
        stream.len() < 2_000_000,
        "{} bytes instead of {}",
        stream.len(),
        value.bytes() * 300
    );
    let (found, end) = read(chunks(stream, &[10_000]));
    end.unwrap();
    assert_eq!(found, rows);
}

/// Features after a rectifier: half of them are zeros.
#[test]
fn sparse_values_shrink_with_compression() {
    let features = |row: u32, count: usize| {
        let element = |index: usize| match (index * 7919 + row as usize) % 64 {
            part @ 32.. => f32::from(u8::try_from(part).unwrap()).sqrt(),
            _ => 0.0,
        };
        let elements = (0..count)
            .flat_map(|index| element(index).to_le_bytes())
            .collect();
        Tensor::new(DType::F32, Layout::Flat, vec![count], Buffer::from_vec(elements)).unwrap()
    };
    // The last ones exceed the maximum compressed size, and are sent uncompressed.
    for (count, shrink) in [(1280, true), (150_528, true), (300_000, false)] {
        let rows: Vec<Row> = (0..6)
            .map(|row| successful(row, Sample::Tensor(features(row, count))))
            .chain([failed(6)])
            .collect();
        let value_type = fixed(rows[0].value.as_ref().unwrap());
        let plain = write(&value_type, &rows, 3);
        let shrunk = write_by(writer(&value_type, Compression::Lz4, false), &rows, 3);
        assert_eq!(
            shrunk.len() < plain.len() / 2,
            shrink,
            "{} of {}",
            shrunk.len(),
            plain.len()
        );
        let (found, end) = read([shrunk]);
        end.unwrap();
        assert_eq!(found, rows);
    }
}

#[test]
fn long_errors_are_truncated() {
    let value = Sample::Tensor(tensor(DType::F32, &[3, 224, 224], 0));
    let message = |row: u32| {
        (0..5000_u32)
            .map(|n| char::from_u32(0x100 + (n * n + row) % 0x700).unwrap())
            .collect::<String>()
    };
    let rows: Vec<Row> = (0..100)
        .map(|row| Row {
            row,
            stage: 0,
            seconds: 0.0,
            cache: CacheStatus::Computed,
            value: Err(RowError::new("InternalError", message(row))),
            columns: Vec::new(),
            stored: None,
        })
        .collect();
    let (found, end) = read([write(&fixed(&value), &rows, rows.len())]);
    end.unwrap();
    assert_eq!(found.len(), 100);
    for (row, found) in found.into_iter().enumerate() {
        let error = found.value.unwrap_err();
        assert!(
            (4090..=4096).contains(&error.to_string().len()),
            "{}",
            error.to_string().len()
        );
        assert!(message(u32::try_from(row).unwrap()).starts_with(&error.message));
    }
}

#[test]
fn small_rows_share_a_record_batch_and_large_ones_do_not() {
    let sizes = [24, 24, 24, 24, 100, 100, 24].map(|kilobytes| kilobytes << 10);
    let mut writer = writer(&ValueType::Bytes, Compression::None, false);
    let mut reader = BatchReader::new(Limits::default());
    reader.push(writer.start()).unwrap();
    let rows: Vec<Row> = (0..)
        .zip(sizes)
        .map(|(row, size)| successful(row, Sample::Bytes(vec![7; size].into())))
        .collect();
    let arrivals: Vec<usize> = (writer.rows(rows).unwrap().into_iter())
        .flat_map(|part| chunks(part, &[1 << 10]))
        .map(|chunk| reader.push(chunk).unwrap().len())
        .filter(|rows| *rows > 0)
        .collect();
    assert_eq!(arrivals, [2, 2, 1, 1, 1], "at most 64 KiB per record batch");
}

#[test]
fn values_share_the_memory_of_the_stream() {
    let value = |row| Sample::Tensor(tensor(DType::U8, &[5000], row));
    let stream = write(
        &fixed(&value(0)),
        &[successful(0, value(0)), successful(1, value(1))],
        2,
    );
    let range = stream.as_ptr_range();
    for row in read([stream.clone()]).0 {
        let Ok(Sample::Tensor(tensor)) = row.value else {
            panic!("{row:?}")
        };
        assert!(range.contains(&tensor.data().as_ptr()));
    }
}

#[test]
fn values_of_another_type_are_internal_errors() {
    let value_type = fixed(&Sample::Tensor(tensor(DType::F32, &[2], 0)));
    let wrong_values = [
        Sample::Tensor(tensor(DType::F32, &[3], 0)),
        Sample::Tensor(tensor(DType::I32, &[2], 0)),
        Sample::Tensor(tensor(DType::F32, &[2], 0).with_scale(Some(1.0))),
        Sample::Bytes(Bytes::from_static(b"12345678")),
    ];
    for value in wrong_values {
        let mut writer = writer(&value_type, Compression::None, false);
        assert_eq!(
            writer.rows(vec![successful(0, value)]).unwrap_err().kind(),
            ErrorKind::Internal
        );
    }
}
