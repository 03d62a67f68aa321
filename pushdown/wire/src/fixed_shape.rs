//! The type of arrays of one fixed shape.

use super::shape::{MAX_AXES, Shape};
use pushdown_core::{DType, Kind, Layout};

/// The dtype, layout and shape of the values at a stage, if the pipeline determines all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedShape {
    /// Element type.
    pub dtype: DType,
    /// Axis order.
    pub layout: Layout,
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Whether each value has a quantisation scale.
    pub quantized: bool,
    /// Whether the values are images rather than tensors.
    pub image: bool,
}

impl FixedShape {
    /// The shape of all values of a kind; `None` if shapes vary, or have more elements than Arrow supports.
    pub fn for_kind(kind: &Kind) -> Option<Self> {
        let (dtype, shape) = kind.fixed_shape()?;
        let (layout, quantized, image) = match kind {
            Kind::Tensor(tensor) => (tensor.layout, tensor.quantized, false),
            _ => (Layout::Hwc, false, true),
        };
        let fixed = Self {
            dtype,
            layout,
            shape,
            quantized,
            image,
        };
        let elements = fixed.unscaled().elements()?;
        (fixed.shape.len() <= MAX_AXES && i32::try_from(elements).is_ok()).then_some(fixed)
    }

    /// The shape of a value, without a scale.
    pub(super) fn unscaled(&self) -> Shape {
        Shape {
            dtype: self.dtype,
            layout: self.layout,
            extents: self.shape.clone(),
            scale: None,
            image: self.image,
        }
    }

    /// Whether a value has this shape.
    pub(super) fn matches(&self, value: &Shape) -> bool {
        self.dtype == value.dtype
            && self.layout == value.layout
            && self.shape == value.extents
            && self.quantized == value.scale.is_some()
            && self.image == value.image
    }
}
