//! Model cards: files `NAME.json` next to a model that say how to prepare inputs.

use serde::{Deserialize, Serialize};

use pushdown_core::{Error, Layout, Result, language::Normalization};

/// How to prepare an input. Every field is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelCard {
    /// Order of the axes: `chw` or `hwc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Side of the square input in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Mean to subtract from values in `0..=value_range`: one for all channels, or one per channel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// Standard deviation to divide by after that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,
    /// The value of white to which `mean` and `std` refer: 1 or 255. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_range: Option<f64>,
    /// How photos were resized in training: `bilinear`, `bicubic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<String>,
    /// The tensor up to which transfer learning leaves the weights unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze_point: Option<String>,
}

impl ModelCard {
    /// Reads the JSON.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) with the fault.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let card: Self = serde_json::from_slice(json)
            .map_err(|error| Error::model(format!("its JSON file is not a model card: {error}")))?;
        let range = card.value_range.unwrap_or(1.0);
        if card.mean.len() != card.std.len() || card.std.contains(&0.0) || !(range.is_finite() && range > 0.0)
        {
            return Err(Error::model(
                "its JSON file is invalid: expected as many `std` as `mean`, no `std` of 0, and a `value_range` above 0",
            ));
        }
        Ok(card)
    }

    /// Mean and standard deviation for values from 0 to 1, the range of `to_float`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounds to the nearest f32, as torch does with a Python float"
    )]
    pub fn normalization(&self) -> Option<Normalization> {
        let range = self.value_range.unwrap_or(1.0);
        let scaled = |values: &[f64]| values.iter().map(|value| (value / range) as f32).collect();
        (!self.mean.is_empty()).then(|| Normalization {
            mean: scaled(&self.mean),
            std: scaled(&self.std),
        })
    }
}
