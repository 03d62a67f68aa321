//! The times of a sample, for `Server-Timing`.

use std::{fmt, time::Duration};

/// The durations of a sample's phases, in order.
#[derive(Debug, Clone, Default)]
pub(in crate::routes) struct Timing {
    parts: Vec<(String, Duration)>,
}

impl Timing {
    pub(in crate::routes) fn add(&mut self, name: impl Into<String>, duration: Duration) {
        self.parts.push((name.into(), duration));
    }

    /// Adds a phase that not every sample has.
    pub(in crate::routes) fn add_if_any(&mut self, name: &str, duration: Duration) {
        if !duration.is_zero() {
            self.add(name, duration);
        }
    }

    /// Adds all durations of `other`.
    pub(in crate::routes) fn extend(&mut self, other: &Self) {
        self.parts.extend_from_slice(&other.parts);
    }
}

/// The `Server-Timing` header (W3C), durations in milliseconds. `+` becomes `_`, since not every parser accepts it in a
/// token.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, duration)) in self.parts.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{separator}{};dur={:.3}",
                name.replace('+', "_"),
                duration.as_secs_f64() * 1e3
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_is_formatted_as_server_timing() {
        let mut timing = Timing::default();
        timing.add("origin", Duration::from_micros(1500));
        timing.add("resize+center_crop", Duration::from_micros(20));
        assert_eq!(
            timing.to_string(),
            "origin;dur=1.500, resize_center_crop;dur=0.020"
        );
    }
}
