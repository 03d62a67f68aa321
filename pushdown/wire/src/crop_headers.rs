//! The headers of an answer with a cropped JPEG: where it lies in the whole image.

use pushdown_core::{CropPosition, CroppedJpeg, Error, Result, Sample};

use super::{ObjectForm, header};

/// The headers of a cropped JPEG at this position.
pub(super) fn metadata(position: CropPosition) -> Vec<(&'static str, String)> {
    vec![
        (header::KIND, "bytes".to_owned()),
        (header::FORM, ObjectForm::CroppedJpeg.to_string()),
        (header::CROP_X, position.crop_x.to_string()),
        (header::CROP_Y, position.crop_y.to_string()),
        (header::IMAGE_WIDTH, position.image_width.to_string()),
        (header::IMAGE_HEIGHT, position.image_height.to_string()),
    ]
}

/// Bytes with what the headers say about their form.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for an unknown form, and for a position that is missing or no number;
/// [`Undecodable`](pushdown_core::ErrorKind::Undecodable) for one outside of the image.
pub(super) fn with_position<'a>(sample: Sample, header: impl Fn(&str) -> Option<&'a str>) -> Result<Sample> {
    let (Some(form), Sample::Bytes(bytes)) = (header(header::FORM), &sample) else {
        return Ok(sample);
    };
    let ObjectForm::CroppedJpeg = form.parse()?;
    let number = |name: &str| {
        let number = header(name).and_then(|text| text.parse().ok());
        number.ok_or_else(|| Error::wire(format!("invalid cropped JPEG: expected a number in {name}")))
    };
    let position = CropPosition {
        crop_x: number(header::CROP_X)?,
        crop_y: number(header::CROP_Y)?,
        image_width: number(header::IMAGE_WIDTH)?,
        image_height: number(header::IMAGE_HEIGHT)?,
    };
    CroppedJpeg::new(bytes.clone(), position).map(Sample::CroppedJpeg)
}
