//! The figures of `pushdown read`.

use std::{collections::BTreeMap, fmt, time::Duration};

use indicatif::{HumanBytes, HumanCount};
use pushdown_client::{
    reader::{Mode, NotCached, Split, Stats},
    store::ReplicaReport,
};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::batch_waits::Percentiles;

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
    /// Seconds from the start to the first batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_batch_seconds: Option<f64>,
    /// Times waited for batches.
    #[serde(flatten)]
    pub(crate) batches: Option<Percentiles>,
    /// Peak memory of this process, if the system states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
    samples_per_second: f64,
    stored_bytes: u64,
    value_bytes: u64,
    /// Samples by the stage at which they arrived; 0 for objects as stored, and for cropped ones.
    pub(crate) stages: BTreeMap<u8, u64>,
    /// Samples that arrived as cropped JPEGs.
    cropped_samples: u64,
    pub(crate) last_epoch: EpochFigures,
    cache_hits: u64,
    cache_writes: u64,
    /// Values that were not cached, by reason.
    not_cached: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    not_cached_reasons: String,
    gateway_cache_hits: u64,
    gateway_shared: u64,
    gateway_prefix_hits: u64,
    wire_bytes_down: u64,
    wire_bytes_up: u64,
    /// Bytes of them that a gateway beside the store has sent and received.
    gateway_bytes_down: u64,
    gateway_bytes_up: u64,
    /// The addresses, once they are known.
    #[serde(flatten)]
    pub(crate) addresses: Addresses,
    retries: u64,
    /// Seconds of each epoch.
    pub(crate) epoch_seconds: Vec<f64>,
    /// Predicted throughput of the plan in force at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) planned_samples_per_second: Option<f64>,
    /// The plan in force at the end, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
}

/// Where bytes come from.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Addresses {
    /// URL of the store, or of a gateway in its place.
    pub(crate) endpoint: String,
    /// URL of a gateway beside the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gateway: Option<String>,
    /// The replicas of the gateway, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) replicas: Vec<ReplicaFigures>,
}

/// What a replica has delivered.
#[derive(Debug, Serialize)]
pub(crate) struct ReplicaFigures {
    id: String,
    address: String,
    state: &'static str,
    samples: u64,
}

impl From<ReplicaReport> for ReplicaFigures {
    fn from(report: ReplicaReport) -> Self {
        Self {
            id: report.id,
            address: report.address,
            state: report.state,
            samples: report.samples,
        }
    }
}

/// Figures of one epoch. Earlier epochs may include one-time costs and trials.
#[derive(Debug, Default, Serialize)]
pub(crate) struct EpochFigures {
    pub(crate) cpu_seconds: f64,
    /// As for all epochs.
    pub(crate) stages: BTreeMap<u8, u64>,
    /// Samples that arrived as cropped JPEGs.
    pub(crate) cropped_samples: u64,
    /// Values from the value cache, and from the result cache of the gateway.
    pub(crate) cache_hits: u64,
    pub(crate) gateway_cache_hits: u64,
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
            cropped_samples: stats.cropped_samples,
            last_epoch: EpochFigures::default(),
            cache_hits: stats.cache_hits,
            cache_writes: stats.cache_writes,
            not_cached: counts(&stats.not_cached),
            not_cached_reasons: stats.not_cached.to_string(),
            gateway_cache_hits: stats.gateway_cache_hits,
            gateway_shared: stats.gateway_shared,
            gateway_prefix_hits: stats.gateway_prefix_hits,
            wire_bytes_down: stats.wire_bytes_down,
            wire_bytes_up: stats.wire_bytes_up,
            gateway_bytes_down: stats.gateway_bytes_down,
            gateway_bytes_up: stats.gateway_bytes_up,
            addresses: Addresses::default(),
            retries: stats.retries,
            epoch_seconds: Vec::new(),
            planned_samples_per_second: None,
            plan: None,
        }
    }
}

impl Report {
    /// How samples arrived, if some were cropped: the bytes of each, and the share of each form.
    fn forms(&self) -> Option<String> {
        let arrived: u64 = self.stages.values().sum::<u64>().saturating_sub(self.cache_hits);
        if self.cropped_samples == 0 || arrived == 0 {
            return None;
        }
        let objects = self.stages.get(&0).copied().unwrap_or_default();
        let plain = objects.saturating_sub(self.cropped_samples);
        let values = arrived.saturating_sub(objects);
        let counts = [
            (self.cropped_samples, "cropped"),
            (plain, "plain"),
            (values, "values"),
        ];
        let shares = counts.into_iter().filter(|(count, _)| *count > 0);
        let shares: Vec<_> = shares
            .map(|(count, form)| format!("{form} {:.0} %", 100.0 * number(count) / number(arrived)))
            .collect();
        let kilobytes = |bytes: u64| 1e-3 * number(bytes) / number(arrived);
        Some(format!(
            "{:.0} KB per sample for {:.0} KB stored: {}",
            kilobytes(self.value_bytes),
            kilobytes(self.stored_bytes),
            shares.join(", ")
        ))
    }
}

