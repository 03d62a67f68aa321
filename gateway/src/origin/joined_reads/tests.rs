use futures::poll;
use http::{HeaderMap, StatusCode};

use super::*;
use crate::{body, origin::OriginObject};

const ENTRIES: [Range<u64>; 3] = [0..36, 40..76, 80..116];

fn tickets() -> (JoinedReads, [EntryTicket; 3]) {
    let [first, second, third] = ENTRIES;
    let mut run = EntryRun::new(first);
    assert_eq!((run.add(&second), run.add(&third)), (Some(1), Some(2)));
    let reads = run.into_reads().unwrap();
    let tickets = [0, 1, 2].map(|number| reads.ticket(number));
    (reads, tickets)
}

/// A shard of 116 bytes, of which nothing is read.
fn rest() -> ShardStream {
    rest_of_length(Some(116))
}

fn rest_of_length(content_length: Option<u64>) -> ShardStream {
    let answer = OriginObject {
        content_length,
        body: body::full(vec![0; 116]),
        ..OriginObject::for_test(StatusCode::OK, HeaderMap::new())
    };
    ShardStream::new(answer, &(0..1), 0).unwrap()
}

#[test]
fn entries_that_follow_closely_are_one_run() {
    let mut run = EntryRun::new(1000..2000);
    assert_eq!(run.add(&(1999..3000)), None, "overlapping");
    assert_eq!(run.add(&(0..500)), None, "before");
    assert_eq!(run.add(&(2000 + MAX_GAP_BYTES + 1..(4 << 20))), None, "too far");
    assert_eq!(run.add(&(2000..3000)), Some(1));
    assert_eq!(run.add(&(3000 + MAX_GAP_BYTES..(4 << 20))), Some(2));
    let end = 1000 + MAX_JOINED_BYTES;
    assert_eq!(run.add(&((4 << 20)..end + 1)), None, "too large");
    assert_eq!(run.add(&((4 << 20)..end)), Some(3));
    assert_eq!(run.into_reads().unwrap().ticket(0).end(), end);
    assert!(EntryRun::new(0..10).into_reads().is_none());
}

#[tokio::test]
async fn readers_follow_each_other_and_pass_the_rest_on() {
    let (reads, [first, second, third]) = tickets();
    assert!(first.wait(&ENTRIES[0]).await.is_none());
    let left = {
        let waiting = second.wait(&ENTRIES[1]);
        tokio::pin!(waiting);
        assert!(poll!(&mut waiting).is_pending());
        first.pass_on(rest());
        waiting.await.unwrap()
    };
    second.pass_on(left);
    let left = third.wait(&ENTRIES[2]).await.unwrap();
    third.pass_on(left);
    assert!(reads.0.state.lock().rest.is_none(), "nobody is left to read it");
}

#[tokio::test]
async fn a_reader_that_gives_up_is_skipped() {
    let (_, [first, second, third]) = tickets();
    drop(second);
    let left = {
        let waiting = third.wait(&ENTRIES[2]);
        tokio::pin!(waiting);
        assert!(poll!(&mut waiting).is_pending(), "the first one still reads");
        first.pass_on(rest());
        waiting.await
    };
    assert!(left.is_some());
    let (_, [first, second, third]) = tickets();
    drop((first, second));
    assert!(third.wait(&ENTRIES[2]).await.is_none());
}

#[tokio::test]
async fn a_rest_without_the_entry_is_dropped() {
    let far = MAX_GAP_BYTES + 1..MAX_GAP_BYTES + 2;
    for (length, entry) in [(Some(116), 100..117), (None, far)] {
        let (_, [first, second, _third]) = tickets();
        first.pass_on(rest_of_length(length));
        assert!(second.wait(&entry).await.is_none(), "{entry:?}");
    }
}
