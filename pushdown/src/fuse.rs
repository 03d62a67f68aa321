//! Fused steps: consecutive steps computed as one, with bit-identical results.
//!
//! The property test of law 1 compares each fusion with its steps.

use bytes::Bytes;

use crate::{
    CroppedJpeg, Error, Image, ImageHeader, Result, Sample, Step,
    step::{
        Operator, Scope,
        augment::{RandomCrop, RandomResizedCrop},
        image::{CenterCrop, Crop, Decode, Geometry, Rectangle, Region, Resize, Window},
        tensor::{Normalize, normalize_pixels},
    },
};

/// Two or more steps computed as one.
#[derive(Debug)]
pub(crate) struct FusedSteps<'a> {
    /// Number of steps.
    pub(crate) step_count: usize,
    work: FusedWork<'a>,
}

#[derive(Debug)]
enum FusedWork<'a> {
    /// Decodes only the pixels that the transform reads, of an image of this width and height.
    Decode(RegionDecode<'a>, (u32, u32)),
    /// Resizes only the pixels that a following crop keeps.
    Transform(Transform<'a>),
    /// Both steps by one table look-up per pixel, since a pixel has 256 values.
    ToFloatNormalize(&'a Normalize),
    /// Consecutive steps of one operator as a single step, such as the layers of one model, run without the cuts between them.
    Joined(Step),
}

/// `decode` and the steps after it that keep a part of the image.
#[derive(Debug)]
pub(crate) struct RegionDecode<'a> {
    pub(crate) decode: &'a Decode,
    transform: Transform<'a>,
}

/// Steps that keep a part of an image.
#[derive(Debug)]
enum Transform<'a> {
    Crop(CropStep<'a>),
    ResizeCrop(&'a Resize, CropStep<'a>),
    RandomCrop(&'a RandomCrop),
    RandomResizedCrop(&'a RandomResizedCrop),
}

/// A crop of fixed size.
#[derive(Debug)]
enum CropStep<'a> {
    Positioned(&'a Crop),
    Center(&'a CenterCrop),
}

/// Fuses the first of `steps`, for this input.
pub(crate) fn fuse<'a>(steps: &'a [Step], input: &Sample) -> Option<FusedSteps<'a>> {
    let (first, rest) = steps.split_first()?;
    if let Some((step_count, step)) = joined(first, rest) {
        let work = FusedWork::Joined(step);
        return Some(FusedSteps { step_count, work });
    }
    let (step_count, work) = match steps {
        [Step::ToFloat(_), Step::Normalize(normalize), ..] => {
            let Sample::Image(_) = input else { return None };
            (2, FusedWork::ToFloatNormalize(normalize))
        }
        [Step::Decode(_), ..] => {
            let (step_count, fused) = region_decode(steps)?;
            let header = match input {
                Sample::Bytes(object) => ImageHeader::read(object)?,
                Sample::CroppedJpeg(crop) => crop.header(),
                _ => return None,
            };
            // Without the size of the image, the size of the result is unknown, and limits have to be checked first.
            let size = fused.decode.size_for_regions(&header)?;
            (step_count, FusedWork::Decode(fused, size))
        }
        // A single step needs no fusion.
        _ => match transform(steps)? {
            (1, _) => return None,
            (steps, transform) => (steps, FusedWork::Transform(transform)),
        },
    };
    Some(FusedSteps { step_count, work })
}

/// The steps at the start of `steps` that decode a region of an image, and their number.
pub(crate) fn region_decode(steps: &[Step]) -> Option<(usize, RegionDecode<'_>)> {
    let [Step::Decode(decode), rest @ ..] = steps else {
        return None;
    };
    let (steps, transform) = transform(rest)?;
    Some((1 + steps, RegionDecode { decode, transform }))
}

/// `first` and the following steps that can be joined with it, as one step. `None` for a single step.
pub(crate) fn joined(first: &Step, rest: &[Step]) -> Option<(usize, Step)> {
    let mut all = first.joined(rest.first()?)?;
    let mut steps = 2;
    while let Some(more) = rest.get(steps - 1).and_then(|next| all.joined(next)) {
        (all, steps) = (more, steps + 1);
    }
    Some((steps, all))
}

fn transform(steps: &[Step]) -> Option<(usize, Transform<'_>)> {
    Some(match steps {
        [Step::Resize(resize), crop, ..] => (2, Transform::ResizeCrop(resize, crop_step(crop)?)),
        [Step::RandomCrop(crop), ..] => (1, Transform::RandomCrop(crop)),
        [Step::RandomResizedCrop(crop), ..] => (1, Transform::RandomResizedCrop(crop)),
        [crop, ..] => (1, Transform::Crop(crop_step(crop)?)),
        [] => return None,
    })
}

fn crop_step(step: &Step) -> Option<CropStep<'_>> {
    match step {
        Step::Crop(crop) => Some(CropStep::Positioned(crop)),
        Step::CenterCrop(crop) => Some(CropStep::Center(crop)),
        _ => None,
    }
}

impl FusedSteps<'_> {
    /// The step that the fused steps are joined to, if they are.
    pub(crate) const fn joined(&self) -> Option<&Step> {
        match &self.work {
            FusedWork::Joined(step) => Some(step),
            _ => None,
        }
    }

    /// Runs the fused steps on the input of the first one. `scope` is that of the last one, the only one that may be random.
    pub(crate) fn apply(&self, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
        match (&self.work, sample) {
            (FusedWork::Decode(fused, size), Sample::Bytes(object)) => {
                fused.apply(*size, object, scope).map(Sample::Image)
            }
            (FusedWork::Decode(fused, size), Sample::CroppedJpeg(crop)) => {
                fused.apply_to_crop(*size, &crop, scope).map(Sample::Image)
            }
            (FusedWork::Transform(transform), Sample::Image(image)) => {
                transform.apply(image, scope).map(Sample::Image)
            }
            (FusedWork::ToFloatNormalize(normalize), Sample::Image(image)) => {
                normalize_pixels(&image, normalize).map(Sample::Tensor)
            }
            (FusedWork::Joined(step), sample) => step.apply(sample, scope),
            _ => Err(Error::wire("the steps do not accept this kind of value")),
        }
    }
}

