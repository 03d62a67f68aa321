//! Near members of a batch are read by one request to the store.

use anyhow::{Result, ensure};
use pushdown::wire::{CacheStatus, Order};
use pushdown_testkit::{ScriptedOrigin, first_byte, ranged};

use super::{Member, SHORT, Shard, ShardLab, check_values, codes, photo, post, rows};
use crate::it::gateway_for;

#[test]
fn neighbours_are_read_by_one_request() -> Result<()> {
    for (flags, order) in [
        (&[][..], Order::Request),
        (&[], Order::Any),
        (&["--batch-in-flight=1"], Order::Request),
        (&["--batch-in-flight=3"], Order::Any),
    ] {
        let lab = ShardLab::new(Shard::of_photos(40)?, flags)?;
        let mut request = lab.request(SHORT, &lab.shard.members)?;
        request.order = order;
        let (rows, cost) = lab.cost(|| lab.rows(&request))?;
        check_values(&rows, &lab.shard.members, SHORT)?;
        assert_eq!(cost, 1, "{flags:?} {order:?}");
        let (first, last) = (&lab.shard.members[0], &lab.shard.members[39]);
        let range = format!(
            "range: bytes={}-{}\r\n",
            first.range.offset(),
            last.range.entry().end - 1
        );
        ensure!(lab.store.requests()[0].to_lowercase().contains(&range));
        lab.check_memory()?;
    }
    Ok(())
}

#[test]
fn members_that_are_not_asked_for_are_skipped() -> Result<()> {
    let mut contents: Vec<_> = (0..6)
        .map(|number| (format!("{number}.jpg"), photo(80 + number, 60, "jpeg")))
        .collect();
    // More than a gap that is worth reading.
    contents.insert(4, ("gap".to_owned(), vec![7; 600 << 10]));
    let lab = ShardLab::new(Shard::new(contents)?, &[])?;
    let members = [0, 2, 3, 5, 6].map(|index| lab.shard.members[index].clone());
    let (rows, cost) = lab.cost(|| lab.rows(&lab.request(SHORT, &members)?))?;
    check_values(&rows, &members, SHORT)?;
    assert_eq!(cost, 2, "before the gap, and after it");
    // Not in the order of the shard.
    let reversed: Vec<Member> = members.iter().rev().cloned().collect();
    let (rows, cost) = lab.cost(|| lab.rows(&lab.request(SHORT, &reversed)?))?;
    check_values(&rows, &reversed, SHORT)?;
    assert_eq!(cost, members.len());
    lab.check_memory()
}

/// A row that fails does not fail its neighbours.
#[test]
fn a_row_that_fails_leaves_the_rest_to_others() -> Result<()> {
    let mut contents: Vec<_> = (0..8)
        .map(|number| (format!("{number}.jpg"), photo(80 + number, 60, "jpeg")))
        .collect();
    contents[2].1 = b"no photo".to_vec();
    contents[5].1 = photo(1200, 1000, "jpeg");
    let lab = ShardLab::new(Shard::new(contents)?, &["--max-megapixels=1"])?;
    let mut members = lab.shard.members.clone();
    members[6].name = "other.jpg".to_owned();
    let (rows, cost) = lab.cost(|| lab.rows(&lab.request(SHORT, &members)?))?;
    let mut expected = vec![""; 8];
    expected[2] = "UndecodableObject";
    expected[5] = "UndecodableObject";
    expected[6] = "InvalidShard";
    assert_eq!(codes(&rows), expected);
    for (row, member) in rows.iter().zip(&members) {
        if let Ok(value) = &row.value {
            ensure!(*value == member.value(SHORT), "{}", member.name);
        }
    }
    // The content that is too large is not read, and neither is the one after the wrong header.
    assert_eq!(cost, 3);
    lab.check_memory()
}

#[test]
fn a_cached_row_is_skipped() -> Result<()> {
    let lab = ShardLab::new(Shard::of_large_photos(6)?, &["--cache-memory=64MiB"])?;
    for _ in 0..5 {
        lab.get(&lab.shard.members[3])?;
    }
    let (rows, cost) = lab.cost(|| lab.rows(&lab.request(SHORT, &lab.shard.members)?))?;
    check_values(&rows, &lab.shard.members, SHORT)?;
    let cached = rows.iter().filter(|row| row.cache == CacheStatus::Memory);
    assert_eq!(cached.map(|row| row.row).collect::<Vec<_>>(), [3]);
    assert_eq!(cost, 2, "one for the cached row, one for all others");
    Ok(())
}

/// A store that closes the connection at this byte of its first answer.
fn store_that_breaks(shard: &Shard, end: usize) -> Result<ScriptedOrigin> {
    let bytes = shard.bytes.clone();
    ScriptedOrigin::start(move |exchange| {
        if exchange.earlier_requests > 0 || first_byte(exchange) != Some(0) {
            return ranged(exchange, &bytes, "1");
        }
        let total = bytes.len();
        exchange.send(format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {total}\r\nETag: \"1\"\r\n\
             Content-Range: bytes 0-{}/{total}\r\n\r\n",
            total - 1
        ))?;
        exchange.close();
        exchange.send(&bytes[..end])
    })
}

#[test]
fn a_lost_connection_fails_no_more_than_the_row_that_reads() -> Result<()> {
    let shard = Shard::of_photos(6)?;
    let fourth = shard.entry_of(3)?;
    // Within the content of the fourth member, and between it and the one before.
    for (end, expected) in [
        (fourth.start + 1000, ["", "", "", "OriginUnavailable", "", ""]),
        (fourth.start, [""; 6]),
    ] {
        let origin = store_that_breaks(&shard, end)?;
        let gateway = gateway_for(&origin, &[])?;
        let lab = ShardLab::new(shard.clone(), &[])?;
        let request = lab.request(SHORT, &shard.members)?;
        let answer = post("store", &request)?.send(gateway.listen())?;
        assert_eq!(codes(&rows(answer)?), expected, "{end}");
        assert_eq!(origin.requests().len(), 2, "{end}");
    }
    Ok(())
}

/// Rows wait for memory while the rest of their shard waits at the store.
#[test]
fn joined_rows_wait_for_memory() -> Result<()> {
    let photos = (0..48).map(|number| (format!("{number}.jpg"), photo(500 + number, 400, "jpeg")));
    let flags = [
        "--memory-budget=16MiB",
        "--queue-wait=30s",
        "--batch-in-flight=64",
    ];
    let lab = ShardLab::new(Shard::new(photos.collect())?, &flags)?;
    let (rows, cost) = lab.cost(|| lab.rows(&lab.request("decode", &lab.shard.members)?))?;
    check_values(&rows, &lab.shard.members, "decode")?;
    assert_eq!(cost, 1);
    lab.check_memory()
}
