//! `grayscale`: converts pixels to a u8 tensor of one channel.

use super::to_float::chw_kind;
use pushdown_core::{
    DType, Family, Image, ImageKind, Layout, Result, Tensor, TensorKind,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `grayscale`: CHW u8 with one channel, as Pillow's `convert("L")` and torchvision's `Grayscale` on a PIL image.
#[derive(Debug, Clone, PartialEq)]
pub struct Grayscale;

impl Operator for Grayscale {
    type Input = Image;
    type Output = Tensor;

    const NAME: &'static str = "grayscale";
    const SUMMARY: &'static str = "to a u8 tensor of one channel, CHW, values 0 to 255";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[];

    fn parse(_: &Args<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn output(&self, input: &ImageKind) -> Result<TensorKind, String> {
        Ok(chw_kind(input, 1, DType::U8))
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Tensor> {
        let (pixels, _) = input.pixels().as_chunks::<3>();
        Ok(Tensor::from_values(
            Layout::Chw,
            vec![1, input.height() as usize, input.width() as usize],
            pixels.iter().map(|pixel| luma(*pixel)).collect(),
        ))
    }
}

/// ITU-R BT.601 luma with weights in 65536ths, rounded to nearest, as `L24` of Pillow's `Convert.c`. The weights add up to 65536,
/// so a grey pixel keeps its value.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471 + 0x8000;
    #[expect(clippy::cast_possible_truncation, reason = "at most 255")]
    let luma = (sum >> 16) as u8;
    luma
}
