//! `to_float`: pixels to f32 in 0..1.

use crate::{
    DType, Image, ImageKind, Layout, Result, Tensor, TensorKind,
    pipeline::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `to_float`: CHW f32, each value divided by 255; torchvision's `ToTensor`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToFloat;

impl Operator for ToFloat {
    type Input = Image;
    type Output = Tensor;

    const NAME: &'static str = "to_float";
    const SUMMARY: &'static str = "to an f32 tensor, CHW, values 0 to 1";
    const PARAMS: &'static [Param] = &[];

    fn parse(_: &Args<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn output(&self, input: &ImageKind) -> Result<TensorKind, String> {
        Ok(chw(input, DType::F32))
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Tensor> {
        let table: [f32; 256] = std::array::from_fn(to_float);
        Ok(planes(&input, [&table; 3]))
    }
}

/// The float of a pixel's value.
pub(super) fn to_float(value: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "0 to 255 are exact")]
    let value = value as f32;
    value / 255.0
}

/// The kind of an image that became a CHW tensor.
pub(super) fn chw(image: &ImageKind, dtype: DType) -> TensorKind {
    let side = |side: Option<u32>| side.map(|side| side as usize);
    TensorKind {
        dtype,
        layout: Layout::Chw,
        shape: vec![Some(3), side(image.height), side(image.width)],
        quantized: false,
    }
}

/// A CHW tensor of an image's pixels, each looked up in its channel's table.
pub(super) fn planes<T: super::convert::Element>(image: &Image, tables: [&[T; 256]; 3]) -> Tensor {
    let area = image.width() as usize * image.height() as usize;
    let mut values = vec![T::ZERO; 3 * area];
    let (red, rest) = values.split_at_mut(area);
    let (green, blue) = rest.split_at_mut(area);
    for (((pixel, red), green), blue) in image.pixels().chunks_exact(3).zip(red).zip(green).zip(blue) {
        *red = tables[0][usize::from(pixel[0])];
        *green = tables[1][usize::from(pixel[1])];
        *blue = tables[2][usize::from(pixel[2])];
    }
    Tensor::from_values(
        Layout::Chw,
        vec![3, image.height() as usize, image.width() as usize],
        values,
    )
}
