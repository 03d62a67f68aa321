//! CPU time of this thread and of other processes, in nanoseconds.
//!
//! Uses the kernel's CPU clocks: `/proc/PID/stat` only counts ticks of 10 ms. The clocks include the time of threads that have
//! ended.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// The sum of the CPU clocks of a thread or of some processes.
#[derive(Debug, Clone)]
pub struct CpuClock(Vec<ClockId>);

impl CpuClock {
    /// The clock of the calling thread.
    pub fn for_this_thread() -> Self {
        Self(vec![ClockId::CLOCK_THREAD_CPUTIME_ID])
    }

    /// The clock of a process with all its threads, and of its child processes that are running now.
    pub fn for_process(id: u32) -> Result<Self> {
        let clocks = child_processes(id)?.into_iter().chain([id]).map(|id| {
            let pid = Pid::from_raw(i32::try_from(id)?);
            clock_getcpuclockid(pid).with_context(|| format!("process {id} has no CPU clock"))
        });
        Ok(Self(clocks.collect::<Result<_>>()?))
    }

    /// The CPU time used while `work` runs.
    pub fn measure(&self, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let before = self.now()?;
        work()?;
        Ok(self.now()?.saturating_sub(before))
    }

    fn now(&self) -> Result<Duration> {
        let times = self.0.iter().map(|clock| Ok(Duration::from(clock.now()?)));
        times.sum()
    }
}

fn child_processes(parent: u32) -> Result<Vec<u32>> {
    let ids = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(ids.filter(|id| parent_of(*id) == Some(parent)).collect())
}

/// The parent's id: the fourth field of the stat line. The second field, the name, is in parentheses and can contain anything.
fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::thread::sleep;

    use super::*;

    #[test]
    fn sleeping_takes_no_cpu_time_and_computing_does() {
        let clock = CpuClock::for_this_thread();
        let slept = clock.measure(|| {
            sleep(Duration::from_millis(50));
            Ok(())
        });
        assert!(slept.unwrap() < Duration::from_millis(25));
        let computed = clock.measure(|| {
            black_box((0..5_000_000_u64).fold(0, |sum, next| black_box(sum ^ next)));
            Ok(())
        });
        assert!(computed.unwrap() > Duration::from_millis(1));
    }

    #[test]
    fn the_own_process_has_a_parent_and_a_clock() {
        let own = std::process::id();
        assert!(parent_of(own).is_some());
        assert!(CpuClock::for_process(own).unwrap().now().unwrap() > Duration::ZERO);
    }
}
