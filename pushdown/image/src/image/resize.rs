//! `resize`: resampling to a given size.

use super::{
    Filter, Geometry, Region, Window,
    resample::{interpolate, resample_scratch_bytes},
};
use pushdown_core::{
    Family, Image, ImageKind, Result,
    language::{Args, Param, Side, Value},
    step::{Operator, Scope},
};

/// `resize`. With antialiasing, results equal those of Pillow's `resize` to within one level; without, those of PyTorch's
/// `interpolate`.
#[derive(Debug, Clone, PartialEq)]
pub struct Resize {
    size: Size,
    filter: Filter,
    antialias: bool,
}

/// The size of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly width x height, without regard to the aspect ratio.
    Exact(u32, u32),
    /// The short side, the other in proportion.
    Short(u32),
    /// The long side, the other in proportion.
    Long(u32),
}

impl Operator for Resize {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "resize";
    const SUMMARY: &'static str = "resample to a size";
    const FAMILIES: &'static [Family] = &[Family::Resample];
    const PARAMS: &'static [Param] = &[
        Param::positional("w", "pixels", "width; needs `h`"),
        Param::positional("h", "pixels", "height; needs `w`"),
        Param::named(
            "short",
            "pixels",
            "length of the short side, the other in proportion, rounded down",
        ),
        Param::named(
            "long",
            "pixels",
            "length of the long side, the other in proportion, rounded down",
        ),
        Param::named(
            "filter",
            "bilinear | bicubic | lanczos | nearest = bilinear",
            "interpolation",
        ),
        Param::named(
            "antialias",
            "true | false = true",
            "widen the filter when shrinking, as Pillow does",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let side = |name| {
            args.optional::<Side>(name)
                .map(|side| side.map(|Side(side)| side))
        };
        let size = match (side("w")?, side("h")?, side("short")?, side("long")?) {
            (Some(width), Some(height), None, None) => Size::Exact(width, height),
            (None, None, Some(short), None) => Size::Short(short),
            (None, None, None, Some(long)) => Size::Long(long),
            _ => return Err(args.fault("`resize` takes one of: `w` and `h`; `short`; `long`")),
        };
        let filter = args.optional("filter")?.unwrap_or(Filter::Bilinear);
        let antialias = args.optional("antialias")?.unwrap_or(true);
        match (filter, antialias) {
            (Filter::Lanczos | Filter::Nearest, false) => Err(args.fault(format!(
                "`antialias=false` is for bilinear and bicubic, found {}",
                filter.name()
            ))),
            _ => Ok(Self {
                size,
                filter,
                antialias,
            }),
        }
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let mut arguments = match self.size {
            Size::Exact(width, height) => {
                vec![("w", Value::Int(width.into())), ("h", Value::Int(height.into()))]
            }
            Size::Short(short) => vec![("short", Value::Int(short.into()))],
            Size::Long(long) => vec![("long", Value::Int(long.into()))],
        };
        if self.filter != Filter::Bilinear {
            arguments.push(("filter", Value::Text(self.filter.name().to_owned())));
        }
        if !self.antialias {
            arguments.push(("antialias", Value::Text("false".to_owned())));
        }
        arguments
    }

    fn output(&self, input: &ImageKind) -> Result<ImageKind, String> {
        let size = match (self.size, input.width, input.height) {
            (Size::Exact(width, height), _, _) => Some((width, height)),
            (_, Some(width), Some(height)) => Some(self.size_of(width, height)),
            _ => None,
        };
        Ok(ImageKind {
            width: size.map(|size| size.0),
            height: size.map(|size| size.1),
        })
    }

    fn scratch_bytes(&self, input: &ImageKind) -> Option<u64> {
        let from = (input.width?, input.height?);
        Some(resample_scratch_bytes(from, self.size_of(from.0, from.1)))
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Image> {
        let (width, height) = self.size_of(input.width(), input.height());
        Ok(
            match self.geometry(input.width(), input.height(), Region::all(width, height)) {
                _ if (width, height) == (input.width(), input.height()) => input,
                Some(geometry) => geometry.apply(&Window::whole(input)),
                None => interpolate(&input, width, height, self.filter),
            },
        )
    }
}

impl Resize {
    /// Width and height of the result for an image of `width` x `height`. As in torchvision, the side that is not given is
    /// `trunc(given * other / side)`. It is at least 1.
    pub fn size_of(&self, width: u32, height: u32) -> (u32, u32) {
        let scaled = |given: u32, other: u32, side: u32| {
            let scaled = u64::from(given) * u64::from(other) / u64::from(side.max(1));
            u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
        };
        match self.size {
            Size::Exact(width, height) => (width, height),
            Size::Short(side) if width <= height => (side, scaled(side, height, width)),
            Size::Long(side) if width >= height => (side, scaled(side, height, width)),
            Size::Short(side) | Size::Long(side) => (scaled(side, width, height), side),
        }
    }

    /// Computes the region `keep` of the result for an image of `width` x `height`; `None` without antialiasing, where regions
    /// are not computed separately.
    pub fn geometry(&self, width: u32, height: u32, keep: Region) -> Option<Geometry> {
        let to = self.size_of(width, height);
        self.antialias
            .then(|| Geometry::resample(Region::all(width, height), to, self.filter, keep))
    }
}
