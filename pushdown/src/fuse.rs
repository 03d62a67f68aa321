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
    /// Decoding only what is looked at behind it.
    Decode(&'a Decode, Motion<'a>),
    /// Resizing only what a following crop keeps.
    Move(Motion<'a>),
    /// Both steps of a pixel by one look-up: a pixel has 256 values.
    ToFloatNormalize(&'a Normalize),
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

/// The group that `steps` start with.
pub(crate) fn group(steps: &[Step]) -> Option<Group<'_>> {
    let (steps, work) = match steps {
        [Step::ToFloat(_), Step::Normalize(normalize), ..] => (2, Work::ToFloatNormalize(normalize)),
        [Step::Decode(decode), rest @ ..] => {
            let (steps, motion) = motion(rest)?;
            (1 + steps, Work::Decode(decode, motion))
        }
        // Alone, a motion is a step like any other.
        _ => match motion(steps)? {
            (1, _) => return None,
            (steps, motion) => (steps, Work::Move(motion)),
        },
    };
    Some(Group { steps, work })
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
    /// Runs the group on the input of its first step; `scope` is that of its last, the only one that may be random.
    pub(crate) fn apply(&self, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
        match (&self.work, sample) {
            (Work::Decode(decode, motion), Sample::Bytes(object)) => {
                motion.decode(decode, object, scope).map(Sample::Image)
            }
            (Work::Move(motion), Sample::Image(image)) => motion.apply(image, scope).map(Sample::Image),
            (Work::ToFloatNormalize(normalize), Sample::Image(image)) => {
                normalize_pixels(&image, normalize).map(Sample::Tensor)
            }
            _ => Err(Error::wire("the steps take another kind of value")),
        }
    }
}

// === impl Motion ===

impl Motion<'_> {
    /// Decodes what the motion looks at and moves it.
    fn decode(&self, decode: &Decode, object: Bytes, scope: &Scope<'_>) -> Result<Image> {
        // An error of the motion has to wait: the object may be worse.
        let geometry = decode
            .divisible(&object)
            .and_then(|size| Some((size, self.geometry(size.0, size.1, scope).ok()??)));
        match geometry {
            Some(((width, height), geometry)) => {
                let window = decode.part(&object, scope.limits, geometry.seen(width, height))?;
                Ok(geometry.apply(&window))
            }
            None => self.apply(decode.apply(object, scope)?, scope),
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
