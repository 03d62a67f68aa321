//! `to_tensor`: converts pixels to a u8 tensor.

use super::to_float::{chw_kind, to_planes};
use pushdown_core::{
    DType, Family, Image, ImageKind, Result, Tensor, TensorKind,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `to_tensor`: CHW u8 with unchanged values, as torchvision's `PILToTensor`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToTensor;

impl Operator for ToTensor {
    type Input = Image;
    type Output = Tensor;

    const NAME: &'static str = "to_tensor";
    const SUMMARY: &'static str = "to a u8 tensor, CHW, values 0 to 255";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[];

    fn parse(_: &Args<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn output(&self, input: &ImageKind) -> Result<TensorKind, String> {
        Ok(chw_kind(input, 3, DType::U8))
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Tensor> {
        #[expect(clippy::cast_possible_truncation, reason = "0 to 255")]
        let table: [u8; 256] = std::array::from_fn(|value| value as u8);
        Ok(to_planes(&input, [&table; 3]))
    }
}
