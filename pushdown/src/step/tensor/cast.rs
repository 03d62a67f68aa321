//! `cast`: another dtype, the same numbers.

use half::{bf16, f16};

use super::convert::{Element, convert};
use crate::{
    DType, Result, Tensor, TensorKind,
    pipeline::{Args, FromValue, Param, Value},
    step::{Operator, Scope},
};

/// `cast`. No scaling; to integers by ties to even, saturating, NaN to 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast(DType);

impl FromValue for DType {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| format!("one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl Operator for Cast {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "cast";
    const SUMMARY: &'static str = "to another dtype; integers by ties to even, saturating, NaN to 0";
    const PARAMS: &'static [Param] = &[Param::positional(
        "dtype",
        "u8 | i8 | i32 | i64 | f16 | bf16 | f32",
        "element type",
    )];

    fn parse(args: &Args<'_>) -> Result<Self> {
        args.required("dtype").map(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![("dtype", Value::Text(self.0.name().to_owned()))]
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        if input.quantized {
            return Err("would lose the scale of a quantised tensor; put `dequantize` before it".to_owned());
        }
        Ok(TensorKind {
            dtype: self.0,
            ..input.clone()
        })
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        Ok(match input.dtype() {
            dtype if dtype == self.0 => input,
            DType::U8 => self.from::<u8>(&input),
            DType::I8 => self.from::<i8>(&input),
            DType::I32 => self.from::<i32>(&input),
            DType::I64 => self.from::<i64>(&input),
            DType::F16 => self.from::<f16>(&input),
            DType::Bf16 => self.from::<bf16>(&input),
            DType::F32 => self.from::<f32>(&input),
        })
    }
}

impl Cast {
    fn from<A: Element>(&self, input: &Tensor) -> Tensor {
        match self.0 {
            DType::U8 => between::<A, u8>(input),
            DType::I8 => between::<A, i8>(input),
            DType::I32 => between::<A, i32>(input),
            DType::I64 => between::<A, i64>(input),
            DType::F16 => between::<A, f16>(input),
            DType::Bf16 => between::<A, bf16>(input),
            DType::F32 => between::<A, f32>(input),
        }
    }
}

fn between<A: Element, B: Element>(input: &Tensor) -> Tensor {
    Tensor::from_values(
        input.layout(),
        input.shape().to_vec(),
        convert::<A, B>(&input.values::<A>()),
    )
}
