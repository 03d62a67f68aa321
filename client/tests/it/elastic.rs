//! One order for any number of ranks, any batch size and any number of workers, also after a resume in another world.

use futures::StreamExt as _;
use pushdown_client::reader::{PushdownReaderBuilder, Rank, Row, Tail, TailCounts, Worker};

use super::world::{World, assert_same_rows, read_batches, read_rows, run};

const PIPELINE: &str = "decode | random_resized_crop(16) | flip_h | to_float";
const SAMPLES: usize = 23;

/// The rows of all ranks, by position.
fn read_world(reader: impl Fn() -> PushdownReaderBuilder, world: usize) -> Vec<Row> {
    let mut rows: Vec<_> = (0..world)
        .flat_map(|rank| read_rows(reader().rank(Rank { index: rank, world })))
        .collect();
    rows.sort_by_key(|row| row.position);
    rows
}

#[test]
fn another_world_continues_an_epoch_with_the_same_augmented_pixels() {
    let world = World::with_photos(SAMPLES);
    let reader = || world.reader(PIPELINE).seed(11).epoch(3);
    let whole = read_rows(reader());
    assert_eq!(whole.len(), SAMPLES);
    for (ranks, batch_size, start_position) in [(1, 4, 0), (2, 3, 6), (3, 1, 7), (5, 2, 13), (2, 4, SAMPLES)]
    {
        let resumed = || reader().batch_size(batch_size).start_position(start_position);
        assert_same_rows(&read_world(resumed, ranks), &whole[start_position..]);
    }
}

#[test]
fn batches_are_numbered_from_the_position_and_a_new_epoch_starts_at_its_beginning() {
    let world = World::with_photos(SAMPLES);
    let numbers = |reader| {
        let batches = read_batches(reader).unwrap();
        batches
            .iter()
            .map(|batch| (batch.number(), batch.len()))
            .collect::<Vec<_>>()
    };
    let reader = || world.reader(PIPELINE).seed(11).start_position(16);
    assert_eq!(numbers(reader()), [(0, 4), (1, 3)]);
    assert_eq!(numbers(reader().start_at(1)), [(1, 3)]);
    run(async {
        let mut reader = reader().build().await.unwrap();
        assert_eq!((reader.len(), reader.batches()), (7, 2));
        reader.set_epoch(1);
        assert_eq!((reader.len(), reader.batches()), (SAMPLES, 6));
        let beyond = world.reader(PIPELINE).seed(11).start_position(SAMPLES + 1);
        let error = beyond.build().await.unwrap_err().to_string();
        assert!(
            error.contains("expected at most 23, the number of samples, found 24"),
            "{error}"
        );
    });
}

#[test]
fn workers_take_turns_at_the_batches_of_a_rank() {
    let world = World::with_photos(SAMPLES);
    let reader = || {
        world
            .reader(PIPELINE)
            .seed(11)
            .rank(Rank { index: 1, world: 2 })
            .start_position(3)
            .batch_size(2)
    };
    let alone = read_batches(reader()).unwrap();
    assert_eq!(alone.len(), 5);
    for workers in [1, 2, 5, 7] {
        let mut batches: Vec<_> = (0..workers)
            .flat_map(|index| {
                read_batches(reader().worker(Worker {
                    index,
                    count: workers,
                }))
                .unwrap()
            })
            .collect();
        batches.sort_by_key(pushdown_client::reader::Batch::number);
        assert_eq!(batches, alone, "{workers} workers");
    }
}

#[test]
fn a_tail_policy_says_how_many_samples_it_drops_or_repeats() {
    let world = World::with_photos(SAMPLES);
    let whole = read_rows(world.reader(PIPELINE).seed(11));
    // Two ranks with batches of four: 23 samples are three batches of one rank, and eleven samples of the other one.
    let cases = [
        (Tail::Short, 23, 0, 0),
        (Tail::Even, 22, 1, 0),
        (Tail::Drop, 16, 7, 0),
        (Tail::Pad, 23, 0, 1),
    ];
    for (tail, read, dropped, repeated) in cases {
        let reader = || world.reader(PIPELINE).seed(11).tail(tail);
        let rows = read_world(reader, 2);
        let (padding, kept): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_padding);
        assert_same_rows(&kept, &whole[..read]);
        assert_eq!(padding.len(), repeated, "{tail:?}");
        if let [row] = &padding[..] {
            assert_eq!((row.index, &row.value), (whole[0].index, &whole[0].value));
        }
        let counts = run(async {
            reader()
                .rank(Rank { index: 1, world: 2 })
                .build()
                .await
                .unwrap()
                .tail_counts()
        });
        assert_eq!(counts, TailCounts { dropped, repeated });
    }
}

#[test]
fn a_reader_that_is_closed_in_the_middle_of_an_epoch_ends_its_threads() {
    let world = World::with_photos(SAMPLES);
    let closed = run(async {
        let mut reader = world.reader(PIPELINE).seed(11).build().await.unwrap();
        reader.next().await.unwrap().unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(20), reader.close()).await
    });
    closed.expect("the threads end after the step that runs");
}
