//! Estimates the bandwidths between store, gateway and host.
//!
//! If store and gateway have one address, the link is the only path, and all rates are those of the link. Otherwise each path is measured
//! by its own bytes, and the link that the paths share by the bytes of both, while both are saturated.
//!
//! What a path delivers next to the other one is less than its bandwidth if the link cannot carry both. It is the bandwidth only if the
//! other path delivers as much as alone, and it counts only if the path was not measured alone lately.

use super::{Path, Paths, link::Link, recent_median::MAX_MEASUREMENTS};

/// A path that delivers at least this ratio of its bandwidth next to the other path is not slowed down by it.
const FULL_RATIO: f64 = 0.85;

/// Bytes per second that arrived while enough bytes were in flight to saturate a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MeasuredRate {
    /// One path was saturated; with one address, the link.
    Alone {
        /// The saturated path; with one address, that of the store.
        path: Path,
        /// Bytes over it.
        bytes_per_second: f64,
    },
    /// Both paths were saturated.
    Together {
        /// Bytes from the store.
        store_bytes_per_second: f64,
        /// Bytes from the gateway.
        gateway_bytes_per_second: f64,
    },
}

/// Which ends of the paths were saturated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SaturatedEnds {
    pub(super) gateway: bool,
    pub(super) host: bool,
}

/// Estimates of the bandwidth of the link, and of each path if there are two.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Links {
    /// With one address, the link.
    store: PathEstimate,
    /// Set if the gateway is beside the store. On the heap: most readers have one path, and futures hold planners.
    second: Option<Box<SecondPath>>,
}

/// What there is besides the path of the store.
#[derive(Debug, Clone, PartialEq, Default)]
struct SecondPath {
    gateway: PathEstimate,
    /// The link that both paths share.
    link: Link,
    /// Rates of store and gateway while both paths were saturated, since the last classification.
    together: Vec<[f64; 2]>,
}

/// The estimate of a path.
#[derive(Debug, Clone, PartialEq, Default)]
struct PathEstimate {
    link: Link,
    /// Whether the path was measured alone in the current batch, and in the one before it.
    was_alone: [bool; 2],
}

impl Links {
    /// Estimates for a gateway beside the store.
    pub fn with_two_paths() -> Self {
        Self {
            second: Some(Box::default()),
            ..Self::default()
        }
    }

    /// Whether store and gateway have an address each.
    pub const fn has_two_paths(&self) -> bool {
        self.second.is_some()
    }

    /// The estimate of a path; with one address, of the link.
    fn path_mut(&mut self, path: Path) -> &mut PathEstimate {
        match (path, &mut self.second) {
            (Path::Gateway, Some(second)) => &mut second.gateway,
            (Path::Store, _) | (Path::Gateway, None) => &mut self.store,
        }
    }

    /// Records a rate that was measured while nothing but the path limited it.
    pub fn observe_bandwidth(&mut self, path: Path, bytes_per_second: f64) {
        let estimate = self.path_mut(path);
        estimate.was_alone[0] = true;
        estimate.link.observe_bandwidth(bytes_per_second);
    }

    /// Records a rate that was measured while enough bytes were in flight. It is a bandwidth if no end of its path was saturated;
    /// the end of the interval decides.
    pub fn observe_rate(&mut self, rate: MeasuredRate) {
        match rate {
            MeasuredRate::Alone {
                path,
                bytes_per_second,
            } => {
                let estimate = self.path_mut(path);
                estimate.was_alone[0] = true;
                estimate.link.observe_rate(bytes_per_second);
            }
            MeasuredRate::Together {
                store_bytes_per_second,
                gateway_bytes_per_second,
            } => {
                if let Some(second) = &mut self.second
                    && second.together.len() < MAX_MEASUREMENTS
                {
                    second
                        .together
                        .push([store_bytes_per_second, gateway_bytes_per_second]);
                }
            }
        }
    }

    /// Classifies the rates recorded since the last call; see [`Link::classify_rates`]. The gateway is no end of the store's path.
    pub(super) fn classify_rates(&mut self, saturated: SaturatedEnds) {
        let any = saturated.gateway || saturated.host;
        let Some(second) = &mut self.second else {
            self.store.link.classify_rates(any);
            return;
        };
        self.store.link.classify_rates(saturated.host);
        second.gateway.link.classify_rates(any);
        let together = std::mem::take(&mut second.together);
        let is_unshared = self.store.is_full(together.iter().map(|[store, _]| *store))
            || second
                .gateway
                .is_full(together.iter().map(|[_, gateway]| *gateway));
        for [store, gateway] in together {
            second.link.observe_rate(store + gateway);
            if is_unshared {
                self.store.observe_next_to_other(store);
                second.gateway.observe_next_to_other(gateway);
            }
        }
        second.link.classify_rates(any);
        self.store.link.classify_rates(saturated.host);
        second.gateway.link.classify_rates(any);
    }

