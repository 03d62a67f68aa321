//! How long steps inside of `each` take on this host.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use pushdown::step::CellHost;
use pushdown_exec::sync::Mutex;

/// Adds up the times of steps over all values of some rows.
#[derive(Debug)]
pub(crate) struct HostTimes {
    began: Instant,
    times: Mutex<Vec<InnerTime>>,
}

/// The time of steps of the pipeline inside of an `each`, which ran as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InnerTime {
    pub(super) column: String,
    pub(super) steps: Range<usize>,
    pub(super) time: Duration,
}

impl HostTimes {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            times: Mutex::default(),
        }
    }

    /// The times so far.
    pub(super) fn times(&self) -> Vec<InnerTime> {
        self.times.lock().clone()
    }
}

impl CellHost for HostTimes {
    fn now(&self) -> Option<Duration> {
        Some(self.began.elapsed())
    }

    fn record(&self, column: &str, steps: Range<usize>, time: Duration) {
        let mut times = self.times.lock();
        match times
            .iter_mut()
            .find(|known| known.column == column && known.steps == steps)
        {
            Some(known) => known.time += time,
            None => times.push(InnerTime {
                column: column.to_owned(),
                steps,
                time,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_same_steps_are_added_up() {
        let times = HostTimes::new();
        for (column, steps) in [("a", 0..2), ("b", 0..2), ("a", 0..2), ("a", 2..3)] {
            times.record(column, steps, Duration::from_millis(5));
        }
        let time = |column: &str, steps, milliseconds| InnerTime {
            column: column.to_owned(),
            steps,
            time: Duration::from_millis(milliseconds),
        };
        assert_eq!(
            times.times(),
            [time("a", 0..2, 10), time("b", 0..2, 5), time("a", 2..3, 5)]
        );
    }
}
