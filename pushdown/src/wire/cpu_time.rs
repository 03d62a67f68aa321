//! What the CPUs of a gateway have done.

use std::{fmt, str::FromStr};

/// Seconds of all CPUs of a gateway together, counted from whenever: what lies between two of them tells how busy the CPUs were
/// meanwhile. Written as `busy/all/steps`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuTime {
    /// In which somebody used them.
    pub busy: f64,
    /// That there were.
    pub all: f64,
    /// That steps took, of any reader's samples, and all that is done for them there: layers are loaded, say.
    pub steps: f64,
}

/// A text that is no [`CpuTime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not three numbers of seconds, as busy/all/steps")]
pub struct NoCpuTime;

impl CpuTime {
    /// What came after `before`; `None` where these are not the same CPUs: another gateway at the same address, or one
    /// that was started anew.
    pub fn since(self, before: Self) -> Option<Self> {
        let passed = Self {
            busy: self.busy - before.busy,
            all: self.all - before.all,
            steps: self.steps - before.steps,
        };
        (passed.all > 0.0 && passed.busy >= 0.0 && passed.steps >= 0.0).then_some(passed)
    }
}

impl fmt::Display for CpuTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}/{:.2}/{:.3}", self.busy, self.all, self.steps)
    }
}

impl FromStr for CpuTime {
    type Err = NoCpuTime;

    fn from_str(text: &str) -> Result<Self, NoCpuTime> {
        let number = |text: &str| text.parse().ok().filter(|seconds: &f64| seconds.is_finite());
        let numbers: Option<Vec<f64>> = text.split('/').map(number).collect();
        match numbers.as_deref() {
            Some(&[busy, all, steps]) => Ok(Self { busy, all, steps }),
            _ => Err(NoCpuTime),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let time = CpuTime {
            busy: 12.25,
            all: 1e7,
            steps: 0.125,
        };
        assert_eq!(time.to_string(), "12.25/10000000.00/0.125");
        assert_eq!(time.to_string().parse(), Ok(time));
        for text in ["", "1/2", "1/2/3/4", "1/2/three", "1/2/NaN", "1/inf/3"] {
            assert_eq!(text.parse::<CpuTime>(), Err(NoCpuTime), "{text}");
        }
    }

    #[test]
    fn other_cpus_are_no_later_time_of_these() {
        let time = |busy, all, steps| CpuTime { busy, all, steps };
        let before = time(10.0, 100.0, 5.0);
        assert_eq!(time(11.0, 104.0, 5.5).since(before), Some(time(1.0, 4.0, 0.5)));
        for other in [
            time(9.0, 104.0, 6.0),
            time(11.0, 100.0, 6.0),
            time(11.0, 104.0, 0.0),
        ] {
            assert_eq!(other.since(before), None);
        }
    }
}
