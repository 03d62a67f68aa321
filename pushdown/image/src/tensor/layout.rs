//! `layout`: changes the order of an image tensor's axes.

use pushdown_core::{
    DType, Element, Family, Layout, Result, Tensor, TensorKind,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `layout`: permutes the axes of a three-dimensional tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct SetLayout(Layout);

impl Operator for SetLayout {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "layout";
    const SUMMARY: &'static str = "order the axes as channels first or last";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[Param::positional("order", "chw | hwc", "order of the axes")];

    fn parse(args: &Args<'_>) -> Result<Self> {
        args.required("order").map(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![("order", Value::Text(self.0.name().to_owned()))]
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        let shape = permuted_shape(input.layout, self.0, &input.shape)
            .ok_or_else(|| "takes an image tensor of three axes, found one without such axes".to_owned())?;
        Ok(TensorKind {
            layout: self.0,
            shape,
            ..input.clone()
        })
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        if input.layout() == self.0 {
            return Ok(input);
        }
        let scale = input.scale();
        let permuted = match input.dtype() {
            DType::U8 => self.permute::<u8>(&input),
            DType::I8 => self.permute::<i8>(&input),
            DType::I32 => self.permute::<i32>(&input),
            DType::I64 => self.permute::<i64>(&input),
            DType::F16 => self.permute::<half::f16>(&input),
            DType::Bf16 => self.permute::<half::bf16>(&input),
            DType::F32 => self.permute::<f32>(&input),
        };
        Ok(permuted.with_scale(scale))
    }
}

impl SetLayout {
    fn permute<T: Element>(&self, input: &Tensor) -> Tensor {
        let shape = permuted_shape(input.layout(), self.0, input.shape()).unwrap_or_default();
        let values = input.values::<T>();
        // The tensor is a matrix of area x channels or its transpose.
        let channels = match self.0 {
            Layout::Hwc => input.shape().first(),
            _ => input.shape().last(),
        };
        let channels = channels.copied().unwrap_or(1).max(1);
        let area = values.len() / channels;
        let (rows, columns) = if self.0 == Layout::Hwc {
            (channels, area)
        } else {
            (area, channels)
        };
        let mut out = Vec::with_capacity(values.len());
        for column in 0..columns {
            out.extend((0..rows).map(|row| values[row * columns + column]));
        }
        Tensor::from_values(self.0, shape, out)
    }
}

/// The shape after a permutation. `None` for a tensor without three image axes.
fn permuted_shape<T: Copy>(from: Layout, to: Layout, shape: &[T]) -> Option<Vec<T>> {
    match (from, to, shape) {
        (Layout::Chw, Layout::Hwc, &[channels, height, width]) => Some(vec![height, width, channels]),
        (Layout::Hwc, Layout::Chw, &[height, width, channels]) => Some(vec![channels, height, width]),
        (Layout::Chw, Layout::Chw, shape) | (Layout::Hwc, Layout::Hwc, shape) => Some(shape.to_vec()),
        _ => None,
    }
}
