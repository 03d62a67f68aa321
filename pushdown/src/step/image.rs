//! Steps on images: decoding, geometry, encoding.

mod center_crop;
mod crop;
mod decode;
mod encode;
mod resample;
mod resize;

pub use center_crop::CenterCrop;
pub use crop::Crop;
pub(crate) use crop::crop;
pub use decode::Decode;
pub use encode::{Encode, Encoding};
pub use resample::Filter;
pub(crate) use resample::{Region, resample, resample_part, resample_region, resample_scratch};
pub use resize::{Resize, Size};
