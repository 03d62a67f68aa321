//! Entries of a shard that follow each other closely, read by one request.
//!
//! A batch owns the order of their readers, and hands each of its rows the tickets of the row's entries. Readers read one after the
//! other, in the order of the entries. The first one requests all of them, takes its own out of the answer, and leaves the rest to the next one.
//! A reader that needs no bytes drops its ticket. If the readers before it have left nothing, a reader requests the rest itself. Bytes that
//! nobody has read yet stay at the store.

use std::{ops::Range, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::shard_stream::ShardStream;

/// The largest gap between two entries that are read together. It takes less time to read than a request.
const MAX_GAP_BYTES: u64 = 512 << 10;
/// Most bytes of one request for several entries.
const MAX_JOINED_BYTES: u64 = 64 << 20;

/// Entries of one version of a shard that one request can read, in their order.
#[derive(Debug)]
pub struct EntryRun {
    range: Range<u64>,
    entries: usize,
}

/// The order of the readers of a run. Clones share it.
#[derive(Debug, Clone)]
pub struct JoinedReads(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Offset in the shard after the last entry.
    end: u64,
    state: Mutex<State>,
    /// Number of the first entry whose reader is not done.
    current: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    /// Whether the reader of each entry is done.
    done: Box<[bool]>,
    /// What the last reader has left.
    rest: Option<ShardStream>,
}

/// The place of the reader of one entry in their order. Dropping it lets the next one read.
#[derive(Debug)]
pub struct EntryTicket {
    reads: JoinedReads,
    number: usize,
}

impl EntryRun {
    /// A run of one entry.
    pub const fn new(entry: Range<u64>) -> Self {
        Self {
            range: entry,
            entries: 1,
        }
    }

    /// Adds an entry, if it follows the last one closely. Returns its number in the run.
    pub fn add(&mut self, entry: &Range<u64>) -> Option<usize> {
        let gap = entry.start.checked_sub(self.range.end)?;
        if gap > MAX_GAP_BYTES || entry.end - self.range.start > MAX_JOINED_BYTES {
            return None;
        }
        self.range.end = entry.end;
        self.entries += 1;
        Some(self.entries - 1)
    }

    /// The order of its readers; `None` if there is one entry only.
    pub fn into_reads(self) -> Option<JoinedReads> {
        (self.entries > 1).then(|| {
            JoinedReads(Arc::new(Inner {
                end: self.range.end,
                state: Mutex::new(State {
                    done: vec![false; self.entries].into(),
                    rest: None,
                }),
                current: watch::Sender::new(0),
            }))
        })
    }
}

impl JoinedReads {
    /// The ticket of the reader of the entry with this number. To be called once for each entry: those after it wait until it is
    /// dropped.
    pub fn ticket(&self, number: usize) -> EntryTicket {
        EntryTicket {
            reads: self.clone(),
            number,
        }
    }

    fn finish(&self, number: usize) {
        let mut state = self.0.state.lock();
        if let Some(done) = state.done.get_mut(number) {
            *done = true;
        }
        let mut current = *self.0.current.borrow();
        while state.done.get(current) == Some(&true) {
            current += 1;
        }
        let is_over = current == state.done.len();
        let unread = state.rest.take_if(|_| is_over);
        // With the lock held, so that the number only grows.
        self.0.current.send_replace(current);
        drop(state);
        drop(unread);
    }
}

impl EntryTicket {
    /// Waits until all readers before this one are done. Returns what they have left, if it has the entry soon.
    pub(super) async fn wait(&self, entry: &Range<u64>) -> Option<ShardStream> {
        let mut current = self.reads.0.current.subscribe();
        // It fails without a sender only, which lives as long as this.
        drop(current.wait_for(|current| *current >= self.number).await);
        let rest = self.reads.0.state.lock().rest.take();
        rest.filter(|rest| rest.has_within(entry, MAX_GAP_BYTES))
    }

    /// Offset in the shard after the last entry of the run.
    pub(super) fn end(&self) -> u64 {
        self.reads.0.end
    }

    /// Ends this reader's part, and leaves the rest to the next reader.
    pub(super) fn pass_on(self, rest: ShardStream) {
        self.reads.0.state.lock().rest = Some(rest);
    }
}

impl Drop for EntryTicket {
    fn drop(&mut self) {
        self.reads.finish(self.number);
    }
}

#[cfg(test)]
mod tests;
