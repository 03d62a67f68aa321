//! `random_resized_crop`: resizes a region of random size and aspect ratio.

use super::{SEED, seed_argument};
use crate::image::{Filter, Geometry, Region, Window, resample_scratch_bytes};
use pushdown_core::step::Draws;
use pushdown_core::{
    Family, Image, ImageKind, Result,
    language::{Args, Param, Side, Value},
    step::{Operator, Scope},
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
/// Maximum number of draws of a region. If none fits, the central fallback applies.
const MAX_ATTEMPTS: usize = 10;

impl Operator for RandomResizedCrop {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "random_resized_crop";
    const SUMMARY: &'static str = "a part of random area and aspect ratio, resized";
    const FAMILIES: &'static [Family] = &[Family::Random, Family::Resample];
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
                    "`{name}` is [{low:?}, {high:?}], expected two numbers above 0 in ascending order"
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
        // The upper bound: the region is the whole image.
        Some(resample_scratch_bytes(
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
    /// The geometry of a drawn region of an image of `width` x `height`.
    pub fn geometry(&self, width: u32, height: u32, scope: &Scope<'_>) -> Geometry {
        let region = self.draw_region(width, height, scope.draws.clone());
        let output_size = (self.width, self.height);
        Geometry::resample(
            region,
            output_size,
            self.filter,
            Region::all(self.width, self.height),
        )
    }

    /// torchvision's `RandomResizedCrop.get_params`: the area and the logarithm of the ratio are uniform. After ten failed
    /// attempts, the region is the largest central one within the range of ratios. `libm` computes the same logarithm and
    /// exponential on every host.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "compared with the sides of the image"
    )]
    fn draw_region(&self, width: u32, height: u32, mut draws: Draws) -> Region {
        let (full_width, full_height) = (f64::from(width), f64::from(height));
        let [min_log_ratio, max_log_ratio] = self.ratio.map(libm::log);
        for _ in 0..MAX_ATTEMPTS {
            let area = full_width * full_height * draws.uniform(self.scale[0], self.scale[1]);
            let ratio = libm::exp(draws.uniform(min_log_ratio, max_log_ratio));
            let w = (area * ratio).sqrt().round_ties_even();
            let h = (area / ratio).sqrt().round_ties_even();
            if 0.0 < w && w <= full_width && 0.0 < h && h <= full_height {
                let (w, h) = (w as u32, h as u32);
                let y = draws.below(height - h + 1);
                let x = draws.below(width - w + 1);
                return Region {
                    x,
                    y,
                    width: w,
                    height: h,
                };
            }
        }
        let ratio = full_width / full_height;
        let (w, h) = if ratio < self.ratio[0] {
            (
                width,
                ((full_width / self.ratio[0]).round_ties_even() as u32).clamp(1, height),
            )
        } else if ratio > self.ratio[1] {
            (
                ((full_height * self.ratio[1]).round_ties_even() as u32).clamp(1, width),
                height,
            )
        } else {
            (width, height)
        };
        Region {
            x: (width - w) / 2,
            y: (height - h) / 2,
            width: w,
            height: h,
        }
    }
}

#[cfg(test)]
mod tests;
