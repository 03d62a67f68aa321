//! Threads that sleep until there is work.

use std::{
    io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use parking_lot::{Condvar, Mutex};

/// A fixed number of threads. Each signal lets one of them call a function once. Dropping this ends the threads after the
/// signals that were sent, without waiting for them.
///
/// A thread without work sleeps. A work-stealing pool searches for work first: this search took 2 % of the CPU time of
/// small photos.
#[derive(Debug)]
pub(crate) struct Threads {
    signals: Arc<Signals>,
    count: NonZeroUsize,
}

#[derive(Debug, Default)]
struct Signals {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SignalState {
    /// Signals that no thread has taken.
    pending: usize,
    is_closed: bool,
}

impl Threads {
    /// Starts `count` threads that call `run_next` once for each signal.
    pub(crate) fn start(
        count: NonZeroUsize,
        run_next: impl Fn() + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let threads = Self {
            signals: Arc::default(),
            count,
        };
        for index in 0..count.get() {
            let (signals, run_next) = (Arc::clone(&threads.signals), run_next.clone());
            thread::Builder::new()
                .name(format!("pushdown-cpu-{index}"))
                .spawn(move || {
                    while signals.wait() {
                        // A panic must not end the thread. Whoever waits for the work sees that its result was dropped.
                        drop(catch_unwind(AssertUnwindSafe(&run_next)));
                    }
                })?;
        }
        Ok(threads)
    }

    /// The number of threads.
    pub(crate) const fn count(&self) -> NonZeroUsize {
        self.count
    }

    /// Lets one thread call the function once.
    pub(crate) fn signal(&self) {
        self.signals.state.lock().pending += 1;
        self.signals.changed.notify_one();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.signals.state.lock().is_closed = true;
        self.signals.changed.notify_all();
    }
}

impl Signals {
    /// Waits for a signal and takes it. `false` once none can follow.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.pending == 0 {
            if state.is_closed {
                return false;
            }
            self.changed.wait(&mut state);
        }
        state.pending -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn signals_before_the_drop_are_served() {
        let (ran, runs) = mpsc::channel();
        let threads = Threads::start(NonZeroUsize::MIN, move || ran.send(()).unwrap()).unwrap();
        for _ in 0..3 {
            threads.signal();
        }
        drop(threads);
        // Ends when the thread ends, which owns the sender.
        assert_eq!(runs.iter().count(), 3);
    }

    #[test]
    fn a_panic_does_not_end_the_thread() {
        let (ran, runs) = mpsc::channel();
        let threads = Threads::start(NonZeroUsize::MIN, move || {
            ran.send(()).unwrap();
            panic!("broken");
        })
        .unwrap();
        threads.signal();
        threads.signal();
        drop(threads);
        assert_eq!(runs.iter().count(), 2);
    }
}
