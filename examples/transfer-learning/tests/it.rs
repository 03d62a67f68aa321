//! Integration tests: the program with the real gateway on its embedded store.
//!
//! - `brightness`: photos whose label is learnable, and invalid inputs
//! - `model_features`: features of a real model
//! - `help`: the help text
//!
//! Support module: `world` (a gateway with objects, and the program).

#[cfg(test)]
mod it {
    mod brightness;
    mod help;
    mod model_features;
    mod world;
}
