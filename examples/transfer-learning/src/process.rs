//! CPU time and memory of this process.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// CPU time so far, over all threads.
pub(crate) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Peak memory since the process started or since the last [reset](reset_peak), from Linux's `VmHWM`.
pub(crate) fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Resets the [peak](peak_bytes), if the system allows it; see `proc_pid_clear_refs(5)`.
pub(crate) fn reset_peak() {
    if let Err(error) = fs::write("/proc/self/clear_refs", "5") {
        tracing::debug!(%error, "cannot reset the memory peak: it includes earlier use");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_reset_lowers_the_peak() {
        let held = vec![1u8; 64 << 20];
        let peak = peak_bytes().unwrap();
        assert!(peak > std::hint::black_box(held).len() as u64);
        reset_peak();
        let later = peak_bytes().unwrap();
        // Other tests use much less memory at the same time.
        assert!(later + (32 << 20) < peak, "{later}, before {peak}");
    }
}
