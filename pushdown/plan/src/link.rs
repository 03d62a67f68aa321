//! Estimates the bandwidth of a link, or of a path to it, from the transfers over it.

use super::recent_median::{MAX_MEASUREMENTS, RecentMedian};

/// Throughput that even a saturated tier achieves: one core forwards a hundred times as much, and a thread that waits for a CPU
/// gets it within milliseconds.
const SATURATED_BYTES_PER_SECOND: f64 = 12.5e6;

/// An estimate of the bandwidth of a link.
///
/// The throughput equals the bandwidth only while the link is the bottleneck: while an object is in flight that is ready at the
/// sender and read at once by the receiver. Otherwise the throughput is lower, because a saturated tier sends and reads late.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Link {
    /// Rates measured while the link was the bottleneck.
    bandwidths: RecentMedian,
    /// Rates measured since the last call of [`classify_rates`](Self::classify_rates).
    unclassified: Vec<f64>,
    /// Maximum throughput during the current batch, and during the one before it.
    max_throughputs: [f64; 2],
}

impl Link {
    /// Records a rate that was measured while the link was the bottleneck.
    pub(super) fn observe_bandwidth(&mut self, bytes_per_second: f64) {
        if bytes_per_second > 0.0 {
            self.bandwidths.add(bytes_per_second);
        }
    }

    /// Records a rate that was measured while objects were in flight. It is the bandwidth if neither end of the link was
    /// saturated; [`classify_rates`](Self::classify_rates) decides.
    pub(super) fn observe_rate(&mut self, bytes_per_second: f64) {
        if self.unclassified.len() < MAX_MEASUREMENTS {
            self.unclassified.push(bytes_per_second);
        }
    }

    /// Classifies the rates recorded since the last call, during which an end of the link was `saturated` or not. Rates of a
    /// saturated end are the bandwidth only if all of them, and the recent throughput, are slower than a saturated end can
    /// be. A decision for each rate alone would count those that are slow by chance, and not the fast ones.
    pub(super) fn classify_rates(&mut self, saturated: bool) {
        let rates = std::mem::take(&mut self.unclassified);
        let fastest = rates
            .iter()
            .chain(&self.max_throughputs)
            .copied()
            .fold(0.0, f64::max);
        for rate in rates {
            if saturated && fastest > SATURATED_BYTES_PER_SECOND {
                self.observe_throughput(rate);
            } else {
                self.observe_bandwidth(rate);
            }
        }
    }

    /// Records a throughput: a lower bound of the bandwidth.
    pub(super) fn observe_throughput(&mut self, bytes_per_second: f64) {
        if bytes_per_second.is_finite() {
            self.max_throughputs[0] = self.max_throughputs[0].max(bytes_per_second);
        }
    }

    /// Ends a batch: measurements of the batch before the last no longer count.
    pub(super) fn next_batch(&mut self) {
        self.bandwidths.next_batch();
        self.max_throughputs = [0.0, self.max_throughputs[0]];
    }

    /// The median of the measured bandwidths, or the maximum throughput if that is higher. `None` without a measured bandwidth.
    pub(super) fn bytes_per_second(&self) -> Option<f64> {
        let median = self.bandwidths.median()?;
        Some(self.max_throughputs.iter().copied().fold(median, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_at_least_as_fast_as_its_throughput() {
        let mut link = Link::default();
        link.observe_throughput(4e6);
        assert_eq!(link.bytes_per_second(), None, "a lower bound is not an estimate");
        link.observe_bandwidth(11e6);
        assert_eq!(link.bytes_per_second(), Some(11e6));
        link.observe_throughput(20e6);
        link.next_batch();
        assert_eq!(link.bytes_per_second(), Some(20e6));
        link.next_batch();
        assert_eq!(link.bytes_per_second(), Some(11e6));
    }

    #[test]
    fn rates_of_saturated_ends_are_a_lower_bound() {
        let mut link = Link::default();
        link.observe_rate(40e6);
        assert_eq!(link.bytes_per_second(), None, "not classified yet");
        link.classify_rates(true);
        assert_eq!(link.bytes_per_second(), None, "a lower bound is not an estimate");
        link.observe_rate(110e6);
        link.classify_rates(false);
        assert_eq!(link.bytes_per_second(), Some(110e6));
        link.observe_rate(30e6);
        link.observe_rate(f64::NAN);
        link.classify_rates(true);
        assert_eq!(link.bytes_per_second(), Some(110e6));
        link.observe_rate(130e6);
        link.classify_rates(true);
        assert_eq!(link.bytes_per_second(), Some(130e6));
        for _ in 0..2 {
            link.next_batch();
            link.observe_rate(4e6);
            link.classify_rates(true);
        }
        link.next_batch();
        assert_eq!(
            link.bytes_per_second(),
            Some(4e6),
            "no saturated CPU is that slow"
        );
    }

    /// Over a fast link a saturated gateway sends some objects as slowly as over a slow link.
    #[test]
    fn slow_rates_among_fast_ones_do_not_count() {
        let mut link = Link::default();
        for rate in [8e6, 60e6, 9e6] {
            link.observe_rate(rate);
        }
        link.classify_rates(true);
        assert_eq!(link.bytes_per_second(), None);
        // A single slow rate: the faster throughput is that of the batch before.
        link.next_batch();
        link.observe_rate(8e6);
        link.classify_rates(true);
        assert_eq!(link.bytes_per_second(), None);
    }
}