    /// Records what arrived from each end in an interval: lower bounds. With one address, all of it is from the store.
    pub fn observe_throughput(&mut self, store_bytes_per_second: f64, gateway_bytes_per_second: f64) {
        self.store.link.observe_throughput(store_bytes_per_second);
        if let Some(second) = &mut self.second {
            second.gateway.link.observe_throughput(gateway_bytes_per_second);
            second
                .link
                .observe_throughput(store_bytes_per_second + gateway_bytes_per_second);
        }
    }

    /// Ends a batch: measurements of the batch before the last no longer count.
    pub(super) fn next_batch(&mut self) {
        self.store.next_batch();
        if let Some(second) = &mut self.second {
            second.gateway.next_batch();
            second.link.next_batch();
        }
    }

    /// Whether the path of the store was measured; with one address, the link.
    pub fn is_measured(&self) -> bool {
        self.store.link.bytes_per_second().is_some()
    }

    /// The bandwidth of the link; infinite if it was not measured.
    pub(super) fn link_bytes_per_second(&self) -> f64 {
        let Some(second) = &self.second else {
            return self.store.bytes_per_second();
        };
        let link_bytes_per_second = second.link.bytes_per_second().unwrap_or(f64::INFINITY);
        // The link carries what a path delivered alone, even if it was measured as slower before.
        let recent = [&self.store, &second.gateway]
            .into_iter()
            .filter(|path| path.was_recently_alone());
        let recent = recent.filter_map(|path| path.link.bytes_per_second());
        recent.fold(link_bytes_per_second, f64::max)
    }

    /// The bandwidths of the paths, infinite for one that was not measured. `None` with one address.
    pub(super) fn paths(&self) -> Option<Paths> {
        let second = self.second.as_ref()?;
        Some(Paths {
            store_bytes_per_second: self.store.bytes_per_second(),
            gateway_bytes_per_second: second.gateway.bytes_per_second(),
        })
    }
}

impl PathEstimate {
    /// The bandwidth; infinite if it was not measured.
    fn bytes_per_second(&self) -> f64 {
        self.link.bytes_per_second().unwrap_or(f64::INFINITY)
    }

    fn was_recently_alone(&self) -> bool {
        self.was_alone.contains(&true)
    }

    /// Whether the median of these rates next to the other path is about what the path delivers alone. Not known of a path that was
    /// never measured.
    fn is_full(&self, rates: impl Iterator<Item = f64>) -> bool {
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        let median = rates.get(rates.len() / 2);
        median
            .zip(self.link.bytes_per_second())
            .is_some_and(|(median, alone)| *median >= FULL_RATIO * alone)
    }

    /// Records a rate next to the other path, which one of the two did not slow down.
    fn observe_next_to_other(&mut self, bytes_per_second: f64) {
        if !self.was_recently_alone() {
            self.link.observe_rate(bytes_per_second);
        }
    }

