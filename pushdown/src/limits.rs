//! The limits that a pipeline's author cannot lift (law 5). All have defaults; the gateway makes them settings.

/// The longest text of a pipeline, in bytes. Fixed: it is also what fits into a header.
pub const MAX_PIPELINE_BYTES: usize = 16 * 1024;
/// The most steps in a pipeline. Fixed: stages travel as `u8`, ordinals of random steps as 16 bits.
pub const MAX_STEPS: usize = 64;
/// The most bytes at the start of an object that are looked at to learn what it will decode to.
pub const HEADER_BYTES: usize = 64 * 1024;

/// Limits on a single sample's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Pixels in any image, decoded or resized. Default 100,000,000.
    pub max_pixels: u64,
    /// Bytes of a stored object. Default 256 MiB.
    pub max_object_bytes: u64,
    /// Bytes of any value after the first step. Default 512 MiB: a decoded image of `max_pixels` fits.
    pub max_value_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_pixels: 100_000_000,
            max_object_bytes: 256 << 20,
            max_value_bytes: 512 << 20,
        }
    }
}
