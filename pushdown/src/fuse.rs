//! Fused steps: consecutive steps computed as one, with bit-identical results.
//!
//! The property test of law 1 compares each fusion with its steps.

use bytes::Bytes;

use crate::{
    Error, Image, Result, Sample, Step,
    step::{
        Operator, Scope,
        augment::{RandomCrop, RandomResizedCrop},
        image::{CenterCrop, Crop, Decode, Geometry, Region, Resize, Window},
        model::ModelStep,
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
    /// Consecutive layers of one model, run without the cuts between them.
    Layers(ModelStep),
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
    let (step_count, work) = match steps {
        [Step::ToFloat(_), Step::Normalize(normalize), ..] => {
            let Sample::Image(_) = input else { return None };
            (2, FusedWork::ToFloatNormalize(normalize))
        }
        [Step::Model(first), rest @ ..] => {
            let layers = layers(first, rest)?;
            (layers.0, FusedWork::Layers(layers.1))
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

/// The first model in `steps`: the index of its first step, the number of its consecutive steps, and all of them as one.
pub(crate) fn first_model(steps: &[Step]) -> Option<(usize, usize, ModelStep)> {
    steps.iter().enumerate().find_map(|(start, step)| {
        let Step::Model(first) = step else { return None };
        let (count, all) = layers(first, &steps[start + 1..]).unwrap_or_else(|| (1, first.clone()));
        Some((start, count, all))
    })
}

/// The consecutive steps of the same model, `first` and its successors, as one step. `None` for a single step.
fn layers(first: &ModelStep, rest: &[Step]) -> Option<(usize, ModelStep)> {
    let mut all = first.clone();
    let mut steps = 1;
    for step in rest {
        let Step::Model(next) = step else { break };
        let Some(joined) = all.joined(next) else { break };
        (all, steps) = (joined, steps + 1);
    }
    (steps > 1).then_some((steps, all))
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

// === impl FusedSteps ===

impl FusedSteps<'_> {
    /// The model step, if the fused steps are layers of a model.
    pub(crate) const fn layers(&self) -> Option<&ModelStep> {
        match &self.work {
            FusedWork::Layers(layers) => Some(layers),
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
            (FusedWork::Layers(layers), Sample::Tensor(tensor)) => layers.run(tensor).map(Sample::Tensor),
            _ => Err(Error::wire("the steps do not accept this kind of value")),
        }
    }
}

// === impl Transform ===

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

// === impl CropStep ===

impl CropStep<'_> {
    fn rectangle(&self, width: u32, height: u32) -> (i64, i64, u32, u32) {
        match self {
            Self::Positioned(crop) => crop.rectangle(),
            Self::Center(crop) => crop.rectangle(width, height),
        }
    }
}
