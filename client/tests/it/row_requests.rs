//! The requests of a reader of rows at a scripted store: footers are read once, and row groups are requested one after the other.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::sleep,
    time::Duration,
};

use futures::TryStreamExt as _;
use pushdown_client::{
    ErrorKind,
    reader::{Mode, PushdownReaderBuilder},
    table::TableReader,
};
use pushdown_exec::sync::Mutex;
use pushdown_testkit::{Exchange, Parquet, ScriptedOrigin, eventually, ranged};

use super::{
    members_faults::bounds,
    rows::{ids, read_all},
    world::{reader, run},
};

/// Row groups of each object.
const GROUPS: usize = 6;
/// Bytes of the column that is read, in a row group: more than the end of the object that is read with its footer.
const GROUP_BYTES: usize = 160_000;

/// An object whose column `c000` has eight bytes in each row.
fn object() -> Vec<u8> {
    let rows = GROUP_BYTES / 8;
    let file = Parquet {
        rows: rows * GROUPS,
        noise: 1,
        row_group: rows,
    };
    file.write().unwrap()
}

/// A store that answers by a script, and a plain reader of two objects.
fn scripted(
    answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
) -> (ScriptedOrigin, PushdownReaderBuilder) {
    let origin = ScriptedOrigin::start(answer).unwrap();
    let builder = reader(&format!("http://{}", origin.address()), "select(columns=[c000])");
    let builder = builder.keys(["a.parquet", "b.parquet"]).mode(Mode::Plain);
    (origin, builder.batch_size(10_000))
}

/// The objects whose footers were requested, with repetitions.
fn footers(origin: &ScriptedOrigin) -> Vec<String> {
    let requests = origin.requests();
    let footers = requests.iter().filter(|head| head.contains("bytes=-"));
    let path = |head: &String| head.split(' ').nth(1).unwrap_or_default().to_owned();
    footers
        .map(|head| path(head).split('?').next().unwrap_or_default().to_owned())
        .collect()
}

async fn built(builder: PushdownReaderBuilder) -> TableReader {
    builder.build_table().await.unwrap()
}

#[test]
fn footers_are_read_once_for_all_epochs() {
    let file = object();
    let (origin, builder) = scripted(move |exchange| ranged(exchange, &file, "e"));
    run(async {
        let mut first = built(builder.clone()).await;
        let known = first.footers();
        let requested = footers(&origin);
        assert_eq!(requested.len(), 2, "{requested:?}");
        assert_eq!(requested.iter().collect::<BTreeSet<_>>().len(), 2);
        first.set_epoch(1);
        let rows = ids(&read_all(first).await);
        assert_eq!(footers(&origin).len(), 2, "another epoch");

        let second = built(builder.clone().footers(known.clone())).await;
        assert_eq!(ids(&read_all(second).await), rows);
        assert_eq!(footers(&origin).len(), 2, "another reader of the same objects");

        let other = built(builder.keys(["a.parquet", "c.parquet"]).footers(known)).await;
        assert_eq!(footers(&origin).len(), 4, "a reader of other objects");
        assert_eq!(read_all(other).await.len(), 2 * GROUPS * 2);
    });
}

#[test]
fn known_footers_are_those_of_the_same_version() {
    let file = object();
    let is_replaced = Arc::new(AtomicBool::new(false));
    let replaced = Arc::clone(&is_replaced);
    let (_origin, builder) = scripted(move |exchange| {
        let etag = if replaced.load(SeqCst) { "other" } else { "e" };
        ranged(exchange, &file, etag)
    });
    run(async {
        let known = built(builder.clone()).await.footers();
        is_replaced.store(true, SeqCst);
        let mut reader = built(builder.clone().footers(known)).await;
        let error = reader.try_next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample, "{error}");
        assert!(
            error.to_string().contains("was replaced while it was read"),
            "{error}"
        );
        assert_eq!(
            read_all(built(builder).await).await.len(),
            2 * GROUPS * 2,
            "without them"
        );
    });
}

/// The store sends an eighth of the first row group, then half of it. With four requests the next row group may begin after a quarter.
#[test]
fn a_row_group_is_requested_once_a_part_of_the_one_before_has_arrived() {
    let file = object();
    let starts = Arc::new(Mutex::new(BTreeSet::new()));
    let early = Arc::new(AtomicUsize::new(0));
    let (recorder, early_recorder) = (Arc::clone(&starts), Arc::clone(&early));
    let (_origin, builder) = scripted(move |exchange| {
        let Some((first, last)) = bounds(&exchange.head) else {
            return ranged(exchange, &file, "e");
        };
        let requested = || recorder.lock().len();
        recorder.lock().insert(first);
        if requested() > 1 {
            return ranged(exchange, &file, "e");
        }
        let part = &file[first..=last];
        exchange.send(format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nETag: \"e\"\r\nContent-Range: bytes \
             {first}-{last}/{}\r\n\r\n",
            part.len(),
            file.len()
        ))?;
        exchange.send(&part[..part.len() / 8])?;
        // Enough for requests that do not wait.
        sleep(Duration::from_millis(300));
        early_recorder.store(requested(), SeqCst);
        exchange.send(&part[part.len() / 8..part.len() / 2])?;
        let next = || Ok((requested() > 1).then_some(()));
        eventually("the next row group is requested", Duration::from_mins(1), next)
            .map_err(io::Error::other)?;
        exchange.send(&part[part.len() / 2..])
    });
    run(async {
        let reader = built(builder.requests(4)).await;
        assert_eq!(read_all(reader).await.len(), 2 * GROUPS * 2);
    });
    assert_eq!(
        early.load(SeqCst),
        1,
        "requests after an eighth of the first row group"
    );
    assert!(starts.lock().len() >= GROUPS);
}
