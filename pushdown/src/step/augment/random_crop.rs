//! `random_crop`: a rectangle at a random place.

use super::{Draws, SEED, seed_argument};
use crate::{
    Error, Image, ImageKind, Result,
    pipeline::{Args, Param, Side, Value},
    step::{
        Operator, Scope,
        image::{Geometry, Window},
    },
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
        let needed = self
            .pad_if_needed
            .then(|| ("pad_if_needed", Value::Text("true".to_owned())));
        let width = ("w", Value::Int(self.width.into()));
        std::iter::once(width)
            .chain(height)
            .chain(padding)
            .chain(needed)
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
    /// The drawn crop of an image of `width` x `height`.
    pub(crate) fn geometry(&self, width: u32, height: u32, scope: &Scope<'_>) -> Result<Geometry> {
        let (x, y) = self.place(width, height, scope.draws.clone())?;
        Ok(Geometry::cut((x, y, self.width, self.height)))
    }

    /// Left and top in the unpadded image, which may lie in the padding. Torchvision pads on both sides where the
    /// image is too small, and draws the row first.
    fn place(&self, width: u32, height: u32, mut draws: Draws) -> Result<(i64, i64)> {
        let axis = |have: u32, want: u32| {
            let padded = u64::from(have) + 2 * u64::from(self.padding);
            let missing = u64::from(want).saturating_sub(padded);
            match missing {
                1.. if self.pad_if_needed => Some((u64::from(self.padding) + missing, padded + 2 * missing)),
                1.. => None,
                0 => Some((self.padding.into(), padded)),
            }
        };
        let too_small = || {
            Error::unsuitable(format!(
                "the image of {width} x {height} pixels is smaller than the crop of {} x {}; pad_if_needed=true pads it",
                self.width, self.height
            ))
        };
        let (left, wide) = axis(width, self.width).ok_or_else(too_small)?;
        let (top, high) = axis(height, self.height).ok_or_else(too_small)?;
        let mut start = |padded: u64, want: u32, border: u64| {
            let places = u32::try_from(padded - u64::from(want) + 1).unwrap_or(u32::MAX);
            i64::from(draws.below(places)) - i64::try_from(border).unwrap_or_default()
        };
        let y = start(high, self.height, top);
        let x = start(wide, self.width, left);
        Ok((x, y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Pipeline, Step};

    fn step(arguments: &str) -> RandomCrop {
        match Pipeline::parse(&format!("decode | random_crop({arguments})"))
            .expect(arguments)
            .steps()
        {
            [_, Step::RandomCrop(step)] => step.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn places(step: &RandomCrop, width: u32, height: u32) -> Vec<(i64, i64)> {
        let draws = |sample: u32| Draws::new(5, 0, &sample.to_le_bytes(), 0);
        let mut places: Vec<_> = (0..2_000)
            .map(|sample| step.place(width, height, draws(sample)).expect("it fits"))
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Each place is drawn, and no other: torchvision's `randint(0, h - th + 1)` after padding.
    #[test]
    fn every_place() {
        let all = |columns: std::ops::RangeInclusive<i64>, rows: std::ops::RangeInclusive<i64>| {
            columns
                .flat_map(|x| rows.clone().map(move |y| (x, y)))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&step("4, 3"), 6, 5), all(0..=2, 0..=2));
        assert_eq!(places(&step("6, 5"), 6, 5), [(0, 0)]);
        assert_eq!(places(&step("4, padding=1"), 4, 4), all(-1..=1, -1..=1));
        // 4 wide for 6: two zeros on each side make 8, and 3 places.
        assert_eq!(
            places(&step("6, 2, pad_if_needed=true"), 4, 2),
            all(-2..=0, 0..=0)
        );
        assert_eq!(
            places(&step("7, 2, padding=1, pad_if_needed=true"), 4, 2),
            all(-2..=-1, -1..=1)
        );
    }

    #[test]
    fn too_small_an_image() {
        let error = step("5").place(4, 9, Draws::none()).expect_err("too narrow");
        assert_eq!(error.kind(), ErrorKind::Unsuitable);
        assert_eq!(
            error.to_string(),
            "the image of 4 x 9 pixels is smaller than the crop of 5 x 5; pad_if_needed=true pads it"
        );
    }
    /// All padding, and no panic.
    #[test]
    fn a_crop_beside_the_image() {
        let image = Image::new(1, 1, vec![9; 3]).expect("sizes agree");
        let step = step("1, padding=2");
        let mut levels: Vec<_> = (0..200_u32)
            .map(|sample| {
                let scope = Scope {
                    limits: &crate::Limits::default(),
                    sample_id: b"",
                    draws: Draws::new(5, 0, &sample.to_le_bytes(), 0),
                    seed: None,
                    epoch: None,
                    cancellation: crate::Cancellation::NEVER,
                };
                step.apply(image.clone(), &scope).expect("it fits").into_pixels()
            })
            .collect();
        levels.sort_unstable();
        levels.dedup();
        assert_eq!(levels, [[0; 3], [9; 3]]);
    }
}
