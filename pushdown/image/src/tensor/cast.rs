//! `cast`: converts numbers to another dtype.

use half::{bf16, f16};

use super::convert::{Element, convert};
use pushdown_core::{
    DType, Family, Result, Tensor, TensorKind,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `cast`: converts without scaling. To integers it rounds ties to even, saturates, and turns NaN into 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast(DType);

impl Operator for Cast {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "cast";
    const SUMMARY: &'static str = "to another dtype; integers by ties to even, saturating, NaN to 0";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
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
            DType::U8 => self.cast_from::<u8>(&input),
            DType::I8 => self.cast_from::<i8>(&input),
            DType::I32 => self.cast_from::<i32>(&input),
            DType::I64 => self.cast_from::<i64>(&input),
            DType::F16 => self.cast_from::<f16>(&input),
            DType::Bf16 => self.cast_from::<bf16>(&input),
            DType::F32 => self.cast_from::<f32>(&input),
        })
    }
}

impl Cast {
    fn cast_from<A: Element>(&self, input: &Tensor) -> Tensor {
        match self.0 {
            DType::U8 => cast_values::<A, u8>(input),
            DType::I8 => cast_values::<A, i8>(input),
            DType::I32 => cast_values::<A, i32>(input),
            DType::I64 => cast_values::<A, i64>(input),
            DType::F16 => cast_values::<A, f16>(input),
            DType::Bf16 => cast_values::<A, bf16>(input),
            DType::F32 => cast_values::<A, f32>(input),
        }
    }
}

fn cast_values<A: Element, B: Element>(input: &Tensor) -> Tensor {
    Tensor::from_values(
        input.layout(),
        input.shape().to_vec(),
        convert::<A, B>(&input.values::<A>()),
    )
}