impl RegionDecode<'_> {
    /// The region that is read of the decoded image; `None` if all of it is read, or if the transform fails.
    pub(crate) fn region(&self, header: &ImageHeader, scope: &Scope<'_>) -> Option<Region> {
        let (width, height) = self.decode.size_for_regions(header)?;
        let geometry = self.transform.geometry(width, height, scope).ok()??;
        Some(geometry.input_region(width, height))
    }

    /// Decodes the pixels that the transform reads, and applies it.
    fn apply(&self, (width, height): (u32, u32), object: Bytes, scope: &Scope<'_>) -> Result<Image> {
        let (decode, transform) = (self.decode, &self.transform);
        match transform.geometry(width, height, scope) {
            Ok(Some(geometry)) => {
                let window = decode.decode_region(&object, scope, geometry.input_region(width, height))?;
                Ok(geometry.apply(&window))
            }
            // Decoding runs first, since its errors take precedence over those of the transform.
            Ok(None) | Err(_) => transform.apply(decode.apply(object, scope)?, scope),
        }
    }

    /// The same from a cropped JPEG.
    fn apply_to_crop(
        &self,
        (width, height): (u32, u32),
        crop: &CroppedJpeg,
        scope: &Scope<'_>,
    ) -> Result<Image> {
        let geometry = self.transform.geometry(width, height, scope)?.ok_or_else(|| {
            Error::undecodable(format!(
                "cropped JPEG: expected the whole object, since the steps read all of its {width} x {height} pixels"
            ))
        })?;
        let region = geometry.input_region(width, height);
        let window = self.decode.decode_crop(crop, scope, region)?;
        Ok(geometry.apply(&window))
    }
}

impl Transform<'_> {
    fn apply(&self, image: Image, scope: &Scope<'_>) -> Result<Image> {
        match (self.geometry(image.width(), image.height(), scope)?, self) {
            (Some(geometry), _) => Ok(geometry.apply(&Window::whole(image))),
            (None, Self::ResizeCrop(resize, crop)) => {
                let resized = resize.apply(image, scope)?;
                let cut = crop.rectangle(resized.width(), resized.height());
                Ok(Geometry::crop(cut).apply(&Window::whole(resized)))
            }
            (None, _) => Err(Error::internal("a crop has no geometry")),
        }
    }

    /// The geometry of the steps for an image of `width` x `height`; `None` if they are not one transform.
    fn geometry(&self, width: u32, height: u32, scope: &Scope<'_>) -> Result<Option<Geometry>> {
        match self {
            Self::Crop(crop) => Ok(Some(Geometry::crop(crop.rectangle(width, height)))),
            Self::ResizeCrop(resize, crop) => {
                let (wide, high) = resize.size_of(width, height);
                // `None` for a crop that exceeds the image: padding is not fused.
                let keep = Region::within(crop.rectangle(wide, high), wide, high);
                Ok(keep.and_then(|keep| resize.geometry(width, height, keep)))
            }
            Self::RandomCrop(crop) => crop.geometry(width, height, scope).map(Some),
            Self::RandomResizedCrop(crop) => Ok(Some(crop.geometry(width, height, scope))),
        }
    }
}

impl CropStep<'_> {
    fn rectangle(&self, width: u32, height: u32) -> Rectangle {
        match self {
            Self::Positioned(crop) => crop.rectangle(),
            Self::Center(crop) => crop.rectangle(width, height),
        }
    }
}
