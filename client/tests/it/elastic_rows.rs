//! Rows of tables in one epoch of several worlds, and tail policies of rows.

use futures::TryStreamExt as _;
use pushdown_client::{
    reader::{PushdownReaderBuilder, Rank, SampleOrder, Tail, TailCounts, Worker},
    table::{RowId, RowsRead, TableReader},
};

use super::{
    rows::{PIPELINE, expected, ids, read_all, reader, world},
    world::{World, run},
};

/// All rows that match the condition of [`PIPELINE`], in the order of the data set.
fn matching() -> Vec<RowId> {
    expected(0, 1000).chain(expected(1, 2500)).collect()
}

/// Reads some batches on each rank, and returns the rows by rank and the state as JSON.
async fn read_some(
    builder: impl Fn() -> PushdownReaderBuilder,
    ranks: usize,
    batches: usize,
) -> (Vec<Vec<RowId>>, String) {
    let (mut rows, mut states) = (Vec::new(), Vec::new());
    for rank in 0..ranks {
        let mut reader = builder()
            .rank(Rank {
                index: rank,
                world: ranks,
            })
            .build_table()
            .await
            .unwrap();
        let mut read = Vec::new();
        for number in 0..batches {
            let Some(batch) = reader.try_next().await.unwrap() else {
                break;
            };
            assert_eq!(batch.number, number);
            read.push(batch);
        }
        rows.push(ids(&read));
        states.push(serde_json::to_string(&reader.rows_read_after(batches)).unwrap());
    }
    assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
    (rows, states.swap_remove(0))
}

fn parse(state: &str) -> Vec<RowsRead> {
    serde_json::from_str(state).unwrap()
}

async fn resumed(world: &World, state: &str) -> TableReader {
    let builder = reader(world, PIPELINE).rows_read(parse(state));
    builder.build_table().await.unwrap()
}

#[tokio::test]
async fn other_worlds_read_each_row_once() {
    let world = world();
    for shuffle in [true, false] {
        let builder = || reader(&world, PIPELINE).shuffle(shuffle);
        let (first, state) = read_some(builder, 2, 2).await;
        assert_eq!(state, r#"[{"world":2,"rows_per_rank":128}]"#);

        let in_world_3 = || builder().batch_size(50).rows_read(parse(&state));
        let (second, next) = read_some(in_world_3, 3, 3).await;
        assert_eq!(
            next,
            r#"[{"world":2,"rows_per_rank":128},{"world":3,"rows_per_rank":150}]"#
        );
        let (last, end) = read_some(|| builder().rows_read(parse(&next)), 8, 100).await;
        let counts: Vec<_> = [&first, &second, &last].map(|rows| rows.concat().len()).into();
        assert_eq!(counts, [256, 450, 328]);
        let mut all = [first, second, last].concat().concat();
        all.sort_unstable();
        assert_eq!(all, matching(), "each row once, shuffled: {shuffle}");

        let ended = builder().rows_read(parse(&end)).build_table().await.unwrap();
        assert!(ended.is_empty());
    }
}

#[tokio::test]
async fn the_same_world_continues_its_ranks_and_batches_are_numbered_from_0() {
    let world = world();
    let rank = || reader(&world, PIPELINE).rank(Rank { index: 1, world: 2 });
    let whole = ids(&read_all(rank().build_table().await.unwrap()).await);
    let (_, state) = read_some(|| reader(&world, PIPELINE), 2, 3).await;
    let resumed = || rank().rows_read(parse(&state));
    assert_eq!(
        ids(&read_all(resumed().build_table().await.unwrap()).await),
        whole[3 * 64..]
    );
    let limited = resumed().start_at(1).limit(100);
    let mut limited = limited.build_table().await.unwrap();
    assert_eq!((limited.len(), limited.batches()), (100, 2));
    let batch = limited.try_next().await.unwrap().unwrap();
    assert_eq!((batch.number, &batch.ids[..]), (1, &whole[4 * 64..][..36]));
    assert!(limited.try_next().await.unwrap().is_none());
    assert_eq!(
        limited.rows_read_after(2),
        [RowsRead {
            world: 2,
            rows_per_rank: 3 * 64 + 100
        }]
    );
}

#[tokio::test]
async fn a_new_epoch_begins_with_all_rows() {
    let world = world();
    let mut reader = resumed(&world, r#"[{"world":3,"rows_per_rank":100}]"#).await;
    let total = matching().len() as u64;
    assert_eq!(reader.len(), total - 300);
    reader.set_epoch(1);
    assert_eq!((reader.len(), reader.rows_read_after(0)), (total, vec![]));
    assert_eq!(ids(&read_all(reader).await).len() as u64, total);
}

#[tokio::test]
async fn tail_policies_make_ranks_equal() {
    let world = world();
    // 1034 rows: stretches of 344, 345 and 345, in batches of 64.
    for (tail, rows, batches, dropped) in [(Tail::Even, 344, 6, 2), (Tail::Drop, 320, 5, 74)] {
        let builder = || reader(&world, PIPELINE).tail(tail);
        let (read, state) = read_some(builder, 3, 100).await;
        assert!(read.iter().all(|read| read.len() == rows), "{tail:?}");
        assert_eq!(state, format!(r#"[{{"world":3,"rows_per_rank":{rows}}}]"#));
        let reader = builder()
            .rank(Rank { index: 2, world: 3 })
            .build_table()
            .await
            .unwrap();
        assert_eq!((reader.len(), reader.batches()), (rows as u64, batches));
        let counts = TailCounts { dropped, repeated: 0 };
        assert_eq!(reader.tail_counts(), counts);

        let mut all = [read.concat(), ids(&read_all(resumed(&world, &state).await).await)].concat();
        all.sort_unstable();
        assert_eq!(all, matching(), "dropped rows are left for a resume");
    }
}

#[test]
fn readers_refuse_settings_that_do_not_apply() {
    let world = World::with_photos(1);
    let builder = || world.reader("select(columns=[a])").batch_size(4);
    let refused = |builder: PushdownReaderBuilder| run(builder.build_table()).unwrap_err().to_string();
    let read = |world| RowsRead {
        world,
        rows_per_rank: 1,
    };
    let objects = world.reader("decode").rows_read(vec![read(2)]);
    insta::assert_snapshot!(
        [
            refused(builder().start_position(1)),
            refused(builder().worker(Worker { index: 0, count: 2 })),
            refused(builder().order(SampleOrder::Shards { buffer: 1 })),
            refused(builder().tail(Tail::Pad)),
            refused(builder().rows_read(vec![read(2), read(0)])),
            run(objects.build()).unwrap_err().to_string(),
        ]
        .join("\n")
    );
}
