//! What a batch request states about the demand of its reader.

use pushdown_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// Maximum length of the id of a reader, in bytes.
const MAX_READER_BYTES: usize = 64;
/// Maximum cores that a reader may state.
const MAX_CORES: f64 = 1e6;

/// How many cores a reader could use, by which the gateway reports how many it should have. It never changes a value. For a gateway
/// with the feature [`DEMAND`](crate::Features::DEMAND).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// The id of the reader among those of its tenant: 1 to 64 letters, digits, `-` and `_`. A later demand of the same reader replaces
    /// the earlier one.
    pub reader: String,
    /// Cores of the gateway that gets the request, 0 to 1,000,000: a reader of several replicas divides its demand among them.
    pub cores: f64,
}

impl Demand {
    /// Checks both fields.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if the id or the number is not of the form above.
    pub fn check(&self) -> Result<()> {
        let Self { reader, cores } = self;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=MAX_READER_BYTES).contains(&reader.len()) || !reader.bytes().all(is_allowed) {
            return Err(Error::wire(format!(
                "invalid demand: expected a reader of 1 to {MAX_READER_BYTES} letters, digits, `-` and `_`, found {reader:?}"
            )));
        }
        if !(0.0..=MAX_CORES).contains(cores) {
            return Err(Error::wire(format!(
                "invalid demand: expected 0 to {MAX_CORES} cores, found {cores}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reader: &str, cores: f64) -> Result<()> {
        let reader = reader.to_owned();
        Demand { reader, cores }.check()
    }

    #[test]
    fn a_demand_names_its_reader_and_a_number_of_cores() {
        for (reader, cores) in [("a", 0.0), ("Trainer_0-7", 3.2), (&"x".repeat(64), 1e6)] {
            check(reader, cores).unwrap();
        }
        for reader in ["", "a b", "a.b", "caf\u{e9}", &"x".repeat(65)] {
            let error = check(reader, 1.0).unwrap_err().to_string();
            assert!(error.contains("expected a reader of 1 to 64 letters"), "{error}");
        }
        for cores in [-0.1, 1_000_000.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = check("a", cores).unwrap_err().to_string();
            assert!(error.contains("expected 0 to 1000000 cores, found"), "{error}");
        }
    }
}
