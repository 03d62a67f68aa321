//! How fast a link is, told from what passes over it.

use super::recent::{MOST, Recent};

/// Bytes per second that come through however much else there is to do at either end: a core forwards a hundred times as much
/// in a second of its own, and a thread that waits for a CPU gets it within milliseconds.
const DESPITE: f64 = 12.5e6;

/// An estimate of a link's rate.
///
/// What passes tells the rate only while the link is what everything waits for: while an object is on its way that lies
/// ready on the one side and is taken at once on the other. At any other time what passes is less than could: an end of
/// the link that has its hands full hands over and takes late.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Link {
    measured: Recent,
    /// Measured since it was last known whether the ends of the link had their hands full.
    open: Vec<f64>,
    /// The most that passed during this batch, and during the one before it.
    passed: [f64; 2],
}

impl Link {
    /// So many bytes per second passed while the link was the bound.
    pub fn measured(&mut self, bytes_per_second: f64) {
        if bytes_per_second > 0.0 {
            self.measured.add(bytes_per_second);
        }
    }

    /// So many bytes per second passed while objects were on their way: the rate, if neither end [had its hands
    /// full](Self::settle).
    pub fn seen(&mut self, bytes_per_second: f64) {
        if self.open.len() < MOST {
            self.open.push(bytes_per_second);
        }
    }

    /// Whether an end of the link had its hands full while that was seen which was not settled before. Where all of it, and all
    /// that passed of late, is slower than such an end could make it, it is the link's rate all the same. Taken one by one, what
    /// was slow by chance would count, and what was fast would not.
    pub fn settle(&mut self, full: bool) {
        let seen = std::mem::take(&mut self.open);
        let fastest = seen.iter().chain(&self.passed).copied().fold(0.0, f64::max);
        for rate in seen {
            if full && fastest > DESPITE {
                self.passed(rate);
            } else {
                self.measured(rate);
            }
        }
    }

    /// So many bytes per second passed: the link is at least as fast.
    pub fn passed(&mut self, bytes_per_second: f64) {
        if bytes_per_second.is_finite() {
            self.passed[0] = self.passed[0].max(bytes_per_second);
        }
    }

    /// A batch is done: what was measured in the one before the last no longer counts.
    pub fn next_batch(&mut self) {
        self.measured.next_batch();
        self.passed = [0.0, self.passed[0]];
    }

    /// Bytes per second: the median of the measurements, or what passed where that is more; `None` where nothing was
    /// measured.
    pub fn rate(&self) -> Option<f64> {
        let median = self.measured.median()?;
        Some(self.passed.iter().copied().fold(median, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_no_slower_than_what_passes() {
        let mut link = Link::default();
        link.passed(4e6);
        assert_eq!(link.rate(), None, "the least is no rate");
        link.measured(11e6);
        assert_eq!(link.rate(), Some(11e6));
        link.passed(20e6);
        link.next_batch();
        assert_eq!(link.rate(), Some(20e6));
        link.next_batch();
        assert_eq!(link.rate(), Some(11e6));
    }

    #[test]
    fn what_busy_ends_let_pass_is_the_least() {
        let mut link = Link::default();
        link.seen(40e6);
        assert_eq!(link.rate(), None, "not known yet");
        link.settle(true);
        assert_eq!(link.rate(), None, "the least is no rate");
        link.seen(110e6);
        link.settle(false);
        assert_eq!(link.rate(), Some(110e6));
        link.seen(30e6);
        link.seen(f64::NAN);
        link.settle(true);
        assert_eq!(link.rate(), Some(110e6));
        link.seen(130e6);
        link.settle(true);
        assert_eq!(link.rate(), Some(130e6));
        for _ in 0..2 {
            link.next_batch();
            link.seen(4e6);
            link.settle(true);
        }
        link.next_batch();
        assert_eq!(link.rate(), Some(4e6), "no CPU is as slow as that");
    }

    /// Over an open link a busy gateway hands some objects over as slowly as over a thin one.
    #[test]
    fn what_is_slow_among_what_is_fast_is_no_rate() {
        let mut link = Link::default();
        for rate in [8e6, 60e6, 9e6] {
            link.seen(rate);
        }
        link.settle(true);
        assert_eq!(link.rate(), None);
        // The same one by one: what is faster passed in the batch before.
        link.next_batch();
        link.seen(8e6);
        link.settle(true);
        assert_eq!(link.rate(), None);
    }
}
