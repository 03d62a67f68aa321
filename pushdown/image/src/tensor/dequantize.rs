//! `dequantize`: converts codes and their scale to floats.

use pushdown_core::{
    DType, Error, Family, Result, Tensor, TensorKind,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `dequantize`: `code * scale` in f32.
#[derive(Debug, Clone, PartialEq)]
pub struct Dequantize;

impl Operator for Dequantize {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "dequantize";
    const SUMMARY: &'static str = "8-bit codes and their scale back to f32";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[];

    fn parse(_: &Args<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        if input.quantized {
            Ok(TensorKind {
                dtype: DType::F32,
                quantized: false,
                ..input.clone()
            })
        } else {
            Err("takes the output of `quantize`, found a tensor without scale".to_owned())
        }
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        let scale = input
            .scale()
            .ok_or_else(|| Error::wire("quantised tensor without a scale"))?;
        let values = input
            .values::<i8>()
            .iter()
            .map(|code| f32::from(*code) * scale)
            .collect();
        Ok(Tensor::from_values(
            input.layout(),
            input.shape().to_vec(),
            values,
        ))
    }
}
