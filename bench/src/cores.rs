//! Which cores measured processes may have: those that are started have the cores of the thread that starts them.

use anyhow::{Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);

/// How many cores this thread may have.
///
/// # Errors
/// When the kernel does not tell.
pub fn allowed() -> Result<usize> {
    Ok(numbers(&sched_getaffinity(SELF)?).count())
}

/// Does `work`, and whatever it starts, on the first `count` of the cores that this thread may have.
///
/// # Errors
/// When there are fewer, the kernel refuses, or `work` fails.
pub fn on_first<T>(count: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let all = sched_getaffinity(SELF)?;
    let mut some = CpuSet::new();
    numbers(&all).take(count).try_for_each(|core| some.set(core))?;
    ensure!(
        numbers(&some).count() == count,
        "there are fewer than {count} cores"
    );
    sched_setaffinity(SELF, &some)?;
    let done = work();
    sched_setaffinity(SELF, &all)?;
    done
}

fn numbers(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_started_has_as_many_cores_and_all_are_there_again_afterwards() {
        let all = allowed().unwrap();
        let inside = on_first(1, || thread::spawn(allowed).join().unwrap()).unwrap();
        assert_eq!((inside, allowed().unwrap()), (1, all));
    }

    #[test]
    fn more_cores_than_there_are_is_a_fault() {
        let error = on_first(CpuSet::count() + 1, || Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("there are fewer than {} cores", CpuSet::count() + 1)
        );
    }
}
