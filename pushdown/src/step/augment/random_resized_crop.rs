//! `random_resized_crop`: a part of random size and shape, resized.

use super::{Draws, SEED, seed_argument};
use crate::{
    Image, ImageKind, Result,
    pipeline::{Args, Param, Side, Value},
    step::{
        Operator, Scope,
        image::{Filter, Geometry, Region, Window, resample_scratch},
    },
};

/// `random_resized_crop`, as torchvision's `RandomResizedCrop`, antialiased.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomResizedCrop {
    width: u32,
    height: u32,
    scale: [f64; 2],
    ratio: [f64; 2],
    filter: Filter,
    seed: Option<u64>,
}

const SCALE: [f64; 2] = [0.08, 1.0];
const RATIO: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0];
/// How often a rectangle that does not fit is drawn again before the central fallback.
const ATTEMPTS: usize = 10;

/// Left, top, width and height of the part.
type Rectangle = (u32, u32, u32, u32);

impl Operator for RandomResizedCrop {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "random_resized_crop";
    const SUMMARY: &'static str = "a part of random area and aspect ratio, resized";
    const PARAMS: &'static [Param] = &[
        Param::positional("w", "pixels", "width"),
        Param::positional("h", "pixels = w", "height"),
        Param::named(
            "scale",
            "[low, high] = [0.08, 1.0]",
            "range of the area, as a share of the image's",
        ),
        Param::named("ratio", "[low, high] = [3/4, 4/3]", "range of the aspect ratio"),
        Param::named(
            "filter",
            "bilinear | bicubic | lanczos | nearest = bilinear",
            "interpolation",
        ),
        SEED,
    ];
    const IS_RANDOM: bool = true;

    fn parse(args: &Args<'_>) -> Result<Self> {
        let Side(width) = args.required("w")?;
        let Side(height) = args.optional("h")?.unwrap_or(Side(width));
        let range = |name: &str, default: [f64; 2]| {
            let [low, high] = args.optional(name)?.unwrap_or(default);
            if 0.0 < low && low <= high && high.is_finite() {
                Ok([low, high])
            } else {
                Err(args.fault(format!(
                    "`{name}` is [{low:?}, {high:?}], expected two rising numbers above 0"
                )))
            }
        };
        Ok(Self {
            width,
            height,
            scale: range("scale", SCALE)?,
            ratio: range("ratio", RATIO)?,
            filter: args.optional("filter")?.unwrap_or(Filter::Bilinear),
            seed: args.optional("seed")?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        #[expect(clippy::float_cmp, reason = "the default itself")]
        let range = |name, range: [f64; 2], default: [f64; 2]| {
            (range != default).then(|| (name, Value::List(range.map(Value::Float).into())))
        };
        let mut arguments = vec![("w", Value::Int(self.width.into()))];
        arguments.extend((self.height != self.width).then(|| ("h", Value::Int(self.height.into()))));
        arguments.extend(range("scale", self.scale, SCALE));
        arguments.extend(range("ratio", self.ratio, RATIO));
        if self.filter != Filter::Bilinear {
            arguments.push(("filter", Value::Text(self.filter.name().to_owned())));
        }
        arguments.extend(seed_argument(self.seed));
        arguments
    }

    fn output(&self, _: &ImageKind) -> Result<ImageKind, String> {
        Ok(ImageKind {
            width: Some(self.width),
            height: Some(self.height),
        })
    }

    fn scratch_bytes(&self, input: &ImageKind) -> Option<u64> {
        // For all of the image at worst.
        Some(resample_scratch(
            (input.width?, input.height?),
            (self.width, self.height),
        ))
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn apply(&self, input: Image, scope: &Scope<'_>) -> Result<Image> {
        let geometry = self.geometry(input.width(), input.height(), scope);
        Ok(geometry.apply(&Window::whole(input)))
    }
}

impl RandomResizedCrop {
    /// The drawn part of an image of `width` x `height`, resized.
    pub(crate) fn geometry(&self, width: u32, height: u32, scope: &Scope<'_>) -> Geometry {
        let (x, y, width, height) = self.rectangle(width, height, scope.draws.clone());
        let part = Region { x, y, width, height };
        let to = (self.width, self.height);
        Geometry::resample(part, to, self.filter, Region::all(self.width, self.height))
    }

    /// torchvision's `RandomResizedCrop.get_params`: area and log of the ratio uniform, up to ten attempts, then
    /// the largest central part within the ratios. Logarithm and exponential are `libm`'s, the same on any host.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "held against the image's sides"
    )]
    fn rectangle(&self, width: u32, height: u32, mut draws: Draws) -> Rectangle {
        let (wide, high) = (f64::from(width), f64::from(height));
        let [low, high_ratio] = self.ratio.map(libm::log);
        for _ in 0..ATTEMPTS {
            let area = wide * high * draws.uniform(self.scale[0], self.scale[1]);
            let ratio = libm::exp(draws.uniform(low, high_ratio));
            let w = (area * ratio).sqrt().round_ties_even();
            let h = (area / ratio).sqrt().round_ties_even();
            if 0.0 < w && w <= wide && 0.0 < h && h <= high {
                let (w, h) = (w as u32, h as u32);
                let y = draws.below(height - h + 1);
                let x = draws.below(width - w + 1);
                return (x, y, w, h);
            }
        }
        let ratio = wide / high;
        let (w, h) = if ratio < self.ratio[0] {
            (
                width,
                ((wide / self.ratio[0]).round_ties_even() as u32).clamp(1, height),
            )
        } else if ratio > self.ratio[1] {
            (
                ((high * self.ratio[1]).round_ties_even() as u32).clamp(1, width),
                height,
            )
        } else {
            (width, height)
        };
        ((width - w) / 2, (height - h) / 2, w, h)
    }
}

#[cfg(test)]
mod tests;
