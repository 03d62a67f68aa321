//! Groups of steps that run as one, with the same result bit for bit.
//!
//! The property test of law 1 holds each group against its parts.

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

/// Two or more steps that can be computed together.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// How many steps the group covers.
    pub(crate) steps: usize,
    work: Work<'a>,
}

#[derive(Debug)]
enum Work<'a> {
    /// Decoding only what is looked at behind it, of an image of this width and height.
    Decode(&'a Decode, (u32, u32), Motion<'a>),
    /// Resizing only what a following crop keeps.
    Move(Motion<'a>),
    /// Both steps of a pixel by one look-up: a pixel has 256 values.
    ToFloatNormalize(&'a Normalize),
    /// Layers behind one another of a model: nothing is cut that need not be.
    Layers(ModelStep),
}

/// Steps that keep a part of an image.
#[derive(Debug)]
enum Motion<'a> {
    Cut(Rectangle<'a>),
    ResizeCut(&'a Resize, Rectangle<'a>),
    RandomCrop(&'a RandomCrop),
    RandomResizedCrop(&'a RandomResizedCrop),
}

/// A crop of either form.
#[derive(Debug)]
enum Rectangle<'a> {
    Fixed(&'a Crop),
    Center(&'a CenterCrop),
}

/// The group that `steps` start with, for this input.
pub(crate) fn group<'a>(steps: &'a [Step], input: &Sample) -> Option<Group<'a>> {
    let (steps, work) = match steps {
        [Step::ToFloat(_), Step::Normalize(normalize), ..] => {
            let Sample::Image(_) = input else { return None };
            (2, Work::ToFloatNormalize(normalize))
        }
        [Step::Model(first), rest @ ..] => {
            let layers = layers(first, rest)?;
            (layers.0, Work::Layers(layers.1))
        }
        [Step::Decode(decode), rest @ ..] => {
            let Sample::Bytes(object) = input else { return None };
            let (steps, motion) = motion(rest)?;
            // Where the size is not known beforehand, neither is what the motion makes of it: limits come first.
            let size = decode.divisible(object)?;
            (1 + steps, Work::Decode(decode, size, motion))
        }
        // Alone, a motion is a step like any other.
        _ => match motion(steps)? {
            (1, _) => return None,
            (steps, motion) => (steps, Work::Move(motion)),
        },
    };
    Some(Group { steps, work })
}

/// The first layers of a model in `steps`: where they start, how many steps they are, and all of them as one.
pub(crate) fn first_layers(steps: &[Step]) -> Option<(usize, usize, ModelStep)> {
    steps.iter().enumerate().find_map(|(start, step)| {
        let Step::Model(first) = step else { return None };
        let (count, all) = layers(first, &steps[start + 1..]).unwrap_or_else(|| (1, first.clone()));
        Some((start, count, all))
    })
}

/// All the layers of one model that `first` and the steps behind it come to, where they are several steps.
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

fn motion(steps: &[Step]) -> Option<(usize, Motion<'_>)> {
    Some(match steps {
        [Step::Resize(resize), crop, ..] => (2, Motion::ResizeCut(resize, rectangle(crop)?)),
        [Step::RandomCrop(crop), ..] => (1, Motion::RandomCrop(crop)),
        [Step::RandomResizedCrop(crop), ..] => (1, Motion::RandomResizedCrop(crop)),
        [crop, ..] => (1, Motion::Cut(rectangle(crop)?)),
        [] => return None,
    })
}

fn rectangle(step: &Step) -> Option<Rectangle<'_>> {
    match step {
        Step::Crop(crop) => Some(Rectangle::Fixed(crop)),
        Step::CenterCrop(crop) => Some(Rectangle::Center(crop)),
        _ => None,
    }
}

// === impl Group ===

impl Group<'_> {
    /// The layers that it is, if it is layers.
    pub(crate) const fn layers(&self) -> Option<&ModelStep> {
        match &self.work {
            Work::Layers(layers) => Some(layers),
            _ => None,
        }
    }

    /// Runs the group on the input of its first step; `scope` is that of its last, the only one that may be random.
    pub(crate) fn apply(&self, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
        match (&self.work, sample) {
            (Work::Decode(decode, size, motion), Sample::Bytes(object)) => {
                motion.decode(decode, *size, object, scope).map(Sample::Image)
            }
            (Work::Move(motion), Sample::Image(image)) => motion.apply(image, scope).map(Sample::Image),
            (Work::ToFloatNormalize(normalize), Sample::Image(image)) => {
                normalize_pixels(&image, normalize).map(Sample::Tensor)
            }
            (Work::Layers(layers), Sample::Tensor(tensor)) => layers.run(tensor).map(Sample::Tensor),
            _ => Err(Error::wire("the steps take another kind of value")),
        }
    }
}

// === impl Motion ===

impl Motion<'_> {
    /// Decodes what the motion looks at and moves it.
    fn decode(
        &self,
        decode: &Decode,
        (width, height): (u32, u32),
        object: Bytes,
        scope: &Scope<'_>,
    ) -> Result<Image> {
        match self.geometry(width, height, scope) {
            Ok(Some(geometry)) => {
                let window = decode.part(&object, scope, geometry.seen(width, height))?;
                Ok(geometry.apply(&window))
            }
            // An error of the motion has to wait: the object may be worse.
            Ok(None) | Err(_) => self.apply(decode.apply(object, scope)?, scope),
        }
    }

    fn apply(&self, image: Image, scope: &Scope<'_>) -> Result<Image> {
        match (self.geometry(image.width(), image.height(), scope)?, self) {
            (Some(geometry), _) => Ok(geometry.apply(&Window::whole(image))),
            (None, Self::ResizeCut(resize, rectangle)) => {
                let resized = resize.apply(image, scope)?;
                let cut = rectangle.of(resized.width(), resized.height());
                Ok(Geometry::cut(cut).apply(&Window::whole(resized)))
            }
            (None, _) => Err(Error::internal("a crop has a place in any image")),
        }
    }

    /// What the steps do to an image of `width` x `height`; `None` where they do not come to one motion.
    fn geometry(&self, width: u32, height: u32, scope: &Scope<'_>) -> Result<Option<Geometry>> {
        match self {
            Self::Cut(rectangle) => Ok(Some(Geometry::cut(rectangle.of(width, height)))),
            Self::ResizeCut(resize, rectangle) => {
                let (wide, high) = resize.size_of(width, height);
                // A crop may reach beyond the image: its padding is not worth a path of its own.
                let keep = Region::within(rectangle.of(wide, high), wide, high);
                Ok(keep.and_then(|keep| resize.geometry(width, height, keep)))
            }
            Self::RandomCrop(crop) => crop.geometry(width, height, scope).map(Some),
            Self::RandomResizedCrop(crop) => Ok(Some(crop.geometry(width, height, scope))),
        }
    }
}

// === impl Rectangle ===

impl Rectangle<'_> {
    fn of(&self, width: u32, height: u32) -> (i64, i64, u32, u32) {
        match self {
            Self::Fixed(crop) => crop.rectangle(),
            Self::Center(crop) => crop.rectangle(width, height),
        }
    }
}
