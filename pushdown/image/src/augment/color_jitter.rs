//! `color_jitter`: adjusts brightness, contrast, saturation and hue in random order.

mod pixels;

use self::pixels::Pixel;
use super::{SEED, seed_argument};
use pushdown_core::step::Draws;
use pushdown_core::{
    Family, Image, ImageKind, Result,
    language::{Args, FromValue, Param, Value},
    step::{Operator, Scope},
};

/// `color_jitter`, as torchvision's `ColorJitter` on u8 tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct ColorJitter {
    brightness: Option<FactorRange>,
    contrast: Option<FactorRange>,
    saturation: Option<FactorRange>,
    hue: Option<FactorRange>,
    seed: Option<u64>,
}

/// The range of a uniformly drawn factor.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FactorRange {
    low: f64,
    high: f64,
}

/// The drawn factors, and the order of the four adjustments.
#[derive(Debug, Clone, PartialEq)]
struct Adjustments {
    order: [Adjustment; 4],
    brightness: Option<f64>,
    contrast: Option<f64>,
    saturation: Option<f64>,
    hue: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adjustment {
    Brightness,
    Contrast,
    Saturation,
    Hue,
}

impl Operator for ColorJitter {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "color_jitter";
    const SUMMARY: &'static str = "brightness, contrast, saturation and hue, in random order";
    const FAMILIES: &'static [Family] = &[Family::Random];
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "brightness",
            "b or [low, high] = 0",
            "factor from [max(0, 1-b), 1+b]",
        ),
        Param::positional(
            "contrast",
            "c or [low, high] = 0",
            "factor from [max(0, 1-c), 1+c]",
        ),
        Param::positional(
            "saturation",
            "s or [low, high] = 0",
            "factor from [max(0, 1-s), 1+s]",
        ),
        Param::positional(
            "hue",
            "h or [low, high] = 0",
            "shift from [-h, h], in turns, at most 0.5",
        ),
        SEED,
    ];
    const IS_RANDOM: bool = true;

    fn parse(args: &Args<'_>) -> Result<Self> {
        let factor = |name| parse_range(args, name, 1.0, 0.0..=f64::MAX);
        Ok(Self {
            brightness: factor("brightness")?,
            contrast: factor("contrast")?,
            saturation: factor("saturation")?,
            hue: parse_range(args, "hue", 0.0, -0.5..=0.5)?,
            seed: args.optional("seed")?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        [
            ("brightness", self.brightness),
            ("contrast", self.contrast),
            ("saturation", self.saturation),
            ("hue", self.hue),
        ]
        .into_iter()
        .filter_map(|(name, range)| {
            range.map(|FactorRange { low, high }| {
                (name, Value::List(vec![Value::Float(low), Value::Float(high)]))
            })
        })
        .chain(seed_argument(self.seed))
        .collect()
    }

    fn output(&self, input: &ImageKind) -> Result<ImageKind, String> {
        Ok(*input)
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn apply(&self, input: Image, scope: &Scope<'_>) -> Result<Image> {
        let adjustments = self.draw(scope.draws.clone());
        Ok(input.map_pixels(|bytes| {
            let (pixels, _) = bytes.as_chunks_mut::<3>();
            adjustments.apply(pixels);
        }))
    }
}

impl Adjustments {
    fn apply(&self, image: &mut [Pixel]) {
        for adjustment in self.order {
            match adjustment {
                Adjustment::Brightness => self
                    .brightness
                    .map(|factor| pixels::adjust_brightness(image, factor)),
                Adjustment::Contrast => self.contrast.map(|factor| pixels::adjust_contrast(image, factor)),
                Adjustment::Saturation => self
                    .saturation
                    .map(|factor| pixels::adjust_saturation(image, factor)),
                Adjustment::Hue => self.hue.map(|shift| pixels::shift_hue(image, shift)),
            };
        }
    }
}

impl ColorJitter {
    /// torchvision's `ColorJitter.get_params`: an order, then a factor for each adjustment that has a range.
    fn draw(&self, mut draws: Draws) -> Adjustments {
        let mut order = [
            Adjustment::Brightness,
            Adjustment::Contrast,
            Adjustment::Saturation,
            Adjustment::Hue,
        ];
        // Fisher-Yates shuffle, from the end.
        for last in [3_u32, 2, 1] {
            order.swap(last as usize, draws.below(last + 1) as usize);
        }
        let mut factor = |range: Option<FactorRange>| range.map(|range| draws.uniform(range.low, range.high));
        Adjustments {
            order,
            brightness: factor(self.brightness),
            contrast: factor(self.contrast),
            saturation: factor(self.saturation),
            hue: factor(self.hue),
        }
    }
}

/// Parses a range: a spread around `center`, or two ends. `None` if it contains only `center`, which changes nothing.
fn parse_range(
    args: &Args<'_>,
    name: &str,
    center: f64,
    bound: std::ops::RangeInclusive<f64>,
) -> Result<Option<FactorRange>> {
    let range = match args.optional::<RangeArgument>(name)? {
        None => return Ok(None),
        Some(RangeArgument::Spread(spread)) => FactorRange {
            low: (center - spread).max(*bound.start()),
            high: center + spread,
        },
        Some(RangeArgument::Ends(low, high)) => FactorRange { low, high },
    };
    let is_negative =
        matches!(args.optional::<RangeArgument>(name)?, Some(RangeArgument::Spread(spread)) if spread < 0.0);
    if is_negative || range.low > range.high || !bound.contains(&range.low) || !bound.contains(&range.high) {
        let expected = if *bound.end() < f64::MAX {
            "within [-0.5, 0.5]"
        } else {
            "of numbers from 0"
        };
        return Err(args.fault(format!(
            "`{name}` is the range [{:?}, {:?}], expected an ascending range {expected}",
            range.low, range.high
        )));
    }
    #[expect(clippy::float_cmp, reason = "the value that changes nothing, exactly")]
    Ok((range.low != center || range.high != center).then_some(range))
}

/// The argument of a range.
enum RangeArgument {
    /// The distance of both ends from the center.
    Spread(f64),
    /// The lower and the upper end.
    Ends(f64, f64),
}

impl FromValue for RangeArgument {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::List(_) => <[f64; 2]>::from_value(value).map(|[low, high]| Self::Ends(low, high)),
            _ => f64::from_value(value)
                .map(Self::Spread)
                .map_err(|_| "a number or a list of 2 numbers".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
