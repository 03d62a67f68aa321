//! CPU time of a gateway.

use std::{fmt, str::FromStr};

/// CPU seconds of a gateway, summed over all of its CPUs and counted from any start. The difference of two values is the CPU time
/// between them. As text, `busy/all/steps`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuTime {
    /// Seconds in which the CPUs were busy, with any work.
    pub busy_seconds: f64,
    /// Total seconds, busy or idle.
    pub total_seconds: f64,
    /// Seconds spent on steps for all readers, including related work such as loading layers.
    pub step_seconds: f64,
}

/// The error for text that is not a [`CpuTime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid CPU time: expected three numbers of seconds, busy/all/steps")]
pub struct InvalidCpuTime;

impl CpuTime {
    /// The CPU time since `before`; `None` if the values are from different gateways at one address, or from before and after a
    /// restart.
    pub fn since(self, before: Self) -> Option<Self> {
        let passed = Self {
            busy_seconds: self.busy_seconds - before.busy_seconds,
            total_seconds: self.total_seconds - before.total_seconds,
            step_seconds: self.step_seconds - before.step_seconds,
        };
        (passed.total_seconds > 0.0 && passed.busy_seconds >= 0.0 && passed.step_seconds >= 0.0)
            .then_some(passed)
    }
}

impl fmt::Display for CpuTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2}/{:.2}/{:.3}",
            self.busy_seconds, self.total_seconds, self.step_seconds
        )
    }
}

impl FromStr for CpuTime {
    type Err = InvalidCpuTime;

    fn from_str(text: &str) -> Result<Self, InvalidCpuTime> {
        let number = |text: &str| text.parse().ok().filter(|seconds: &f64| seconds.is_finite());
        let numbers: Option<Vec<f64>> = text.split('/').map(number).collect();
        match numbers.as_deref() {
            Some(&[busy_seconds, total_seconds, step_seconds]) => Ok(Self {
                busy_seconds,
                total_seconds,
                step_seconds,
            }),
            _ => Err(InvalidCpuTime),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_parse_their_own_text() {
        let time = CpuTime {
            busy_seconds: 12.25,
            total_seconds: 1e7,
            step_seconds: 0.125,
        };
        assert_eq!(time.to_string(), "12.25/10000000.00/0.125");
        assert_eq!(time.to_string().parse(), Ok(time));
        for text in ["", "1/2", "1/2/3/4", "1/2/three", "1/2/NaN", "1/inf/3"] {
            assert_eq!(text.parse::<CpuTime>(), Err(InvalidCpuTime), "{text}");
        }
    }

    #[test]
    fn times_of_other_cpus_have_no_difference() {
        let time = |busy_seconds, total_seconds, step_seconds| CpuTime {
            busy_seconds,
            total_seconds,
            step_seconds,
        };
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
