//! Moves quotas towards their targets, slowly.

/// A quota does not fall by less than this ratio.
const MIN_FALL_RATIO: f64 = 0.05;
/// A quota below this ratio of the capacity falls to its target at once, not by half each time.
const NEGLIGIBLE_RATIO: f64 = 0.001;

/// A quota of a set, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Movement {
    pub(super) current_bytes: f64,
    pub(super) target_bytes: f64,
}

/// The next bytes of each quota.
///
/// A quota falls at most to `min_rest_ratio` of its bytes, and rises as far as the capacity that is free then allows: if the
/// rises need more, all are shortened by the same ratio. Small falls are ignored, since targets are never exact, and what a
/// fall removes is computed again after the next rise. Quotas that use at most the capacity now use at most the capacity
/// afterwards.
pub(super) fn move_quotas(capacity_bytes: f64, min_rest_ratio: f64, quotas: &[Movement]) -> Vec<f64> {
    let lowered = quotas
        .iter()
        .map(|quota| quota.lowered(min_rest_ratio, NEGLIGIBLE_RATIO * capacity_bytes));
    let mut bytes: Vec<f64> = lowered.collect();
    let free_bytes = (capacity_bytes - bytes.iter().sum::<f64>()).max(0.0);
    let rising_bytes: f64 = quotas.iter().map(Movement::rise_bytes).sum();
    let rise_ratio = if rising_bytes > free_bytes {
        free_bytes / rising_bytes
    } else {
        1.0
    };
    for (bytes, quota) in bytes.iter_mut().zip(quotas) {
        *bytes += rise_ratio * quota.rise_bytes();
    }
    bytes
}

impl Movement {
    fn lowered(&self, min_rest_ratio: f64, negligible_bytes: f64) -> f64 {
        if self.target_bytes > self.current_bytes * (1.0 - MIN_FALL_RATIO) {
            self.current_bytes
        } else if self.current_bytes < negligible_bytes {
            self.target_bytes
        } else {
            self.target_bytes.max(self.current_bytes * min_rest_ratio)
        }
    }

    fn rise_bytes(&self) -> f64 {
        (self.target_bytes - self.current_bytes).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moved(capacity_bytes: f64, quotas: &[(f64, f64)]) -> Vec<f64> {
        let movement = |(current_bytes, target_bytes): &(f64, f64)| Movement {
            current_bytes: *current_bytes,
            target_bytes: *target_bytes,
        };
        let quotas: Vec<Movement> = quotas.iter().map(movement).collect();
        move_quotas(capacity_bytes, 0.5, &quotas)
    }

    #[test]
    fn quotas_fall_by_half_and_rise_at_once() {
        assert_eq!(moved(100.0, &[(80.0, 0.0), (20.0, 60.0)]), [40.0, 60.0]);
        assert_eq!(moved(100.0, &[(80.0, 0.0), (20.0, 100.0)]), [40.0, 60.0]);
        assert_eq!(moved(100.0, &[(80.0, 50.0), (0.0, 50.0)]), [50.0, 50.0]);
        assert_eq!(
            moved(100.0, &[(80.0, 0.0), (0.0, 25.0), (0.0, 75.0)]),
            [40.0, 15.0, 45.0]
        );
    }

    #[test]
    fn small_falls_are_ignored() {
        assert_eq!(moved(100.0, &[(40.0, 41.0), (50.0, 48.0)]), [41.0, 50.0]);
        assert_eq!(moved(100.0, &[(50.0, 55.0), (50.0, 48.0)]), [50.0, 50.0]);
        assert_eq!(moved(100.0, &[(50.0, 55.0), (50.0, 45.0)]), [55.0, 45.0]);
    }

    #[test]
    fn a_quota_ends() {
        assert_eq!(moved(100.0, &[(0.09, 0.0)]), [0.0]);
    }

    proptest! {
        #[test]
        fn the_capacity_is_never_exceeded(
            quotas in prop::collection::vec((0.0..100.0_f64, 0.0..100.0_f64), 0..9),
            spare in 0.0..100.0_f64,
        ) {
            let capacity = spare + quotas.iter().map(|(current, _)| current).sum::<f64>();
            let bytes = moved(capacity, &quotas);
            prop_assert!(bytes.iter().sum::<f64>() <= capacity * (1.0 + 1e-9), "{bytes:?}");
            for (bytes, (current, target)) in bytes.into_iter().zip(quotas) {
                let lowest = if current < 0.001 * capacity { target.min(current) } else { current / 2.0 };
                prop_assert!(bytes >= lowest && bytes <= current.max(target) * (1.0 + 1e-9));
            }
        }
    }
}
