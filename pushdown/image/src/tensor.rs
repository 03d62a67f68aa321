//! Steps that convert images to tensors or change tensors.

mod cast;
mod convert;
mod dequantize;
mod grayscale;
mod layout;
mod normalize;
mod quantize;
mod to_float;
mod to_tensor;

pub use cast::Cast;
pub use dequantize::Dequantize;
pub use grayscale::Grayscale;
pub use layout::SetLayout;
pub use normalize::Normalize;
pub use normalize::normalize_pixels;
pub use quantize::Quantize;
pub use to_float::ToFloat;
pub use to_tensor::ToTensor;

#[cfg(test)]
mod tests;
