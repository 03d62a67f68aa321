//! Members that arrived before their batches asked for them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use pushdown::wire::RowError;
use pushdown_exec::sync::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, futures::Notified};

use super::entries::{Entry, MemberId};

/// The content of a member, or the error of its sample.
pub(in crate::units::objects) type Content = Result<Bytes, RowError>;

/// Members of all shards that arrived before their batches asked for them, in a bounded number of bytes.
#[derive(Debug)]
pub(super) struct ArrivedMembers {
    /// Room for contents: a permit for each KiB.
    room: Arc<Semaphore>,
    /// The number of members up to which a stream that nobody waits for reads on.
    read_ahead_members: usize,
    state: Mutex<State>,
    /// A member was taken or requested, or a batch has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By batch.
    members: BTreeMap<usize, HashMap<MemberId, ArrivedMember>>,
    count: usize,
    /// Batches that need no other members.
    ended: BTreeSet<usize>,
}

/// A member. It takes room until it is dropped.
#[derive(Debug)]
struct ArrivedMember {
    content: Content,
    _room: OwnedSemaphorePermit,
}

impl ArrivedMembers {
    pub(super) fn new(max_kib: usize, read_ahead_members: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(max_kib)),
            read_ahead_members,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Room for the content of an entry, if there is enough.
    pub(super) fn reserve(&self, entry: &Entry) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(entry.content_bytes() >> 10).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(kib.saturating_add(1));
        room.ok()
    }

    /// Whether a stream that nobody waits for reads on.
    pub(super) fn may_read_ahead(&self) -> bool {
        self.state.lock().count < self.read_ahead_members
    }

    /// Keeps a member for its batch, unless that has ended.
    pub(super) fn keep(&self, entry: &Entry, content: Content, room: OwnedSemaphorePermit) {
        let mut state = self.state.lock();
        if state.ended.contains(&entry.batch) {
            return;
        }
        let member = ArrivedMember { content, _room: room };
        let of_batch = state.members.entry(entry.batch).or_default();
        let replaced = of_batch.insert(entry.member(), member);
        state.count += usize::from(replaced.is_none());
    }

    /// Whether a member has arrived for a batch.
    pub(super) fn has(&self, batch: usize, member: MemberId) -> bool {
        let state = self.state.lock();
        state
            .members
            .get(&batch)
            .is_some_and(|of_batch| of_batch.contains_key(&member))
    }

    /// Removes a member that has arrived for a batch.
    pub(super) fn take(&self, batch: usize, member: MemberId) -> Option<Content> {
        let mut state = self.state.lock();
        let taken = state.members.get_mut(&batch)?.remove(&member)?;
        state.count -= 1;
        drop(state);
        let ArrivedMember { content, _room: room } = taken;
        drop(room);
        self.notify();
        Some(content)
    }

    /// Whether a batch needs no other members.
    pub(super) fn has_ended(&self, batch: usize) -> bool {
        self.state.lock().ended.contains(&batch)
    }

    /// Records that a batch needs no other members, and drops those that have arrived for it.
    pub(super) fn end_batch(&self, batch: usize) {
        let mut state = self.state.lock();
        state.ended.insert(batch);
        let dropped = state.members.remove(&batch).unwrap_or_default();
        state.count -= dropped.len();
        drop(state);
        drop(dropped);
        self.notify();
    }

    /// Wakes all streams that pause.
    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until a stream that pauses may have to read on.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::entries::tests::entry, *};

    const CONTENT: Content = Ok(Bytes::from_static(b"x"));

    #[test]
    fn members_take_room_until_they_are_taken_or_their_batch_ends() {
        let arrived = ArrivedMembers::new(8, 2);
        // Three KiB each.
        let entries: Vec<Entry> = (0..3_usize)
            .map(|number| entry(number, number, number as u64 * 4096, 512 + 2500))
            .collect();
        for entry in &entries[..2] {
            assert!(arrived.may_read_ahead());
            let room = arrived.reserve(entry).unwrap();
            arrived.keep(entry, CONTENT, room);
        }
        assert!(!arrived.may_read_ahead() && arrived.reserve(&entries[2]).is_none());
        assert!(arrived.has(0, entries[0].member()) && !arrived.has(1, entries[0].member()));
        assert_eq!(arrived.take(1, entries[0].member()), None, "of another batch");
        assert_eq!(arrived.take(0, entries[0].member()), Some(CONTENT));
        assert_eq!(arrived.take(0, entries[0].member()), None);
        assert!(!arrived.has(0, entries[0].member()));
        drop(arrived.reserve(&entries[2]).unwrap());
        arrived.end_batch(1);
        assert_eq!(arrived.take(1, entries[1].member()), None);
        assert_eq!(arrived.room.available_permits(), 8);
        let room = arrived.reserve(&entries[1]).unwrap();
        arrived.keep(&entries[1], CONTENT, room);
        assert_eq!(
            (arrived.room.available_permits(), arrived.state.lock().count),
            (8, 0)
        );
    }

    #[test]
    fn a_member_of_any_size_may_be_in_a_list() {
        let arrived = ArrivedMembers::new(8, 2);
        assert!(arrived.reserve(&entry(0, 0, 0, 1 << 60)).is_none());
        assert!(ArrivedMembers::new(0, 2).reserve(&entry(0, 0, 0, 512)).is_none());
    }
}
