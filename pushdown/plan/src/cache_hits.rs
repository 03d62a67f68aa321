//! What the result cache of a gateway saves at a split.

use super::{Candidate, LoadingCost};

/// CPU seconds at the gateway for a cached value before any was observed: a look-up and its authorization.
pub const ASSUMED_HIT_SECONDS: f64 = 1e-4;

/// The part of a split's samples that the result cache of the gateway serves.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CacheHits {
    /// Ratio of the samples in this epoch, from 0 to 1.
    pub ratio: f64,
    /// Ratio of the samples in later epochs, among those that this epoch requests at this split.
    pub later_ratio: f64,
    /// CPU seconds at the gateway for one of them.
    pub seconds: f64,
}

impl Candidate {
    /// CPU seconds at the gateway, as the mean of cached values and others.
    pub fn mean_gateway_seconds(&self) -> f64 {
        self.hits.ratio * self.hits.seconds + (1.0 - self.hits.ratio) * self.gateway_seconds
    }

    /// CPU seconds at the gateway for the slowest samples.
    pub(super) fn max_gateway_seconds(&self) -> f64 {
        match self.hits.ratio {
            ratio if ratio <= 0.0 => self.gateway_seconds,
            ratio if ratio < 1.0 => self.gateway_seconds.max(self.hits.seconds),
            _ => self.hits.seconds,
        }
    }

    /// This split in a later epoch, with all layers loaded, for samples that were not requested at it before.
    pub(super) fn in_later_epoch(&self) -> Self {
        Self {
            loading: LoadingCost::default(),
            ..*self
        }
    }

    /// This split in a later epoch for the samples that are cached then; `None` if there are not more than now.
    pub(super) fn cached_in_later_epoch(&self) -> Option<Self> {
        let hits = CacheHits {
            ratio: 1.0,
            ..self.hits
        };
        (self.hits.later_ratio > self.hits.ratio).then(|| Self {
            hits,
            ..self.in_later_epoch()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Stage;

    fn candidate(gateway_seconds: f64, hits: CacheHits) -> Candidate {
        Candidate {
            stage: Stage::After(1),
            bytes: 1e4,
            gateway_seconds,
            host_seconds: 0.0,
            weights_bytes: 0.0,
            loading: LoadingCost::default(),
            hits,
        }
    }

    #[test]
    fn gateway_seconds_are_a_mean_of_hits_and_others() {
        let hits = CacheHits {
            ratio: 0.25,
            later_ratio: 1.0,
            seconds: 0.002,
        };
        let split = candidate(0.010, hits);
        assert!((split.mean_gateway_seconds() - 0.008).abs() < 1e-12);
        assert!((split.max_gateway_seconds() - 0.010).abs() < 1e-12);
        let later = split.cached_in_later_epoch().unwrap();
        assert_eq!(later.cached_in_later_epoch(), None, "all are cached");
        assert!((later.mean_gateway_seconds() - 0.002).abs() < 1e-12);
        assert!((later.max_gateway_seconds() - 0.002).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn without_hits_the_seconds_are_exactly_those_of_the_steps(seconds in 0.0..10.0_f64, hit in 0.0..10.0_f64) {
            let hits = CacheHits { ratio: 0.0, later_ratio: 0.0, seconds: hit };
            let split = candidate(seconds, hits);
            prop_assert_eq!(split.mean_gateway_seconds().to_bits(), seconds.to_bits());
            prop_assert_eq!(split.max_gateway_seconds().to_bits(), seconds.to_bits());
        }
    }
}
