//! What the planner knows of [cropped JPEGs](Stage::CroppedJpeg) before any has arrived.

use pushdown::{Pipeline, Sample, Subsampling, plan::Stage};

/// Draws over which the share of a random region is averaged.
const DRAWS: u32 = 1024;
/// Width and height of a usual photo, in pixels: about the mean of ImageNet. The share depends little on them.
const PHOTO_SIZE: (u32, u32) = (500, 375);

/// What a pipeline reads of JPEGs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CropEstimate {
    /// The number of first steps that fix the region. A crop is of use for a host that runs all of them.
    pub(super) steps: usize,
    /// The expected ratio of the blocks of the region to all blocks, from 0 to 1.
    pub(super) share: f64,
}

impl CropEstimate {
    /// `None` if nothing that this pipeline reads is ever cropped.
    pub(super) fn new(pipeline: &Pipeline) -> Option<Self> {
        let share = pipeline.expected_crop_share(PHOTO_SIZE, Subsampling::YUV_420, DRAWS)?;
        Some(Self {
            steps: pipeline.crop_steps()?,
            share,
        })
    }
}

/// The stage of a value that has arrived after this number of steps.
pub(crate) const fn arrived_stage(steps: usize, sample: &Sample) -> Stage {
    match sample {
        Sample::CroppedJpeg(_) => Stage::CroppedJpeg,
        _ => Stage::after(steps),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pushdown::{CropPosition, CroppedJpeg};

    use super::*;

    #[test]
    fn the_share_follows_from_the_region_of_the_pipeline() {
        let estimate = |text: &str| CropEstimate::new(&Pipeline::parse(text).unwrap());
        let random = estimate("decode | random_resized_crop(224) | to_float").unwrap();
        assert_eq!(random.steps, 2);
        assert!((0.40..0.48).contains(&random.share), "{random:?}");
        let evaluation = estimate("decode | resize(short=256) | center_crop(224) | to_float").unwrap();
        assert_eq!(evaluation.steps, 3);
        assert!((0.55..0.64).contains(&evaluation.share), "{evaluation:?}");
        assert_eq!(estimate("decode | resize(224, 224) | to_float"), None);
    }

    #[test]
    fn a_crop_does_not_arrive_as_an_object() {
        let position = CropPosition {
            crop_x: 16,
            crop_y: 0,
            image_width: 500,
            image_height: 375,
        };
        let crop = CroppedJpeg::new(Bytes::from_static(b"JPEG"), position).unwrap();
        assert_eq!(arrived_stage(0, &Sample::CroppedJpeg(crop)), Stage::CroppedJpeg);
        let object = Sample::Bytes(Bytes::from_static(b"JPEG"));
        assert_eq!(arrived_stage(0, &object), Stage::Object);
        assert_eq!(arrived_stage(4, &object), Stage::After(4));
    }
}
