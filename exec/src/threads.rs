//! Threads that sleep until there is work.

use std::{
    io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

use crate::sync::{Condvar, Mutex};

/// A fixed number of threads. Each signal lets one of them call a function once. Dropping this ends the threads after the
/// signals that were sent, without waiting for them.
///
/// A thread without work sleeps. A work-stealing pool searches for work first: this search took 2 % of the CPU time of
/// small photos.
#[derive(Debug)]
pub(crate) struct Threads {
    signals: Arc<Signals>,
    count: NonZeroUsize,
    /// Empty once they were joined.
    handles: Mutex<Vec<JoinHandle<()>>>,
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
            handles: Mutex::default(),
        };
        for index in 0..count.get() {
            let (signals, run_next) = (Arc::clone(&threads.signals), run_next.clone());
            let thread = thread::Builder::new()
                .name(format!("pushdown-cpu-{index}"))
                .spawn(move || {
                    while signals.wait() {
                        // A panic must not end the thread. Whoever waits for the work sees that its result was dropped.
                        drop(catch_unwind(AssertUnwindSafe(&run_next)));
                    }
                })?;
            threads.handles.lock().push(thread);
        }
        Ok(threads)
    }

    /// The number of threads.
    pub(crate) const fn count(&self) -> NonZeroUsize {
        self.count
    }

    /// Lets one thread call the function once. Without effect after [`join`](Self::join).
    pub(crate) fn signal(&self) {
        let mut state = self.signals.state.lock();
        if state.is_closed {
            return;
        }
        state.pending += 1;
        drop(state);
        self.signals.changed.notify_one();
    }

    /// Ends the threads and waits for them: each finishes what it runs, and signals that no thread has taken are dropped.
    pub(crate) fn join(&self) {
        {
            let mut state = self.signals.state.lock();
            state.is_closed = true;
            state.pending = 0;
        }
        self.signals.changed.notify_all();
        for thread in self.handles.lock().drain(..) {
            // A thread catches panics.
            drop(thread.join());
        }
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
        let is_waiting = |state: &mut SignalState| state.pending == 0 && !state.is_closed;
        let mut state = self.changed.wait_while(self.state.lock(), is_waiting);
        if state.pending == 0 {
            return false;
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
    fn a_join_waits_for_what_runs_and_drops_the_rest() {
        let (started, starts) = mpsc::channel();
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let threads = Threads::start(NonZeroUsize::MIN, move || {
            started.send(()).unwrap();
            blocked.lock().recv().unwrap();
        })
        .unwrap();
        threads.signal();
        threads.signal();
        starts.recv().unwrap();
        thread::scope(|scope| {
            let join = scope.spawn(|| threads.join());
            while !threads.signals.state.lock().is_closed {
                thread::yield_now();
            }
            assert!(!join.is_finished());
            release.send(()).unwrap();
        });
        threads.signal();
        threads.join();
        // Ends, since the thread that owned the sender has ended.
        assert_eq!(starts.iter().count(), 0);
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
