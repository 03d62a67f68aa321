//! CPU time of the CPUs that this process may use, background load included: the store often runs on the same host.

use std::{fs, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pushdown::wire::CpuTime;
use tokio::time::Instant;

use super::{CpuPool, Ledger};

/// Lifetime of a reading. The kernel counts in hundredths of a second, so that more frequent readings are useless.
const SAMPLE_TTL: Duration = Duration::from_millis(20);
/// Clock ticks of `/proc/stat` per second, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the CPU time of this process's CPUs. Clones share the last reading.
#[derive(Debug, Clone)]
pub struct CpuTimeReader {
    /// Counts the CPU time of steps.
    ledger: Ledger,
    last: Arc<Mutex<Option<CpuTimeSample>>>,
}

/// A reading, and when it was taken.
#[derive(Debug, Clone, Copy)]
struct CpuTimeSample {
    at: Instant,
    time: Option<CpuTime>,
}

impl CpuTimeReader {
    /// A reader that counts the work of `pool` as the time of steps.
    pub fn new(pool: &CpuPool) -> Self {
        Self {
            ledger: pool.ledger().clone(),
            last: Arc::default(),
        }
    }

    /// The CPU time so far; `None` if the system does not report it.
    pub fn time(&self) -> Option<CpuTime> {
        let mut last = self.last.lock();
        if let Some(CpuTimeSample { at, time }) = *last
            && at.elapsed() < SAMPLE_TTL
        {
            return time;
        }
        let (at, time) = (Instant::now(), self.read());
        *last = Some(CpuTimeSample { at, time });
        time
    }

    fn read(&self) -> Option<CpuTime> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Some(CpuTime {
            step_seconds: self.ledger.total_time().as_secs_f64(),
            ..parse_cpu_time(&stat, &allowed_cpus()?)?
        })
    }
}

/// Identifies the CPUs that `threads` threads of this process run on. A client on the same CPUs has the same ID.
pub fn cpu_set_id(threads: usize) -> Option<String> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    pushdown::wire::cpu_fingerprint(&boot_id, &allowed_cpus()?, threads)
}

/// The CPUs that this process may use, as a list like `0-3,8`.
fn allowed_cpus() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// The CPU time since boot of the CPUs in a list like `0-3,8`. See `proc_stat(5)` and `proc_pid_status(5)`.
fn parse_cpu_time(stat: &str, allowed: &str) -> Option<CpuTime> {
    let mut time = CpuTime::default();
    for line in stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?.strip_prefix("cpu")?;
        // The first line is the sum of all CPUs.
        if number.is_empty() || !is_listed(number.parse().ok()?, allowed)? {
            continue;
        }
        // user, nice, system, idle, iowait, irq, softirq, steal. Later fields are included in `user`. Nice work does not
        // count as busy: all other work preempts it.
        let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let [_, nice, _, idle, iowait, ..] = ticks[..] else {
            return None;
        };
        let all: f64 = ticks.iter().sum();
        time.busy_seconds += (all - nice - idle - iowait) / TICKS_PER_SECOND;
        time.total_seconds += all / TICKS_PER_SECOND;
    }
    (time.total_seconds > 0.0).then_some(time)
}

fn is_listed(cpu: usize, list: &str) -> Option<bool> {
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if (first.parse().ok()?..=last.parse().ok()?).contains(&cpu) {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::compute::Tenant;

    const STAT: &str = "cpu  10 0 30 600 60 0 0 0 0 0\ncpu0 10 0 10 100 20 5 5 0 0 0\ncpu1 0 0 20 300 40 0 0 0\ncpu2 1 1 1 1 1\nintr 5\n";

    #[test]
    fn only_allowed_cpus_count() {
        let time = |allowed| parse_cpu_time(STAT, allowed);
        let expected = |busy, all| {
            Some(CpuTime {
                busy_seconds: busy,
                total_seconds: all,
                ..CpuTime::default()
            })
        };
        assert_eq!(time("0"), expected(0.3, 1.5));
        assert_eq!(time("1"), expected(0.2, 3.6));
        assert_eq!(time("0-1"), expected(0.5, 5.1));
        assert_eq!(time("0,2"), expected(0.32, 1.55));
        assert_eq!(time("7"), None);
        assert_eq!(time("none"), None);
        assert_eq!(parse_cpu_time("cpu0 1 2\n", "0"), None);
    }

    #[test]
    fn computation_raises_the_cpu_time() {
        let ledger = Ledger::default();
        let cpus = CpuTimeReader::new(&CpuPool::build(NonZeroUsize::MIN, ledger.clone()).unwrap());
        let before = cpus.time().unwrap();
        assert!(before.step_seconds.abs() < 1e-9);
        ledger.charge(&Tenant::from_access_key(None), Duration::from_millis(500));
        let mut digest = 0_u64;
        loop {
            for value in 0..1_000_000_u64 {
                digest = std::hint::black_box(digest ^ value);
            }
            let now = cpus.time().unwrap();
            assert!(
                now.busy_seconds - before.busy_seconds <= now.total_seconds - before.total_seconds + 0.02,
                "{now:?}"
            );
            if now.busy_seconds > before.busy_seconds && now.total_seconds > before.total_seconds {
                assert!((now.step_seconds - 0.5).abs() < 1e-9);
                break;
            }
        }
    }
}
