//! `quantize`: converts floats to 8-bit codes and a scale.

use pushdown_core::{
    DType, Family, Result, Tensor, TensorKind, choice,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

choice! {
    /// The form of the codes.
    enum Codes {
        /// Symmetric signed 8 bit, -127 to 127.
        Int8 = "int8",
    }
}

/// `quantize`: `round(x / scale)`, ties to even, clamped to -127..=127. The default scale is `max|x| / 127` of the sample. The
/// scale is part of the value. NaN becomes 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantize {
    codes: Codes,
    scale: Option<f32>,
}

impl Operator for Quantize {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "quantize";
    const SUMMARY: &'static str = "f32 to symmetric 8-bit codes and a scale";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[
        Param::positional("codes", "int8", "form of the codes"),
        Param::named("scale", "number = max|x| / 127", "value of code 1"),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let scale = args.optional::<f32>("scale")?;
        if let Some(scale) = scale.filter(|scale| *scale <= 0.0) {
            return Err(args.fault(format!("`scale` is {scale}, expected a number above 0")));
        }
        Ok(Self {
            codes: args.required("codes")?,
            scale,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let scale = self.scale.map(|scale| ("scale", Value::from(scale)));
        std::iter::once(("codes", Value::Text(self.codes.name().to_owned())))
            .chain(scale)
            .collect()
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        match input.dtype {
            DType::F32 => Ok(TensorKind {
                dtype: DType::I8,
                quantized: true,
                ..input.clone()
            }),
            dtype => Err(format!("takes f32, found {dtype}; put `cast(f32)` before it")),
        }
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        let values = input.values::<f32>();
        let scale = self.scale.unwrap_or_else(|| default_scale(&values));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "`as` saturates, and NaN becomes 0"
        )]
        let codes: Vec<i8> = values
            .iter()
            .map(|value| (value / scale).round_ties_even().clamp(-127.0, 127.0) as i8)
            .collect();
        Ok(Tensor::from_values(input.layout(), input.shape().to_vec(), codes).with_scale(Some(scale)))
    }
}

/// `max|x| / 127` of the finite values, or 1 if that is 0.
fn default_scale(values: &[f32]) -> f32 {
    let largest = values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .fold(0.0, |max: f32, value| max.max(value.abs()));
    let scale = largest / 127.0;
    if scale > 0.0 { scale } else { 1.0 }
}
