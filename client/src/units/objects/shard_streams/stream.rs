//! The state of a stream, between the task that reads it and the batches that wait for members.

use std::{collections::BTreeMap, mem, pin::pin, sync::Arc};

use pushdown::wire::RowError;
use pushdown_exec::sync::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    arrived::{ArrivedMembers, Content},
    entries::{Entry, member_id, place_of},
};
use crate::units::objects::plain::Part;

/// The entries of a shard that are read one after the other.
#[derive(Debug)]
pub(super) struct ShardStream {
    arrived: Arc<ArrivedMembers>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// In the order of the shard. Empty after the end of the stream.
    entries: Vec<Entry>,
    /// Place of the entry that is read, or next.
    next: usize,
    /// By place, from `next` on: the batches that wait for their members.
    waiting: BTreeMap<usize, oneshot::Sender<Content>>,
}

/// What a stream has of a requested member.
#[derive(Debug)]
pub(in crate::units::objects) enum Requested {
    Arrived(Content),
    /// It is received later, unless the stream ends before.
    Awaited(oneshot::Receiver<Content>),
    /// The stream has passed it, or does not have it: it is to be read by a range.
    Passed,
}

/// What the task that reads a stream does next.
#[derive(Debug)]
enum NextStep {
    Read(NextEntry),
    /// Nobody waits, and there is no room to read ahead.
    Pause,
    End,
}

/// An entry to read, and the room for its content. Without room a batch waits for it.
#[derive(Debug)]
pub(super) struct NextEntry {
    pub(super) entry: Entry,
    room: Option<OwnedSemaphorePermit>,
}

impl ShardStream {
    /// A stream of entries in the order of their shard.
    pub(super) fn new(entries: Vec<Entry>, arrived: Arc<ArrivedMembers>) -> Self {
        Self {
            arrived,
            state: Mutex::new(State {
                entries,
                next: 0,
                waiting: BTreeMap::new(),
            }),
        }
    }

    /// Requests a part of a batch.
    pub(super) fn request(&self, batch: usize, part: &Part) -> Requested {
        let mut state = self.state.lock();
        // With the lock, so that nothing arrives in between.
        if let Some(content) = self.arrived.take(batch, member_id(part)) {
            return Requested::Arrived(content);
        }
        let place = place_of(&state.entries, batch, part).filter(|place| *place >= state.next);
        let Some(place) = place else {
            return Requested::Passed;
        };
        let (sender, content) = oneshot::channel();
        // A repeated sample of the same batch takes the place, and the first one is read by a range.
        drop(state.waiting.insert(place, sender));
        drop(state);
        self.arrived.notify();
        Requested::Awaited(content)
    }

    /// The next entries, at most this many.
    pub(super) fn ahead(&self, count: usize) -> Vec<Entry> {
        let state = self.state.lock();
        state
            .entries
            .iter()
            .skip(state.next)
            .take(count)
            .copied()
            .collect()
    }

    /// Waits until an entry is to be read, and returns it. `None` at the end. Calls `on_pause` before it waits.
    pub(super) async fn next(&self, mut on_pause: impl FnMut()) -> Option<NextEntry> {
        loop {
            let mut changed = pin!(self.arrived.changed());
            // Registered before the state is checked, so that no change in between is missed.
            changed.as_mut().enable();
            match self.next_step() {
                NextStep::Read(next) => return Some(next),
                NextStep::End => return None,
                NextStep::Pause => on_pause(),
            }
            changed.await;
        }
    }

    fn next_step(&self) -> NextStep {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        loop {
            let Some(entry) = state.entries.get(state.next).copied() else {
                return NextStep::End;
            };
            if state.waiting.contains_key(&state.next) {
                return NextStep::Read(NextEntry { entry, room: None });
            }
            if self.arrived.has_ended(entry.batch) {
                state.next += 1;
                continue;
            }
            let is_awaited = !state.waiting.is_empty();
            return match self.arrived.reserve(&entry) {
                room @ Some(_) if is_awaited || self.arrived.may_read_ahead() => {
                    NextStep::Read(NextEntry { entry, room })
                }
                // Those who wait would wait for room, and that for other batches.
                None if is_awaited => NextStep::End,
                _ => NextStep::Pause,
            };
        }
    }

    /// Hands over the content of the entry that was read.
    pub(super) fn deliver(&self, next: NextEntry, content: Content) {
        let NextEntry { entry, room } = next;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        match (state.waiting.remove(&state.next), room) {
            // If the batch is gone, so is the content.
            (Some(waiting), _) => drop(waiting.send(content)),
            (None, Some(room)) => self.arrived.keep(&entry, content, room),
            (None, None) => {}
        }
        state.next += 1;
    }

    /// Ends the stream. The batches that wait receive the error, or read their members by ranges.
    pub(super) fn end(&self, error: Option<&RowError>) {
        let mut state = self.state.lock();
        state.entries = Vec::new();
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        if let Some(error) = error {
            for waiting in waiting.into_values() {
                // If the batch is gone, nobody needs the error.
                drop(waiting.send(Err(error.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests;
