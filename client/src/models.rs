//! The models that an endpoint or a folder has.

#[cfg(feature = "models")]
mod catalogue;
#[cfg(not(feature = "models"))]
mod no_models;

#[cfg(feature = "models")]
pub use catalogue::parse_with_model_folder;
#[cfg(not(feature = "models"))]
pub use no_models::parse_with_model_folder;
