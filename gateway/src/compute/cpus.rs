//! What the CPUs that this process may use have done, whoever used them: the store is often on the same host.

use std::{fs, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pushdown::wire::CpuTime;
use tokio::time::Instant;

use super::{CpuPool, Ledger};

/// The system is asked no more often: it tells in hundredths of a second.
const FRESH: Duration = Duration::from_millis(20);
/// Ticks of the system's clock in a second, the same on every Linux.
const TICKS: f64 = 100.0;

/// The CPUs of this process. Clones share what is known.
#[derive(Debug, Clone)]
pub struct Cpus {
    /// Of what steps take.
    ledger: Ledger,
    seen: Arc<Mutex<Option<Seen>>>,
}

/// What was told, and when.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    time: Option<CpuTime>,
}

impl Cpus {
    /// Those that this pool works on.
    pub fn of(pool: &CpuPool) -> Self {
        Self {
            ledger: pool.ledger().clone(),
            seen: Arc::default(),
        }
    }

    /// What they have done so far; `None` where the system does not tell.
    pub fn time(&self) -> Option<CpuTime> {
        let mut seen = self.seen.lock();
        if let Some(Seen { at, time }) = *seen
            && at.elapsed() < FRESH
        {
            return time;
        }
        let (at, time) = (Instant::now(), self.read());
        *seen = Some(Seen { at, time });
        time
    }

    fn read(&self) -> Option<CpuTime> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Some(CpuTime {
            step_seconds: self.ledger.spent().as_secs_f64(),
            ..time_of(&stat, &allowed()?)?
        })
    }
}

/// What names the CPUs that so many threads of this process work on, for a reader that may have the same ones.
pub fn name(threads: usize) -> Option<String> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    pushdown::wire::cpu_fingerprint(&boot_id, &allowed()?, threads)
}

/// The CPUs that this process may use, as a list like `0-3,8`.
fn allowed() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// Of what the system tells of each CPU since the host started, that of those in a list like `0-3,8`. See `proc_stat(5)` and
/// `proc_pid_status(5)`.
fn time_of(stat: &str, allowed: &str) -> Option<CpuTime> {
    let mut time = CpuTime::default();
    for line in stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?.strip_prefix("cpu")?;
        // The first line is the sum of all.
        if number.is_empty() || !is_among(number.parse().ok()?, allowed)? {
            continue;
        }
        // user, nice, system, idle, iowait, irq, softirq, steal; what comes behind is a part of `user`. Nice work waits for
        // all other.
        let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let [_, nice, _, idle, iowait, ..] = ticks[..] else {
            return None;
        };
        let all: f64 = ticks.iter().sum();
        time.busy_seconds += (all - nice - idle - iowait) / TICKS;
        time.total_seconds += all / TICKS;
    }
    (time.total_seconds > 0.0).then_some(time)
}

fn is_among(cpu: usize, list: &str) -> Option<bool> {
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
    fn only_the_cpus_of_this_process_count() {
        let time = |allowed| time_of(STAT, allowed);
        let is = |busy, all| {
            Some(CpuTime {
                busy_seconds: busy,
                total_seconds: all,
                ..CpuTime::default()
            })
        };
        assert_eq!(time("0"), is(0.3, 1.5));
        assert_eq!(time("1"), is(0.2, 3.6));
        assert_eq!(time("0-1"), is(0.5, 5.1));
        assert_eq!(time("0,2"), is(0.32, 1.55));
        assert_eq!(time("7"), None);
        assert_eq!(time("none"), None);
        assert_eq!(time_of("cpu0 1 2\n", "0"), None);
    }

    #[test]
    fn work_is_seen() {
        let ledger = Ledger::default();
        let cpus = Cpus::of(&CpuPool::build(NonZeroUsize::MIN, ledger.clone()).unwrap());
        let before = cpus.time().unwrap();
        assert!(before.step_seconds.abs() < 1e-9);
        ledger.charge(&Tenant::of(None), Duration::from_millis(500));
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
