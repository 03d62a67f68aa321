//! Generated answers: complete, truncated and damaged.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};

use super::{fixed, read, write_by, writer};
use crate::{
    arbitrary::{self, chunks, damage, damaged},
    batch::{CacheStatus, Compression, Row, RowError, ValueType},
};

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let value = prop_oneof![
        4 => arbitrary::sample().prop_map(Ok),
        1 => "[ -~]{0,40}".prop_map(|message| Err(RowError::new("AccessDenied", message))),
    ];
    let cache = (0..5_u8).prop_map(CacheStatus::from);
    vec((any::<u32>(), any::<u8>(), 0.0..1e3_f32, cache, value), 0..8).prop_map(|rows| {
        rows.into_iter()
            .map(|(row, stage, seconds, cache, value)| Row {
                row,
                stage,
                seconds,
                cache,
                value,
                columns: Vec::new(),
                stored: None,
            })
            .collect()
    })
}

/// A stream of values of one type, with or without the column `cache`, and its rows.
fn stream() -> impl Strategy<Value = (Bytes, Vec<Row>)> {
    let compression = prop_oneof![
        Just(Compression::None),
        Just(Compression::Lz4),
        Just(Compression::Zstd)
    ];
    let parts = (
        rows(),
        arbitrary::sample(),
        any::<bool>(),
        compression,
        any::<bool>(),
        1..9_usize,
    );
    parts.prop_map(
        |(mut rows, sample, same, compression, cache_column, chunk_rows)| {
            let value_type = if same { fixed(&sample) } else { ValueType::Any };
            if same {
                rows.iter_mut()
                    .filter_map(|row| row.value.as_mut().ok())
                    .for_each(|value| *value = sample.clone());
            }
            let stream = write_by(writer(&value_type, compression, cache_column), &rows, chunk_rows);
            if !cache_column {
                for row in &mut rows {
                    row.cache = CacheStatus::Computed;
                }
            }
            (stream, rows)
        },
    )
}

proptest! {
    #[test]
    fn written_answers_read_back((stream, rows) in stream(), lengths in vec(1..500_usize, 1..9)) {
        let (found, end) = read(chunks(stream, &lengths));
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(found, rows);
    }

    #[test]
    fn truncated_answers_are_errors((stream, rows) in stream(), cut: prop::sample::Index, length in 1..500_usize) {
        let cut = stream.slice(..cut.index(stream.len()));
        let (found, end) = read(chunks(cut, &[length]));
        prop_assert!(end.is_err());
        prop_assert_eq!(&found, &rows[..found.len()]);
    }

    #[test]
    fn damage_never_panics((stream, _) in stream(), damage in damage(), length in 1..2000_usize) {
        let _any = read(chunks(damaged(&stream, &damage), &[length]));
    }
}
