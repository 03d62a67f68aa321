//! `flip_h`: mirrors left and right.

use super::{SEED, seed_argument};
use crate::{
    Image, ImageKind, Result,
    pipeline::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `flip_h`: with probability `p`, as torchvision's `RandomHorizontalFlip`.
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
    const PARAMS: &'static [Param] = &[
        Param::positional("p", "0..1 = 0.5", "probability"),
        SEED,
    ];
    const AUGMENTING: bool = true;

    fn parse(args: &Args<'_>) -> Result<Self> {
        let probability = args.optional("p")?.unwrap_or(0.5);
        if !(0.0..=1.0).contains(&probability) {
            return Err(args.fault(format!("`p` is {probability}, expected 0 to 1")));
        }
        Ok(Self { probability, seed: args.optional("seed")? })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        #[expect(clippy::float_cmp, reason = "the default itself")]
        let p = (self.probability != 0.5).then(|| ("p", Value::Float(self.probability)));
        p.into_iter().chain(seed_argument(self.seed)).collect()
    }

    fn output(&self, input: &ImageKind) -> Result<ImageKind, String> {
        Ok(*input)
    }

    fn seed(&self) -> Option<u64> {
        self.seed
    }

    fn apply(&self, mut input: Image, scope: &Scope<'_>) -> Result<Image> {
        if scope.draws.clone().unit() < self.probability {
            let stride = input.stride();
            for row in input.pixels_mut().chunks_exact_mut(stride) {
                mirror(row);
            }
        }
        Ok(input)
    }
}

fn mirror(row: &mut [u8]) {
    let (pixels, _) = row.as_chunks_mut::<3>();
    pixels.reverse();
}
