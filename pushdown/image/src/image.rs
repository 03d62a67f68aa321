//! Steps on images: decoding, geometry, encoding.

mod center_crop;
mod crop;
mod decode;
mod encode;
mod geometry;
mod resample;
mod resize;

pub use center_crop::CenterCrop;
pub use crop::Crop;
pub use decode::Decode;
pub use encode::{Encode, Encoding};
pub use geometry::{Geometry, Rectangle, Region, Window};
pub use resample::Filter;
pub(crate) use resample::resample_scratch_bytes;
pub use resize::{Resize, Size};
