//! Groups of steps that run as one, with the same result bit for bit.
//!
//! A new group is one variant here; the property test of law 1 holds each against its parts.

use crate::{
    Error, Image, Result, Sample, Step,
    step::{
        image::{CenterCrop, Crop, Filter, Region, Resize, crop, resample, resample_region},
        tensor::{Normalize, normalize_pixels},
    },
};

/// Two or more steps that can be computed together.
#[derive(Debug)]
pub(crate) enum Group<'a> {
    /// Resizing only what a following crop keeps.
    ResizeCrop(&'a Resize, Filter, Rectangle<'a>),
    /// Both steps of a pixel by one look-up: a pixel has 256 values.
    ToFloatNormalize(&'a Normalize),
}

/// The group that `steps` start with.
pub(crate) fn group(steps: &[Step]) -> Option<Group<'_>> {
    match steps {
        [Step::Resize(resize), Step::Crop(crop), ..] => Some(Group::ResizeCrop(
            resize,
            resize.antialiased_filter()?,
            Rectangle::Fixed(crop),
        )),
        [Step::Resize(resize), Step::CenterCrop(crop), ..] => Some(Group::ResizeCrop(
            resize,
            resize.antialiased_filter()?,
            Rectangle::Center(crop),
        )),
        [Step::ToFloat(_), Step::Normalize(normalize), ..] => Some(Group::ToFloatNormalize(normalize)),
        _ => None,
    }
}

impl Group<'_> {
    /// How many steps a group covers: every one so far has two.
    pub(crate) const STEPS: usize = 2;

    /// Runs the group on the input of its first step.
    pub(crate) fn apply(&self, sample: Sample) -> Result<Sample> {
        let Sample::Image(image) = sample else {
            return Err(Error::wire(
                "an image step takes Image, found another kind of value",
            ));
        };
        match self {
            Self::ResizeCrop(resize, filter, crop) => {
                Ok(Sample::Image(resize_crop(&image, resize, *filter, crop)))
            }
            Self::ToFloatNormalize(normalize) => normalize_pixels(&image, normalize).map(Sample::Tensor),
        }
    }
}

/// A crop of either form.
#[derive(Debug)]
pub(crate) enum Rectangle<'a> {
    Fixed(&'a Crop),
    Center(&'a CenterCrop),
}

impl Rectangle<'_> {
    fn of(&self, width: u32, height: u32) -> (i64, i64, u32, u32) {
        match self {
            Self::Fixed(crop) => crop.rectangle(),
            Self::Center(crop) => crop.rectangle(width, height),
        }
    }
}

fn resize_crop(image: &Image, resize: &Resize, filter: Filter, rectangle: &Rectangle<'_>) -> Image {
    let (width, height) = resize.size_of(image.width(), image.height());
    let (x, y, kept_width, kept_height) = rectangle.of(width, height);
    match (u32::try_from(x), u32::try_from(y)) {
        (Ok(x), Ok(y))
            if u64::from(x) + u64::from(kept_width) <= u64::from(width)
                && u64::from(y) + u64::from(kept_height) <= u64::from(height) =>
        {
            let region = Region {
                x,
                y,
                width: kept_width,
                height: kept_height,
            };
            resample_region(image, width, height, filter, region)
        }
        // The crop reaches beyond the image: its padding is not worth a path of its own.
        _ => {
            let resized = resample(image, width, height, filter, true);
            crop(&resized, x, y, kept_width, kept_height)
        }
    }
}
