//! Truncated, damaged and hostile answers.

use bytes::Bytes;

use super::{failed, fixed, read, successful, tensor, write, writer};
use crate::batch::{BatchReader, Compression, ValueType};
use pushdown_core::{DType, ErrorKind, Limits, Sample};

#[test]
fn truncated_streams_are_errors() {
    let value = |row| Sample::Tensor(tensor(DType::F32, &[5], row));
    let rows = [successful(0, value(0)), failed(1), successful(2, value(2))];
    let stream = write(&fixed(&value(0)), &rows, 1);
    for length in 0..stream.len() {
        let (found, end) = read([stream.slice(..length)]);
        let error = end.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidWire);
        assert!(
            error.to_string().contains("ended early"),
            "cut to {length}: {error}"
        );
        assert_eq!(found, rows[..found.len()], "complete rows only, in order");
    }
    let (_, end) = read([stream, Bytes::from_static(b"\0")]);
    assert!(end.unwrap_err().to_string().contains("after the end"));
}

#[test]
fn a_failed_stream_stays_failed() {
    let stream = write(&ValueType::Bytes, &[failed(0)], 1);
    let mut reader = BatchReader::new(Limits::default());
    assert!(reader.push(Bytes::from_static(b"HTTP/1.1 200 OK")).is_err());
    assert!(reader.push(stream).is_err());
    assert_eq!(reader.finish().unwrap_err().kind(), ErrorKind::InvalidWire);
}

#[test]
fn limits_hold() {
    let value = Sample::Bytes(vec![0; 100].into());
    for value_type in [ValueType::Bytes, ValueType::Any] {
        let limits = Limits {
            max_object_bytes: 99,
            max_value_bytes: 99,
            ..Limits::default()
        };
        let error = BatchReader::new(limits)
            .push(write(&value_type, &[successful(0, value.clone())], 1))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
}

#[test]
fn false_lengths_cost_no_memory() {
    let value_type = fixed(&Sample::Tensor(tensor(DType::U8, &[2], 0)));
    let start = writer(&value_type, Compression::None, false).start();
    // A header of 4 GiB, then one of 1 MiB that never arrives.
    for (length, expected) in [(u32::MAX, "4294967295 bytes"), (1 << 20, "ended early")] {
        let prefix = [[0xff; 4], length.to_le_bytes()].concat();
        let (_, end) = read([start.clone(), prefix.into()]);
        assert!(end.unwrap_err().to_string().contains(expected));
    }
}
