//! Which parts one request reads.

use std::sync::Arc;

use pushdown::shard::MemberRange;

use super::{super::part::MAX_GAP_BYTES, *};
use crate::{
    epoch::BatchProgress,
    objects::{MemberRef, Object, ObjectsBuilder},
    units::objects::BatchRoutes,
};

/// The place of an entry of this many bytes, its header included.
fn place(offset: u64, entry_bytes: u64) -> MemberRange {
    MemberRange::new(offset, 512, entry_bytes - 512).unwrap()
}

fn member(range: MemberRange) -> MemberRef<'static> {
    MemberRef { name: "m", range }
}

fn object(key: &str, value: MemberRange) -> Object<'_> {
    Object {
        key,
        bytes: None,
        etag: Some("\"e\""),
        member: Some(member(value)),
    }
}

/// A batch of all samples in their order.
fn job(objects: &Objects) -> BatchJob {
    let sample = |index| SampleRef {
        position: index as u64,
        index,
        is_padding: false,
    };
    BatchJob {
        number: 0,
        samples: (0..objects.len()).map(sample).collect(),
        epoch: 0,
        samples_left: 0,
        routes: BatchRoutes::default(),
        charge: None,
        shard_streams: None,
        progress: Arc::new(BatchProgress::new()),
    }
}

/// The slots and columns of the next request.
fn pop(queue: &PlainQueue<'_>) -> Vec<(usize, Option<usize>)> {
    let parts = queue.pop().unwrap_or_default();
    parts.iter().map(|part| (part.slot, part.column)).collect()
}

/// The slots of all requests.
fn requests(objects: &Objects, slots: Vec<usize>) -> Vec<Vec<usize>> {
    let job = job(objects);
    let queue = PlainQueue::new(objects, &job, slots);
    let requests = std::iter::from_fn(|| queue.pop());
    requests
        .map(|parts| parts.iter().map(|part| part.slot).collect())
        .collect()
}

#[test]
fn entries_near_each_other_are_one_request() {
    let objects = [
        object("b.tar", place(0, 1_000)),
        object("a.tar", place(1_000 + MAX_GAP_BYTES, 1_000)),
        object("a.tar", place(0, 1_000)),
        object("a.tar", place(2_000 + 2 * MAX_GAP_BYTES + 1, 1_000)),
        object("a.tar", place(0, 1_000)),
    ];
    let objects = Objects::from_objects("b", objects);
    let expected = [vec![0], vec![2, 4, 1], vec![3]];
    assert_eq!(requests(&objects, (0..5).collect()), expected);
}

#[test]
fn versions_of_a_shard_are_requests_of_their_own() {
    let old = object("a.tar", place(0, 1_000));
    let new = Object {
        etag: Some("\"f\""),
        ..object("a.tar", place(1_000, 1_000))
    };
    let objects = Objects::from_objects("b", [old, new]);
    assert_eq!(requests(&objects, vec![0, 1]), [[0], [1]]);
}

#[test]
fn overlapping_entries_of_a_list_are_requests_of_their_own() {
    let objects = [
        object("a.tar", place(0, 2_000)),
        object("a.tar", place(512, 2_000)),
    ];
    let objects = Objects::from_objects("b", objects);
    assert_eq!(requests(&objects, vec![0, 1]), [[0], [1]]);
}

#[test]
fn a_joined_request_is_bounded() {
    let half = MAX_JOINED_BYTES / 2;
    let entries = [(0, half), (half, half), (2 * half, 3 * half), (5 * half, half)];
    let objects = entries.map(|(offset, bytes)| object("a.tar", place(offset, bytes)));
    let objects = Objects::from_objects("b", objects);
    assert_eq!(
        requests(&objects, (0..4).collect()),
        [vec![0, 1], vec![2], vec![3]]
    );
}

#[test]
fn whole_objects_stay_in_the_order_of_the_batch() {
    let objects = Objects::from_keys("b", ["c", "b", "a"]);
    assert_eq!(requests(&objects, vec![0, 1, 2]), [[0], [1], [2]]);
}

#[test]
fn only_samples_that_have_not_begun_leave_the_queue() {
    const FAR: u64 = 1 << 30;
    let mut builder = ObjectsBuilder::with_columns(vec!["cls".into()]);
    for (value, column) in [
        (place(0, 1_000), place(FAR, 1_000)),
        (place(1_000, 1_000), place(FAR + 1_000, 1_000)),
        (place(2 * FAR, 1_000), place(2 * FAR + 1_000, 1_000)),
    ] {
        builder.push_with_columns(object("a.tar", value), &[Some(member(column))]);
    }
    let objects = builder.finish("b".into());
    let job = job(&objects);
    let queue = PlainQueue::new(&objects, &job, vec![0, 1, 2]);
    assert_eq!(pop(&queue), [(0, None), (1, None)]);
    assert_eq!(queue.take_all(), [2], "the others wait for their columns");
    assert_eq!(pop(&queue), [(0, Some(0)), (1, Some(0))]);
    assert_eq!(pop(&queue), []);
    queue.put_back(vec![2]);
    assert_eq!(pop(&queue), [(2, None), (2, Some(0))]);
}
