//! `random_crop`: crops a rectangle at a random position.

use super::{SEED, seed_argument};
use crate::image::{Geometry, Rectangle, Window};
use pushdown_core::step::Draws;
use pushdown_core::{
    Error, Family, Image, ImageKind, Result,
    language::{Args, Param, Side, Value},
    step::{Operator, Scope},
};

/// `random_crop`, as torchvision's `RandomCrop` with constant padding.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomCrop {
    width: u32,
    height: u32,
    padding: u32,
    pad_if_needed: bool,
    seed: Option<u64>,
}

impl Operator for RandomCrop {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "random_crop";
    const SUMMARY: &'static str = "a rectangle at a random place";
    const FAMILIES: &'static [Family] = &[Family::Random];
    const PARAMS: &'static [Param] = &[
        Param::positional("w", "pixels", "width"),
        Param::positional("h", "pixels = w", "height"),
        Param::named("padding", "pixels = 0", "zeros to put around the image first"),
        Param::named(
            "pad_if_needed",
            "true | false = false",
            "pad an image that is too small, instead of failing",
        ),
        SEED,
    ];
    const IS_RANDOM: bool = true;

    fn parse(args: &Args<'_>) -> Result<Self> {
        let Side(width) = args.required("w")?;
        let Side(height) = args.optional("h")?.unwrap_or(Side(width));
        let padding = match args.optional::<u64>("padding")?.unwrap_or(0) {
            padding @ 0..=65_535 => u32::try_from(padding).unwrap_or_default(),
            padding => return Err(args.fault(format!("`padding` is {padding}, expected 0 to 65535 pixels"))),
        };
        let pad_if_needed = args.optional("pad_if_needed")?.unwrap_or(false);
        Ok(Self {
            width,
            height,
            padding,
            pad_if_needed,
            seed: args.optional("seed")?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let height = (self.height != self.width).then(|| ("h", Value::Int(self.height.into())));
        let padding = (self.padding > 0).then(|| ("padding", Value::Int(self.padding.into())));
        let pad_if_needed = self
            .pad_if_needed
            .then(|| ("pad_if_needed", Value::Text("true".to_owned())));
        let width = ("w", Value::Int(self.width.into()));
        std::iter::once(width)
            .chain(height)
            .chain(padding)
            .chain(pad_if_needed)
            .chain(seed_argument(self.seed))
            .collect()
    }

    fn output(&self, _: &ImageKind) -> Result<ImageKind, String> {
        Ok(ImageKind {
            width: Some(self.width),
            height: Some(self.height),
        })
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn apply(&self, input: Image, scope: &Scope<'_>) -> Result<Image> {
        let geometry = self.geometry(input.width(), input.height(), scope)?;
        Ok(geometry.apply(&Window::whole(input)))
    }
}

impl RandomCrop {
    /// The geometry of a drawn crop of an image of `width` x `height`.
    pub fn geometry(&self, width: u32, height: u32, scope: &Scope<'_>) -> Result<Geometry> {
        let (x, y) = self.draw_position(width, height, scope.draws.clone())?;
        Ok(Geometry::crop(Rectangle {
            x,
            y,
            width: self.width,
            height: self.height,
        }))
    }

    /// Draws left and top, relative to the unpadded image: negative in the padding. As in torchvision, an image that is too
    /// small is padded on both sides, and the row is drawn first.
    fn draw_position(&self, width: u32, height: u32, mut draws: Draws) -> Result<(i64, i64)> {
        let pad_axis = |side: u32, crop: u32| {
            let padded = u64::from(side) + 2 * u64::from(self.padding);
            let missing = u64::from(crop).saturating_sub(padded);
            match missing {
                1.. if self.pad_if_needed => Some(PaddedAxis {
                    border: u64::from(self.padding) + missing,
                    length: padded + 2 * missing,
                }),
                1.. => None,
                0 => Some(PaddedAxis {
                    border: self.padding.into(),
                    length: padded,
                }),
            }
        };
        let too_small = || {
            Error::unsuitable(format!(
                "the image of {width} x {height} pixels is smaller than the crop of {} x {}; pad_if_needed=true pads it",
                self.width, self.height
            ))
        };
        let columns = pad_axis(width, self.width).ok_or_else(too_small)?;
        let rows = pad_axis(height, self.height).ok_or_else(too_small)?;
        let mut draw_start = |axis: &PaddedAxis, crop: u32| {
            let positions = u32::try_from(axis.length - u64::from(crop) + 1).unwrap_or(u32::MAX);
            i64::from(draws.below(positions)) - i64::try_from(axis.border).unwrap_or_default()
        };
        let y = draw_start(&rows, self.height);
        let x = draw_start(&columns, self.width);
        Ok((x, y))
    }
}

/// An axis of a padded image, in pixels.
struct PaddedAxis {
    /// Padding before the image.
    border: u64,
    /// Length with the padding on both sides.
    length: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_step;
    use pushdown_core::ErrorKind;

    fn step(arguments: &str) -> RandomCrop {
        parse_step(&format!("random_crop({arguments})"))
    }

    fn drawn_positions(step: &RandomCrop, width: u32, height: u32) -> Vec<(i64, i64)> {
        let draws = |sample: u32| Draws::new(5, 0, &sample.to_le_bytes(), 0);
        let mut positions: Vec<_> = (0..2_000)
            .map(|sample| step.draw_position(width, height, draws(sample)).expect("it fits"))
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// The positions are those of torchvision's `randint(0, h - th + 1)` after padding.
    #[test]
    fn every_valid_position_is_drawn() {
        let all = |columns: std::ops::RangeInclusive<i64>, rows: std::ops::RangeInclusive<i64>| {
            columns
                .flat_map(|x| rows.clone().map(move |y| (x, y)))
                .collect::<Vec<_>>()
        };
        assert_eq!(drawn_positions(&step("4, 3"), 6, 5), all(0..=2, 0..=2));
        assert_eq!(drawn_positions(&step("6, 5"), 6, 5), [(0, 0)]);
        assert_eq!(drawn_positions(&step("4, padding=1"), 4, 4), all(-1..=1, -1..=1));
        // A width of 4 for a crop of 6: two zeros on each side make 8, with 3 positions.
        assert_eq!(
            drawn_positions(&step("6, 2, pad_if_needed=true"), 4, 2),
            all(-2..=0, 0..=0)
        );
        assert_eq!(
            drawn_positions(&step("7, 2, padding=1, pad_if_needed=true"), 4, 2),
            all(-2..=-1, -1..=1)
        );
    }

    #[test]
    fn a_smaller_image_is_an_error() {
        let error = step("5")
            .draw_position(4, 9, Draws::none())
            .expect_err("too narrow");
        assert_eq!(error.kind(), ErrorKind::Unsuitable);
        assert_eq!(
            error.to_string(),
            "the image of 4 x 9 pixels is smaller than the crop of 5 x 5; pad_if_needed=true pads it"
        );
    }

    #[test]
    fn a_crop_may_contain_only_padding() {
        let image = Image::new(1, 1, vec![9; 3]).expect("sizes agree");
        let step = step("1, padding=2");
        let mut levels: Vec<_> = (0..200_u32)
            .map(|sample| {
                let scope = Scope {
                    limits: &pushdown_core::Limits::default(),
                    sample_id: b"",
                    draws: Draws::new(5, 0, &sample.to_le_bytes(), 0),
                    seed: None,
                    epoch: None,
                    cancellation: pushdown_core::Cancellation::NEVER,
                    cells: None,
                };
                step.apply(image.clone(), &scope).expect("it fits").into_pixels()
            })
            .collect();
        levels.sort_unstable();
        levels.dedup();
        assert_eq!(levels, [[0; 3], [9; 3]]);
    }
}
