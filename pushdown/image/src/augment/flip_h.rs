//! `flip_h`: mirrors an image left to right.

use super::{SEED, seed_argument};
use pushdown_core::{
    Family, Image, ImageKind, Result,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `flip_h`: mirrors with probability `p`, as torchvision's `RandomHorizontalFlip`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlipH {
    probability: f64,
    seed: Option<u64>,
}

impl Operator for FlipH {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "flip_h";
    const SUMMARY: &'static str = "mirror left and right, at random";
    const FAMILIES: &'static [Family] = &[Family::Random];
    const PARAMS: &'static [Param] = &[Param::positional("p", "0..1 = 0.5", "probability"), SEED];
    const IS_RANDOM: bool = true;

    fn parse(args: &Args<'_>) -> Result<Self> {
        let probability = args.optional("p")?.unwrap_or(0.5);
        if !(0.0..=1.0).contains(&probability) {
            return Err(args.fault(format!("`p` is {probability}, expected 0 to 1")));
        }
        Ok(Self {
            probability,
            seed: args.optional("seed")?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        #[expect(clippy::float_cmp, reason = "the default itself")]
        let p = (self.probability != 0.5).then_some(("p", Value::Float(self.probability)));
        p.into_iter().chain(seed_argument(self.seed)).collect()
    }

    fn output(&self, input: &ImageKind) -> Result<ImageKind, String> {
        Ok(*input)
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn apply(&self, input: Image, scope: &Scope<'_>) -> Result<Image> {
        if scope.draws.clone().unit() >= self.probability {
            return Ok(input);
        }
        let stride = input.stride();
        Ok(input.map_pixels(|pixels| pixels.chunks_exact_mut(stride).for_each(mirror)))
    }
}

fn mirror(row: &mut [u8]) {
    let (pixels, _) = row.as_chunks_mut::<3>();
    pixels.reverse();
}

#[cfg(test)]
mod tests {
    use pushdown::Pipeline;
    use pushdown_core::{Context, Image, Sample};

    fn is_flipped(text: &str, sample: u32) -> bool {
        let pipeline = Pipeline::parse(&format!("decode | {text}")).expect(text);
        let image = Image::new(2, 2, (0..12).collect()).expect("sizes agree");
        let id = sample.to_le_bytes();
        let context = Context::new(&id).with_randomness(3, 4);
        let Ok(Sample::Image(image)) = pipeline.run(1..2, Sample::Image(image), &context) else {
            panic!("expected an image")
        };
        let mirrored = image.pixels() == [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8];
        assert!(mirrored || image.pixels() == (0..12).collect::<Vec<u8>>());
        mirrored
    }

    #[test]
    fn images_are_flipped_with_the_given_probability() {
        let flips = |text: &str| (0..10_000).filter(|sample| is_flipped(text, *sample)).count();
        assert_eq!(flips("flip_h(0)"), 0);
        assert_eq!(flips("flip_h(1)"), 10_000);
        assert!((4_800..5_200).contains(&flips("flip_h")));
        assert!((900..1_100).contains(&flips("flip_h(0.1)")));
    }
}