    fn next_batch(&mut self) {
        self.link.next_batch();
        self.was_alone = [false, self.was_alone[0]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: SaturatedEnds = SaturatedEnds {
        gateway: false,
        host: false,
    };

    const fn alone(path: Path, bytes_per_second: f64) -> MeasuredRate {
        MeasuredRate::Alone {
            path,
            bytes_per_second,
        }
    }

    const fn together(store_bytes_per_second: f64, gateway_bytes_per_second: f64) -> MeasuredRate {
        MeasuredRate::Together {
            store_bytes_per_second,
            gateway_bytes_per_second,
        }
    }

    /// Reads a batch with these rates.
    fn batch(links: &mut Links, rates: &[MeasuredRate]) {
        links.next_batch();
        for rate in rates {
            links.observe_rate(*rate);
        }
        links.classify_rates(NONE);
    }

    /// The estimates of store, gateway and link.
    fn estimates(links: &Links) -> (f64, f64, f64) {
        let paths = links.paths().unwrap();
        (
            paths.store_bytes_per_second,
            paths.gateway_bytes_per_second,
            links.link_bytes_per_second(),
        )
    }

    fn measured(rates: &[MeasuredRate]) -> Links {
        let mut links = Links::with_two_paths();
        batch(&mut links, rates);
        links
    }

    const BOTH_ALONE: [MeasuredRate; 2] = [alone(Path::Store, 8e6), alone(Path::Gateway, 4e6)];

    #[test]
    fn each_path_is_measured_by_its_own_bytes() {
        let links = Links::with_two_paths();
        assert!(!links.is_measured());
        assert_eq!(estimates(&links), (f64::INFINITY, f64::INFINITY, f64::INFINITY));
        let links = measured(&BOTH_ALONE);
        assert!(links.is_measured());
        assert_eq!(estimates(&links), (8e6, 4e6, f64::INFINITY));
    }

    #[test]
    fn with_one_address_all_rates_are_those_of_the_link() {
        let mut links = Links::default();
        batch(&mut links, &BOTH_ALONE);
        // There is no second path that could be saturated.
        batch(&mut links, &[together(1e6, 1e6)]);
        assert_eq!((links.paths(), links.link_bytes_per_second()), (None, 6e6));
        links.observe_throughput(9e6, 0.0);
        assert_eq!((links.paths(), links.link_bytes_per_second()), (None, 9e6));
    }

    /// Both paths deliver less than alone: the link cannot carry more.
    #[test]
    fn the_link_is_measured_while_both_paths_are_saturated() {
        let mut links = measured(&BOTH_ALONE);
        batch(&mut links, &[together(6e6, 3e6)]);
        assert_eq!(estimates(&links), (8e6, 4e6, 9e6));
        // Also later, when nothing is known of either path alone for some batches.
        for _ in 0..3 {
            batch(&mut links, &[together(4e6, 2e6)]);
        }
        assert_eq!(estimates(&links), (8e6, 4e6, 6e6));
    }

    /// One path delivers as much as alone, so the link does not slow down the other one.
    #[test]
    fn a_path_that_became_slow_is_told_from_a_slow_link() {
        for (rates, expected) in [
            (together(8e6, 1e6), (8e6, 1e6, 9e6)),
            (together(2e6, 4e6), (2e6, 4e6, 6e6)),
            (together(8e6, 12e6), (8e6, 12e6, 20e6)),
        ] {
            let mut links = measured(&BOTH_ALONE);
            for _ in 0..4 {
                batch(&mut links, &[rates]);
            }
            assert_eq!(estimates(&links), expected, "{rates:?}");
        }
    }

    /// A busy store takes most of a link. The gateway's path is as fast as it was alone.
    #[test]
    fn a_path_that_was_measured_alone_lately_is_as_fast() {
        let mut links = measured(&BOTH_ALONE);
        for _ in 0..4 {
            batch(&mut links, &[alone(Path::Gateway, 4e6), together(8e6, 1e6)]);
        }
        assert_eq!(estimates(&links), (8e6, 4e6, 9e6));
    }

    #[test]
    fn a_link_is_at_least_as_fast_as_its_paths() {
        let mut links = measured(&[together(2e6, 1e6)]);
        assert_eq!(estimates(&links), (f64::INFINITY, f64::INFINITY, 3e6));
        batch(&mut links, &[alone(Path::Store, 8e6)]);
        assert_eq!(estimates(&links), (8e6, f64::INFINITY, 8e6));
        links.observe_throughput(6e6, 7e6);
        assert_eq!(estimates(&links), (8e6, f64::INFINITY, 13e6));
    }

    /// Plain reads do not pass a gateway that computes.
    #[test]
    fn a_saturated_gateway_is_no_end_of_the_stores_path() {
        let mut links = Links::with_two_paths();
        for path in [Path::Store, Path::Gateway] {
            links.observe_rate(alone(path, 50e6));
        }
        links.classify_rates(SaturatedEnds {
            gateway: true,
            host: false,
        });
        assert_eq!(estimates(&links), (50e6, f64::INFINITY, f64::INFINITY));
        links.observe_rate(alone(Path::Store, 90e6));
        links.classify_rates(SaturatedEnds {
            gateway: false,
            host: true,
        });
        assert_eq!(
            estimates(&links),
            (90e6, f64::INFINITY, f64::INFINITY),
            "a lower bound"
        );
        for _ in 0..2 {
            links.next_batch();
        }
        assert_eq!(
            estimates(&links),
            (50e6, f64::INFINITY, f64::INFINITY),
            "no longer"
        );
    }
}
