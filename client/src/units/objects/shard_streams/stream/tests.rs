//! What a stream reads, and who receives it.

use bytes::Bytes;
use futures::FutureExt as _;

use super::{super::entries::tests::entry, *};

const KIB: u64 = 1024;

/// Ten entries of 2.5 KiB, each of another batch, with room for a number of members.
fn stream(max_kib: usize, read_ahead: usize) -> (ShardStream, Vec<Entry>) {
    let entries: Vec<Entry> = (0..10_usize)
        .map(|number| entry(number, number, number as u64 * 4 * KIB, 3 * KIB))
        .collect();
    let arrived = Arc::new(ArrivedMembers::new(max_kib, read_ahead));
    (ShardStream::new(entries.clone(), arrived), entries)
}

fn content(number: usize) -> Bytes {
    Bytes::from(number.to_string())
}

/// Reads on as far as the stream may, and returns the numbers of the entries read.
fn read(stream: &ShardStream) -> Vec<usize> {
    let next = || stream.next(|| ()).now_or_never().flatten();
    let numbers = std::iter::from_fn(|| {
        let next = next()?;
        let number = next.entry.part.index;
        stream.deliver(next, Ok(content(number)));
        Some(number)
    });
    numbers.collect()
}

fn awaited(stream: &ShardStream, entry: &Entry) -> oneshot::Receiver<Content> {
    match stream.request(entry.batch, &entry.part) {
        Requested::Awaited(content) => content,
        other => panic!("found {other:?}"),
    }
}

fn is_ended(stream: &ShardStream) -> bool {
    stream.state.lock().entries.is_empty() || matches!(stream.next_step(), NextStep::End)
}

#[test]
fn a_stream_reads_on_while_anybody_waits_and_a_little_ahead() {
    let (stream, entries) = stream(100, 2);
    assert_eq!(read(&stream), [0, 1], "ahead");
    let mut fifth = awaited(&stream, &entries[5]);
    assert_eq!(read(&stream), [2, 3, 4, 5]);
    assert_eq!(fifth.try_recv().unwrap(), Ok(content(5)));
    for number in [3, 0, 4, 1] {
        let requested = stream.request(number, &entries[number].part);
        assert!(
            matches!(&requested, Requested::Arrived(Ok(found)) if *found == content(number)),
            "{number}: {requested:?}"
        );
    }
    assert_eq!(read(&stream), [6], "one member is left, so it reads one ahead");
    assert!(matches!(stream.request(5, &entries[5].part), Requested::Passed));
    assert!(matches!(stream.request(4, &entries[7].part), Requested::Passed));
}

#[test]
fn nobody_waits_for_room() {
    // Three members.
    let (stream, entries) = stream(9, 10);
    assert_eq!(read(&stream), [0, 1, 2]);
    assert!(!is_ended(&stream), "it pauses");
    // It needs no room, since it is awaited.
    let mut third = awaited(&stream, &entries[3]);
    assert_eq!(read(&stream), [3]);
    assert_eq!(third.try_recv().unwrap(), Ok(content(3)));
    let mut fifth = awaited(&stream, &entries[5]);
    assert!(read(&stream).is_empty());
    assert!(is_ended(&stream), "there is no room for the one before");
    stream.end(None);
    assert_eq!(fifth.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    assert!(matches!(stream.request(6, &entries[6].part), Requested::Passed));
    let first = stream.request(1, &entries[1].part);
    assert!(matches!(first, Requested::Arrived(_)), "what has arrived is left");
}

#[test]
fn entries_of_batches_that_have_ended_are_passed_over() {
    let (stream, entries) = stream(100, 2);
    assert_eq!(read(&stream), [0, 1]);
    stream.arrived.end_batch(0);
    stream.arrived.end_batch(3);
    let _ninth = awaited(&stream, &entries[9]);
    assert_eq!(read(&stream), [2, 4, 5, 6, 7, 8, 9]);
    assert!(is_ended(&stream));
}

#[test]
fn those_who_wait_receive_the_error_and_others_do_not() {
    let (stream, entries) = stream(100, 2);
    let mut ninth = awaited(&stream, &entries[9]);
    drop(awaited(&stream, &entries[8]));
    let replaced = RowError::new("ShardReplaced", "replaced");
    stream.end(Some(&replaced));
    assert_eq!(ninth.try_recv().unwrap(), Err(replaced));
    assert!(matches!(stream.request(7, &entries[7].part), Requested::Passed));
}

#[tokio::test]
async fn a_stream_that_pauses_reads_on_for_those_who_ask() {
    let (stream, entries) = stream(100, 0);
    let (mut pauses, mut content) = (0, None);
    let asked = async {
        tokio::task::yield_now().await;
        content = Some(awaited(&stream, &entries[0]));
    };
    let (next, ()) = tokio::join!(stream.next(|| pauses += 1), asked);
    assert_eq!((next.unwrap().entry.part.index, pauses), (0, 1));
}
