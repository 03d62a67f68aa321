//! The columns about cropped JPEGs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, UInt32Array};
use pushdown_core::{CropPosition, CroppedJpeg};

use super::{extra_columns::with_named_columns, *};

const NAMES: [&str; 4] = ["crop_x", "crop_y", "image_width", "image_height"];

/// A row of stage 0.
fn object(row: u32, value: Sample) -> Row {
    Row {
        stage: 0,
        ..successful(row, value)
    }
}

fn crop(crop_x: u32) -> Sample {
    let position = CropPosition {
        crop_x,
        crop_y: 8,
        image_width: 500,
        image_height: 375,
    };
    Sample::CroppedJpeg(CroppedJpeg::new("part".into(), position).unwrap())
}

fn writer(value_type: ValueType) -> BatchWriter {
    let columns = OptionalColumns {
        crops: true,
        ..OptionalColumns::default()
    };
    let (engine, pipeline) = (Engine::default(), digest());
    BatchWriter::new(value_type, Compression::None, &engine, &pipeline, columns).unwrap()
}

/// Whole objects of stage 0, and these columns.
fn with_columns(stages: &[u8], columns: [Vec<Option<u32>>; 4]) -> (Vec<Row>, Result<()>) {
    let rows: Vec<_> = (0..)
        .zip(stages)
        .map(|(row, stage)| Row {
            stage: *stage,
            ..object(row, Sample::Bytes("bytes".into()))
        })
        .collect();
    let stream = write(&ValueType::Bytes, &rows, rows.len());
    let named = NAMES.iter().zip(columns).map(|(name, column)| {
        let column: ArrayRef = Arc::new(UInt32Array::from(column));
        (5, (*name).to_owned(), column)
    });
    read([with_named_columns(&stream, &named.collect::<Vec<_>>())])
}

#[test]
fn whole_and_cropped_objects_share_an_answer() {
    for value_type in [ValueType::Bytes, ValueType::Any] {
        let rows = [
            object(0, crop(16)),
            object(1, Sample::Bytes("whole".into())),
            failed(2),
            object(3, crop(32)),
        ];
        for chunk_rows in [1, 4] {
            let (found, end) = read([write_by(writer(value_type.clone()), &rows, chunk_rows)]);
            end.unwrap();
            assert_eq!(found, rows);
        }
    }
}

#[test]
fn a_crop_for_which_nobody_asked_is_not_sent() {
    let mut writer = super::writer(&ValueType::Bytes, Compression::None, false);
    let error = writer.rows(vec![object(0, crop(16))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[test]
fn a_part_of_a_position_is_refused() {
    let (x, no) = (vec![Some(16)], vec![None]);
    let (_, end) = with_columns(&[0], [x.clone(), no.clone(), x.clone(), x.clone()]);
    let expected = "expected all columns about a cropped JPEG of stage 0, or none";
    assert!(end.unwrap_err().to_string().contains(expected));
    let (_, end) = with_columns(&[1], [x.clone(), x.clone(), x.clone(), x]);
    assert!(end.unwrap_err().to_string().contains(expected));
    let (found, end) = with_columns(&[1], [no.clone(), no.clone(), no.clone(), no]);
    end.unwrap();
    assert_eq!(found[0].value, Ok(Sample::Bytes("bytes".into())));
}

#[test]
fn a_position_outside_of_the_image_is_an_error_of_its_row() {
    let column = |first, second| vec![Some(first), Some(second)];
    let columns = [column(500, 16), column(0, 0), column(500, 500), column(375, 375)];
    let (found, end) = with_columns(&[0, 0], columns);
    end.unwrap();
    let error = found[0].value.as_ref().unwrap_err();
    assert_eq!(error.code, "UndecodableObject");
    let expected = "expected a position within 500 x 375 pixels, found 500, 0";
    assert!(error.message.contains(expected), "{error}");
    assert!(matches!(found[1].value, Ok(Sample::CroppedJpeg(_))));
}

#[test]
fn some_of_the_columns_are_no_position() {
    let rows = [object(0, Sample::Bytes("bytes".into()))];
    let stream = write(&ValueType::Bytes, &rows, 1);
    let number: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
    let long: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    for column in [number, long] {
        let (_, end) = read([with_named_columns(&stream, &[(5, "crop_x".to_owned(), column)])]);
        assert!(end.unwrap_err().to_string().contains("unexpected columns"));
    }
}
