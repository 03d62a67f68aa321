//! The figures of `pushdown read`.

use std::{collections::BTreeMap, fmt, time::Duration};

use indicatif::{HumanBytes, HumanCount};
use pushdown_client::{Mode, NotKept, Split, Stats};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::waits::Percentiles;

/// What was read, and how fast.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    mode: &'static str,
    split: String,
    samples: u64,
    pub(crate) errors: u64,
    seconds: f64,
    cpu_seconds: f64,
    waiting_seconds: f64,
    /// Seconds of listing and planning, before the first epoch.
    pub(crate) start_seconds: f64,
    /// From the start to the first batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_batch_seconds: Option<f64>,
    /// How long batches were waited for.
    #[serde(flatten)]
    pub(crate) batches: Option<Percentiles>,
    /// The most memory that this process held, where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
    samples_per_second: f64,
    stored_bytes: u64,
    value_bytes: u64,
    /// Samples by how many steps they had behind them when they came: 0 are those that came as they are stored.
    pub(crate) stages: BTreeMap<u8, u64>,
    pub(crate) last_epoch: Epoch,
    kept: u64,
    newly_kept: u64,
    /// Values that were not kept, by the reason.
    not_kept: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    why_not_kept: String,
    wire_bytes_down: u64,
    wire_bytes_up: u64,
    retries: u64,
    /// Seconds of each epoch.
    pub(crate) epoch_seconds: Vec<f64>,
    /// What the plan in force at the end comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) planned_samples_per_second: Option<f64>,
    /// The plan in force at the end, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
}

/// What one epoch tells by itself: an earlier one may have paid for what comes once, and have tried other ways.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Epoch {
    pub(crate) cpu_seconds: f64,
    /// As of all epochs.
    pub(crate) stages: BTreeMap<u8, u64>,
}

impl Report {
    pub(crate) fn new(stats: &Stats, mode: Mode, split: Split, elapsed: Duration, cpu: Duration) -> Self {
        let seconds = elapsed.as_secs_f64();
        Self {
            mode: match mode {
                Mode::Pushdown => "pushdown",
                Mode::Auto => "auto",
                Mode::Plain => "plain",
            },
            split: match mode {
                Mode::Pushdown => split.to_string(),
                Mode::Auto => "planned".to_owned(),
                Mode::Plain => "0".to_owned(),
            },
            samples: stats.samples,
            errors: stats.errors,
            seconds,
            cpu_seconds: cpu.as_secs_f64(),
            waiting_seconds: stats.waiting.as_secs_f64(),
            start_seconds: 0.0,
            first_batch_seconds: None,
            batches: None,
            peak_bytes: peak_bytes(),
            samples_per_second: per_second(stats.samples, seconds),
            stored_bytes: stats.stored_bytes,
            value_bytes: stats.value_bytes,
            stages: BTreeMap::new(),
            last_epoch: Epoch::default(),
            kept: stats.kept,
            newly_kept: stats.newly_kept,
            not_kept: counts(&stats.not_kept),
            why_not_kept: stats.not_kept.to_string(),
            wire_bytes_down: stats.wire_bytes_down,
            wire_bytes_up: stats.wire_bytes_up,
            retries: stats.retries,
            epoch_seconds: Vec::new(),
            planned_samples_per_second: None,
            plan: None,
        }
    }
}

/// The reasons that there are.
fn counts(not_kept: &NotKept) -> BTreeMap<&'static str, u64> {
    let reasons = not_kept.reasons().into_iter();
    let there = reasons.filter(|(_, _, count)| *count > 0);
    there.map(|(name, _, count)| (name, count)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(samples: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        samples as f64 / seconds
    } else {
        0.0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} samples in {:.2} s: {:.1} samples/s ({}, split {}); {:.2} s waiting for data, {:.2} s CPU",
            HumanCount(self.samples),
            self.seconds,
            self.samples_per_second,
            self.mode,
            self.split,
            self.waiting_seconds,
            self.cpu_seconds
        )?;
        writeln!(
            f,
            "stored {}, values {}, received {}, sent {}; {} errors, {} retries",
            HumanBytes(self.stored_bytes),
            HumanBytes(self.value_bytes),
            HumanBytes(self.wire_bytes_down),
            HumanBytes(self.wire_bytes_up),
            self.errors,
            self.retries
        )?;
        if self.kept > 0 {
            writeln!(f, "{} values were kept and not asked for", HumanCount(self.kept))?;
        }
        if !self.why_not_kept.is_empty() {
            let newly_kept = HumanCount(self.newly_kept);
            writeln!(
                f,
                "{newly_kept} values are kept now; not kept: {}",
                self.why_not_kept
            )?;
        }
        f.write_str(self.plan.as_deref().unwrap_or_default())
    }
}

/// CPU time of this process so far, all threads together.
pub(crate) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The most memory that this process has held at a time, since it was started or the last was [forgotten](forget_peak), as Linux tells it.
pub(crate) fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// The [peak](peak_bytes) is counted anew from now on, where the system lets us say so; see `proc_pid_clear_refs(5)`.
pub(crate) fn forget_peak() {
    if let Err(error) = std::fs::write("/proc/self/clear_refs", "5") {
        tracing::debug!(%error, "the peak of memory includes what was held before");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_read_well() {
        let stats = Stats {
            samples: 1_000,
            errors: 1,
            value_bytes: 150_528_000,
            wire_bytes_down: 151_000_000,
            wire_bytes_up: 140_000,
            stored_bytes: 110_000_000,
            kept: 3,
            retries: 2,
            waiting: Duration::from_millis(2_500),
            ..Stats::default()
        };
        let second = Duration::from_secs(1);
        insta::assert_snapshot!(Report::new(
            &stats,
            Mode::Pushdown,
            Split::At(3),
            10 * second,
            4 * second
        ));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_is_at_least_what_is_held() {
        let held = vec![1u8; 64 << 20];
        let peak = peak_bytes().unwrap();
        assert!(peak > std::hint::black_box(held).len() as u64);
        forget_peak();
        let later = peak_bytes().unwrap();
        // Other tests hold much less meanwhile.
        assert!(later + (32 << 20) < peak, "{later}, before {peak}");
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let start = cpu_time();
        let mut digest = 0u64;
        while cpu_time() == start {
            digest = std::hint::black_box(digest.wrapping_mul(31) + 7);
        }
        assert!(cpu_time() > start);
    }
}
