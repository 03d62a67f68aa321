//! Fused steps: consecutive steps computed as one, with bit-identical results.
//!
//! The property test of law 1 compares each fusion with its steps.

use bytes::Bytes;

use crate::{
    Error, Image, Result, Sample, Step,
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
    Decode(&'a Decode, (u32, u32), Transform<'a>),
    /// Resizes only the pixels that a following crop keeps.
    Transform(Transform<'a>),
    /// Both steps by one table look-up per pixel, since a pixel has 256 values.
    ToFloatNormalize(&'a Normalize),
    /// Consecutive steps of one operator as a single step, such as the layers of one model, run without the cuts between them.
    Joined(Step),
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
        [Step::Decode(decode), rest @ ..] => {
            let Sample::Bytes(object) = input else { return None };
            let (steps, transform) = transform(rest)?;
            // Without the size of the image, the size of the result is unknown, and limits have to be checked first.
            let size = decode.size_for_regions(object)?;
            (1 + steps, FusedWork::Decode(decode, size, transform))
        }
        // A single step needs no fusion.
        _ => match transform(steps)? {
            (1, _) => return None,
            (steps, transform) => (steps, FusedWork::Transform(transform)),
        },
    };
    Some(FusedSteps { step_count, work })
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
            (FusedWork::Decode(decode, size, transform), Sample::Bytes(object)) => {
                transform.decode(decode, *size, object, scope).map(Sample::Image)
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

impl Transform<'_> {
    /// Decodes the pixels that the transform reads, and applies it.
    fn decode(
        &self,
        decode: &Decode,
        (width, height): (u32, u32),
        object: Bytes,
        scope: &Scope<'_>,
    ) -> Result<Image> {
        match self.geometry(width, height, scope) {
            Ok(Some(geometry)) => {
                let window = decode.decode_region(&object, scope, geometry.input_region(width, height))?;
                Ok(geometry.apply(&window))
            }
            // Decoding runs first, since its errors take precedence over those of the transform.
            Ok(None) | Err(_) => self.apply(decode.apply(object, scope)?, scope),
        }
    }

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
