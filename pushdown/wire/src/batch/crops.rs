//! The columns that say where a cropped JPEG lies in the whole image: null in a row with another value.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch, UInt32Array, cast::AsArray as _, types::UInt32Type};

use super::RowError;
use pushdown_core::{CropPosition, CroppedJpeg, Error, Result, Sample};

/// The names of the columns.
pub(super) const NAMES: [&str; 4] = ["crop_x", "crop_y", "image_width", "image_height"];

/// The position of a value, if it is a cropped JPEG.
pub(super) const fn position(sample: &Sample) -> Option<CropPosition> {
    match sample {
        Sample::CroppedJpeg(crop) => Some(crop.position()),
        _ => None,
    }
}

/// The columns of these rows.
pub(super) fn columns(positions: &[Option<CropPosition>]) -> [ArrayRef; NAMES.len()] {
    let fields: [fn(&CropPosition) -> u32; NAMES.len()] = [
        |position| position.crop_x,
        |position| position.crop_y,
        |position| position.image_width,
        |position| position.image_height,
    ];
    fields.map(|field| {
        let numbers = positions.iter().map(|position| position.as_ref().map(field));
        Arc::new(numbers.collect::<UInt32Array>()) as ArrayRef
    })
}

/// A value with what these columns say about its row; an error of the row for a position outside of the image.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a part of a position, and for a position of a value that is not bytes
/// of stage 0.
pub(super) fn with_position(
    sample: Sample,
    stage: u8,
    columns: &RecordBatch,
    row: usize,
) -> Result<Result<Sample, RowError>> {
    let invalid =
        || Error::wire("invalid row: expected all columns about a cropped JPEG of stage 0, or none");
    let mut numbers = [None; NAMES.len()];
    for (number, column) in numbers.iter_mut().zip(columns.columns()) {
        let column = column.as_primitive_opt::<UInt32Type>().ok_or_else(invalid)?;
        *number = column.is_valid(row).then(|| column.value(row));
    }
    match (numbers, sample) {
        ([None, None, None, None], sample) => Ok(Ok(sample)),
        ([Some(crop_x), Some(crop_y), Some(image_width), Some(image_height)], Sample::Bytes(bytes))
            if stage == 0 =>
        {
            let position = CropPosition {
                crop_x,
                crop_y,
                image_width,
                image_height,
            };
            let crop = CroppedJpeg::new(bytes, position);
            Ok(crop
                .map(Sample::CroppedJpeg)
                .map_err(|error| RowError::from(&error)))
        }
        _ => Err(invalid()),
    }
}
