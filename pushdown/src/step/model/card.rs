//! What a model expects of its input, as the file `NAME.json` beside it says.

use serde::{Deserialize, Serialize};

use crate::{Error, Layout, Result};

/// How to prepare an input. Everything may be left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Card {
    /// Order of the axes: `chw` or `hwc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Side of the square input in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// What to subtract from values within `0..=value_range`, for all channels or for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// What to divide by then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,
    /// What white is for `mean` and `std`: 1 or 255. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_range: Option<f64>,
    /// How photos were resized in training: `bilinear`, `bicubic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<String>,
    /// Tensor up to which transfer learning leaves the weights alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze_point: Option<String>,
}

impl Card {
    /// Reads the JSON.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) with what is wrong.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let card: Self = serde_json::from_slice(json)
            .map_err(|error| Error::model(format!("its JSON file is no description: {error}")))?;
        let range = card.value_range.unwrap_or(1.0);
        if card.mean.len() != card.std.len() || card.std.contains(&0.0) || !(range.is_finite() && range > 0.0)
        {
            return Err(Error::model(
                "its JSON file needs as many `std` as `mean`, none of them 0, and a `value_range` above 0",
            ));
        }
        Ok(card)
    }

    /// Mean and deviation for values from 0 to 1, as `to_float` makes them.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "to nearest, as torch reads a Python float"
    )]
    pub fn normalization(&self) -> Option<(Vec<f32>, Vec<f32>)> {
        let range = self.value_range.unwrap_or(1.0);
        let scaled = |values: &[f64]| values.iter().map(|value| (value / range) as f32).collect();
        (!self.mean.is_empty()).then(|| (scaled(&self.mean), scaled(&self.std)))
    }
}
