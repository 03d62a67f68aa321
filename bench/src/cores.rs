//! CPU affinity of measured processes: a child process inherits the affinity of the thread that starts it.

use anyhow::{Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);

/// Number of cores available to this thread.
///
/// # Errors
/// If the kernel does not report the affinity.
pub fn available_cores() -> Result<usize> {
    Ok(core_numbers(&sched_getaffinity(SELF)?).count())
}

/// Runs `work`, and all processes and threads that it starts, on the first `count` cores available to this thread.
///
/// # Errors
/// If fewer cores are available, the kernel refuses, or `work` fails.
pub fn run_on_first<T>(count: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let all = sched_getaffinity(SELF)?;
    let mut selected = CpuSet::new();
    core_numbers(&all)
        .take(count)
        .try_for_each(|core| selected.set(core))?;
    ensure!(
        core_numbers(&selected).count() == count,
        "fewer than {count} cores are available"
    );
    sched_setaffinity(SELF, &selected)?;
    let result = work();
    sched_setaffinity(SELF, &all)?;
    result
}

fn core_numbers(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_inherit_the_cores_and_all_cores_are_restored_afterwards() {
        let all = available_cores().unwrap();
        let inside = run_on_first(1, || thread::spawn(available_cores).join().unwrap()).unwrap();
        assert_eq!((inside, available_cores().unwrap()), (1, all));
    }

    #[test]
    fn more_cores_than_available_is_an_error() {
        let error = run_on_first(CpuSet::count() + 1, || Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("fewer than {} cores are available", CpuSet::count() + 1)
        );
    }
}
