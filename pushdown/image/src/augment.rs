//! Random steps: torchvision's distributions over reproducible draws.

mod color_jitter;
mod flip_h;
mod random_crop;
mod random_resized_crop;
#[cfg(test)]
mod statistics;

pub use color_jitter::ColorJitter;
pub use flip_h::FlipH;
pub use pushdown_core::step::Draws;
pub use random_crop::RandomCrop;
pub use random_resized_crop::RandomResizedCrop;

use pushdown_core::language::{Param, Value};

/// The parameter that every random step has.
const SEED: Param = Param::named("seed", "whole number = the request's", "seed of this step");

fn seed_argument(seed: Option<u64>) -> Option<(&'static str, Value)> {
    // Seeds are parsed as non-negative i64, so the conversion cannot fail.
    seed.and_then(|seed| i64::try_from(seed).ok())
        .map(|seed| ("seed", Value::Int(seed)))
}
