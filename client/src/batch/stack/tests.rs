use pushdown::{Image, wire::RowError};

use super::*;
use crate::batch::Row;

fn batch(values: Vec<Result<Sample, RowError>>) -> Batch {
    let rows = values.into_iter().enumerate().map(|(index, value)| Row {
        position: index as u64,
        index,
        key: format!("k{index}").into(),
        member: None,
        is_padding: false,
        stage: 0,
        value,
        columns: Vec::new(),
    });
    Batch::new(0, rows.collect())
}

fn image(width: u32, fill: u8) -> Sample {
    Sample::Image(Image::new(width, 1, vec![fill; width as usize * 3]).unwrap())
}

#[test]
fn values_are_consecutive_and_errors_leave_no_gap() {
    let stacked = batch(vec![
        Ok(image(2, 1)),
        Err(RowError::new("NoSuchKey", "gone")),
        Ok(image(2, 3)),
    ])
    .stack()
    .unwrap();
    let stacked = stacked.unwrap();
    assert_eq!(stacked.tensor.shape(), [2, 1, 2, 3]);
    assert_eq!(
        stacked.tensor.data().as_slice(),
        [1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3]
    );
    assert_eq!((stacked.rows, stacked.scales), (vec![0, 2], None));
}

#[test]
fn a_buffer_of_the_caller_gets_the_same_bytes() {
    let batch = batch(vec![
        Ok(image(2, 1)),
        Err(RowError::new("NoSuchKey", "gone")),
        Ok(image(2, 3)),
    ]);
    let stacked = batch.stack().unwrap().unwrap();
    let mut buffer = vec![9; 14];
    let layout = batch.stack_into(&mut buffer).unwrap().unwrap();
    assert_eq!(Some(&layout), batch.stack_layout().unwrap().as_ref());
    assert_eq!((&layout.rows, layout.bytes), (&stacked.rows, 12));
    assert_eq!(layout.shape, stacked.tensor.shape());
    assert_eq!(buffer[..12], *stacked.tensor.data().as_slice());
    assert_eq!(buffer[12..], [9, 9]);

    let mut small = vec![9; 11];
    let error = batch.stack_into(&mut small).unwrap_err().to_string();
    assert!(
        error.contains("expected a buffer of at least 12 bytes, found 11"),
        "{error}"
    );
    assert_eq!(small, [9; 11]);
}

#[test]
fn a_row_without_a_value_keeps_its_place_as_zeros() {
    let batch = batch(vec![
        Ok(image(2, 1)),
        Err(RowError::new("NoSuchKey", "gone")),
        Ok(image(2, 3)),
    ]);
    let mut buffer = vec![9; 18];
    let layout = batch.stack_rows_into(&mut buffer).unwrap().unwrap();
    assert_eq!(Some(&layout), batch.row_layout().unwrap().as_ref());
    assert_eq!((layout.shape, layout.rows), (vec![3, 1, 2, 3], vec![0, 2]));
    assert_eq!(buffer, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3]);
    assert!(batch.stack_rows_into(&mut buffer[..17]).is_err());
    let left = batch.without_errors();
    assert_eq!(
        left.rows().iter().map(|row| row.index).collect::<Vec<_>>(),
        [0, 2]
    );
}

#[test]
fn scales_are_stacked_with_their_values() {
    let code = |scale| {
        let tensor = Tensor::new(DType::I8, Layout::Flat, vec![1], Buffer::from_vec(vec![7u8])).unwrap();
        Ok(Sample::Tensor(tensor.with_scale(Some(scale))))
    };
    let stacked = batch(vec![code(0.5), code(2.0)]).stack().unwrap().unwrap();
    assert_eq!(stacked.scales, Some(vec![0.5, 2.0]));
    let failed = Err(RowError::new("NoSuchKey", "gone"));
    let layout = batch(vec![code(0.5), failed, code(2.0)])
        .row_layout()
        .unwrap()
        .unwrap();
    assert_eq!(layout.scales, Some(vec![0.5, 0.0, 2.0]));
}

#[test]
fn values_without_a_common_shape_cannot_be_stacked() {
    let error = batch(vec![Ok(image(2, 1)), Ok(image(3, 1))])
        .stack()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("found u8 [1, 3, 3] at `k1`, expected u8 [1, 2, 3]"),
        "{error}"
    );
    assert!(batch(vec![Ok(Sample::Bytes("x".into()))]).stack().is_err());
    assert_eq!(batch(vec![]).stack().unwrap(), None);
}
