//! `to_float`: converts pixels to f32 in 0..=1.

use super::convert::Element;
use pushdown_core::{
    DType, Family, Image, ImageKind, Kind, Layout, Result, Tensor, TensorKind,
    language::{Args, Param, Value},
    step::{Operator, Pixels, Scope},
};

/// `to_float`: f32, each value divided by 255. An image becomes CHW, as by torchvision's `ToTensor`; a u8 tensor keeps its
/// layout and shape, as by torchvision's `convert_image_dtype`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToFloat;

impl Operator for ToFloat {
    type Input = Pixels;
    type Output = Tensor;

    const NAME: &'static str = "to_float";
    const SUMMARY: &'static str = "to an f32 tensor, values 0 to 1; an image becomes CHW";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[];

    fn parse(_: &Args<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn output(&self, input: &Kind) -> Result<TensorKind, String> {
        match input {
            Kind::Image(image) => Ok(chw_kind(image, 3, DType::F32)),
            Kind::Tensor(tensor) if tensor.dtype == DType::U8 => Ok(TensorKind {
                dtype: DType::F32,
                ..tensor.clone()
            }),
            other => Err(format!("takes Image or Tensor of u8, found {other}")),
        }
    }

    fn apply(&self, input: Pixels, _: &Scope<'_>) -> Result<Tensor> {
        let table: [f32; 256] = std::array::from_fn(unit_float);
        Ok(match input {
            Pixels::Image(image) => to_planes(&image, [&table; 3]),
            Pixels::Tensor(tensor) => {
                let values = tensor.values::<u8>();
                let values = values.iter().map(|value| table[usize::from(*value)]).collect();
                Tensor::from_values(tensor.layout(), tensor.shape().to_vec(), values)
            }
        })
    }
}

/// Converts a pixel value, 0 to 255, to a float.
pub(super) fn unit_float(value: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "0 to 255 are exact")]
    let value = value as f32;
    value / 255.0
}

/// The kind of a CHW tensor of an image with `channels` channels.
pub(super) fn chw_kind(image: &ImageKind, channels: usize, dtype: DType) -> TensorKind {
    let side = |side: Option<u32>| side.map(|side| side as usize);
    TensorKind {
        dtype,
        layout: Layout::Chw,
        shape: vec![Some(channels), side(image.height), side(image.width)],
        quantized: false,
    }
}

/// Converts an image to a CHW tensor. Each channel has a lookup table for its values.
pub(super) fn to_planes<T: Element>(image: &Image, tables: [&[T; 256]; 3]) -> Tensor {
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