/// The reasons with a count above 0.
fn counts(not_cached: &NotCached) -> BTreeMap<&'static str, u64> {
    let reasons = not_cached.reasons().into_iter();
    let counted = reasons.filter(|(_, _, count)| *count > 0);
    counted.map(|(name, _, count)| (name, count)).collect()
}

fn per_second(samples: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        number(samples) / seconds
    } else {
        0.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count for people")]
const fn number(count: u64) -> f64 {
    count as f64
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
        let Addresses {
            endpoint,
            gateway,
            replicas,
        } = &self.addresses;
        if let Some(gateway) = gateway {
            writeln!(
                f,
                "from the gateway {gateway}: received {}, sent {}; the rest is with the store {endpoint}",
                HumanBytes(self.gateway_bytes_down),
                HumanBytes(self.gateway_bytes_up)
            )?;
        }
        for replica in replicas {
            writeln!(
                f,
                "replica {} at {}: {} samples, {}",
                replica.id,
                replica.address,
                HumanCount(replica.samples),
                replica.state
            )?;
        }
        if let Some(forms) = self.forms() {
            writeln!(f, "{forms}")?;
        }
        if self.cache_hits > 0 {
            writeln!(
                f,
                "{} values read from the value cache",
                HumanCount(self.cache_hits)
            )?;
        }
        if !self.not_cached_reasons.is_empty() {
            let cache_writes = HumanCount(self.cache_writes);
            writeln!(
                f,
                "{cache_writes} values written to the value cache; not cached: {}",
                self.not_cached_reasons
            )?;
        }
        if self.gateway_cache_hits + self.gateway_shared + self.gateway_prefix_hits > 0 {
            writeln!(
                f,
                "result cache of the gateway: {} values cached, {} shared with other requests, {} continued from cached ones",
                HumanCount(self.gateway_cache_hits),
                HumanCount(self.gateway_shared),
                HumanCount(self.gateway_prefix_hits)
            )?;
        }
        f.write_str(self.plan.as_deref().unwrap_or_default())
    }
}

/// CPU time of this process so far, over all threads.
pub(crate) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Peak memory of this process, from Linux's `VmHWM`.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_report() {
        let stats = Stats {
            samples: 1_000,
            errors: 1,
            value_bytes: 150_528_000,
            wire_bytes_down: 151_000_000,
            wire_bytes_up: 140_000,
            stored_bytes: 110_000_000,
            cache_hits: 3,
            gateway_cache_hits: 1_200,
            gateway_prefix_hits: 4,
            retries: 2,
            waiting: Duration::from_millis(2_500),
            ..Stats::default()
        };
        let second = Duration::from_secs(1);
        let report = |stats| Report::new(stats, Mode::Pushdown, Split::At(3), 10 * second, 4 * second);
        insta::assert_snapshot!(report(&stats));

        let stats = Stats {
            gateway_bytes_down: 1_000_000,
            gateway_bytes_up: 2_000,
            ..stats
        };
        let mut report = report(&stats);
        report.addresses = Addresses {
            endpoint: "http://store:9000".to_owned(),
            gateway: Some("http://gw:9900".to_owned()),
            replicas: vec![ReplicaFigures {
                id: "gw-0".to_owned(),
                address: "http://gw:9900 at 10.0.0.1".to_owned(),
                state: ReplicaReport::SERVING,
                samples: 5_000,
            }],
        };
        let replica = "\nreplica gw-0 at http://gw:9900 at 10.0.0.1: 5,000 samples, serving\n";
        assert!(report.to_string().contains(replica), "{report}");
        let expected = "from the gateway http://gw:9900: received 976.56 KiB, sent 1.95 KiB; the rest is with the store http://store:9000\n";
        assert!(report.to_string().contains(expected), "{report}");
    }

    #[test]
    fn a_report_names_cropped_samples() {
        let forms = |cropped_samples: u64, stages: &[(u8, u64)]| {
            let stats = Stats {
                cropped_samples,
                value_bytes: 57_000_000,
                stored_bytes: 110_000_000,
                ..Stats::default()
            };
            let second = Duration::from_secs(1);
            let mut report = Report::new(&stats, Mode::Auto, Split::Full, second, second);
            report.stages = stages.iter().copied().collect();
            report.forms()
        };
        assert_eq!(forms(0, &[(0, 1_000)]), None);
        assert_eq!(
            forms(710, &[(0, 1_000)]).as_deref(),
            Some("57 KB per sample for 110 KB stored: cropped 71 %, plain 29 %")
        );
        assert_eq!(
            forms(500, &[(0, 600), (3, 400)]).as_deref(),
            Some("57 KB per sample for 110 KB stored: cropped 50 %, plain 10 %, values 40 %")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_covers_the_memory_in_use() {
        let held = vec![1u8; 64 << 20];
        let peak = peak_bytes().unwrap();
        assert!(peak > std::hint::black_box(held).len() as u64);
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
