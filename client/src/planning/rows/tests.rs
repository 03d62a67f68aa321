//! Plans follow the link and the CPUs at both ends of it.

use std::{ops::Range, sync::Arc};

use arrow_array::{ArrayRef, Int64Array};
use http::{HeaderName, HeaderValue};
use pushdown::{Pipeline, wire::header::CORES};

use super::*;

const PIPELINE: &str = "select(columns=[image]) | each(image: decode | resize(16, 16) | to_float)";
/// Rows of each row group.
const ROWS: i64 = 4;
const SIZE: ReaderSize = ReaderSize { threads: 8, ranks: 1 };
/// The split after `resize`, whose rows have the fewest bytes.
const PIXELS: usize = 3;

fn planner(can_cut: bool) -> RowPlanner {
    planner_of(can_cut, SIZE)
}

fn planner_of(can_cut: bool, size: ReaderSize) -> RowPlanner {
    let pipeline = Pipeline::parse(PIPELINE).unwrap();
    let splits = pipeline.row_stages();
    let bytes = SplitBytes {
        read_row_bytes: 20_000,
        row_bytes: vec![Some(20_000), Some(20_000), None, Some(768), Some(3_072)],
    };
    let smallest = if can_cut { PIXELS } else { 4 };
    let is_possible = |split: usize| can_cut || splits[split].inner == 0;
    RowPlanner::new(&pipeline, &splits, is_possible, smallest, &bytes, size).unwrap()
}

fn rows() -> Table {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    Table::new(batch.schema(), vec![batch]).unwrap()
}

/// The times of the steps for a row group: 10 ms per photo to decode and resize it, and 0.25 ms for the rest.
fn times() -> Vec<InnerTime> {
    let time = |steps, milliseconds| InnerTime {
        column: "image".to_owned(),
        steps,
        time: Duration::from_millis(milliseconds),
    };
    vec![time(0..2, 40), time(2..3, 1)]
}

/// A row group read plainly over a link of this rate.
fn read_plainly(planner: &RowPlanner, max_bytes_per_second: f64) {
    let rate = RateSamples {
        max_bytes_per_second,
        count: 1,
    };
    let time = Duration::from_micros(400);
    planner.observe_read(0, &rows(), &ReadCost::Host { time, rate });
    planner.observe_times(0, 4, &times());
}

/// A row group read at a split from a gateway with this many cores, as fast as those of this host.
fn read_at(planner: &RowPlanner, split: usize, cores: u32) {
    let text = "origin;dur=3.0, plan;dur=1.0, queue;dur=0.1, select;dur=40.4";
    let headers = [
        (
            HeaderName::from_static("server-timing"),
            HeaderValue::from_static(text),
        ),
        (HeaderName::from_static(CORES), HeaderValue::from(cores)),
    ];
    let cost = ReadCost::Gateway {
        headers: headers.into_iter().collect(),
        cores_ratio: 1.0,
    };
    planner.observe_read(split, &rows(), &cost);
    planner.observe_times(split, 4, &times()[1..]);
}

fn splits(planner: &RowPlanner, count: usize) -> Vec<usize> {
    (0..count).map(|number| planner.split(number)).collect()
}

#[test]
fn both_routes_are_tried_before_the_first_plan() {
    let planner = planner(true);
    let expected = [3, 0, 3, 3, 3, 0, 3, 3, 3, 0, 3, 3, 3, 3, 3, 3];
    assert_eq!(splits(&planner, 16), expected);
    read_at(&planner, PIXELS, 8);
    assert_eq!(splits(&planner, 16), expected, "nothing is known of the link");
}

#[test]
fn rows_are_computed_at_the_gateway_if_the_link_is_slow() {
    let planner = planner(true);
    for _ in 0..8 {
        read_plainly(&planner, 1e6);
        read_at(&planner, PIXELS, 8);
    }
    assert_eq!(planner.main_split(), PIXELS);
    let chosen = splits(&planner, 32);
    let pixels = chosen.iter().filter(|split| **split == PIXELS).count();
    assert!(pixels >= 28, "{chosen:?}");
}

/// The gateway has one core, and this host eight: more than a ninth of the rows would wait for the gateway.
#[test]
fn rows_are_computed_on_this_host_if_the_gateway_is_the_bottleneck() {
    let planner = planner(true);
    for _ in 0..8 {
        read_plainly(&planner, 1e9);
        read_at(&planner, PIXELS, 1);
    }
    assert_eq!(planner.main_split(), 0);
    let chosen = splits(&planner, 90);
    let plain = chosen.iter().filter(|split| **split == 0).count();
    assert!((60..=90).contains(&plain), "{plain}: {chosen:?}");
}

#[test]
fn a_plan_follows_a_link_that_becomes_slow() {
    let planner = planner(true);
    for _ in 0..8 {
        read_plainly(&planner, 1e9);
        read_at(&planner, PIXELS, 1);
    }
    for _ in 0..4 {
        read_plainly(&planner, 1e5);
    }
    assert_eq!(planner.main_split(), PIXELS);
}

/// The link was slow when it was measured first. The plan leaves plain reading so little time that few row groups try it.
#[test]
fn a_plan_follows_a_link_that_becomes_fast() {
    let planner = planner(true);
    for _ in 0..8 {
        read_plainly(&planner, 1e4);
        read_at(&planner, PIXELS, 1);
    }
    assert_eq!(planner.main_split(), PIXELS);
    for _ in 0..500 {
        // Each epoch has fewer row groups than the period of trials.
        for number in 0..4 {
            match planner.split(number) {
                0 => read_plainly(&planner, 1e9),
                split => read_at(&planner, split, 1),
            }
        }
    }
    assert_eq!(planner.main_split(), 0);
}

/// Sixteen ranks have half of a core each, of the eight that a gateway states.
#[test]
fn ranks_share_the_gateway() {
    let alone = planner(true);
    let size = ReaderSize { ranks: 16, ..SIZE };
    let together = planner_of(true, size);
    for planner in [&alone, &together] {
        for _ in 0..8 {
            read_plainly(planner, 1e6);
            read_at(planner, PIXELS, 8);
        }
    }
    let plain = |planner: &RowPlanner| {
        let chosen = splits(planner, 90).into_iter();
        chosen.filter(|split| *split == 0).count()
    };
    let (alone, together) = (plain(&alone), plain(&together));
    assert!(
        alone < 10 && together > 30,
        "{alone} alone, {together} of 16 ranks"
    );
}

#[test]
fn the_plan_has_a_text() {
    let planner = planner(true);
    assert_eq!(planner.plan_report(), None);
    for _ in 0..8 {
        read_plainly(&planner, 1e9);
        read_at(&planner, PIXELS, 1);
    }
    let text = planner.plan_report().unwrap().to_string();
    insta::assert_snapshot!(text, @r"
    plan: 844 rows/s (plain reading: 773), limited by the gateway's CPU
      link 8000 Mbit/s, 1.0 cores at the gateway, 8.0 on this host
      rows: 88 % plain, 12 % up to `resize` (stage 1 and step 2 of `each`)
    ");
}

/// Steps that run as one count as one, also if several of them are in a step that cannot be cut.
#[test]
fn times_are_assigned_to_the_splits_around_them() {
    let seconds = |spans: Vec<(Range<usize>, f64)>| {
        let rounded = spans
            .into_iter()
            .map(|(steps, seconds)| (steps, Duration::from_secs_f64(seconds).as_millis()));
        rounded.collect::<Vec<_>>()
    };
    let with_cuts = planner(true);
    assert_eq!(
        seconds(with_cuts.spans.of_rest(1, &times())),
        [(1..3, 40), (3..4, 1)]
    );
    assert_eq!(seconds(with_cuts.spans.of_rest(3, &times()[1..])), [(3..4, 1)]);
    let whole = planner(false);
    assert_eq!(seconds(whole.spans.of_rest(1, &times())), [(1..2, 41)]);
    assert!(whole.spans.of_rest(2, &[]).is_empty());
}

/// The next reader of the same rows tries nothing again. One whose plans would be others begins anew.
#[test]
fn a_reader_continues_with_what_an_earlier_one_has_observed() {
    let first = planner(true);
    assert!(first.observations().is_none(), "there is no plan");
    for _ in 0..4 {
        read_plainly(&first, 1e6);
        read_at(&first, PIXELS, 8);
    }
    let known = first.observations().unwrap();
    assert_eq!(planner(true).split(1), 0, "an exploration");
    let second = planner(true).with_observations(known.clone());
    assert_eq!(second.plan_report(), first.plan_report());
    assert_eq!(second.split(1), PIXELS);
    let other_size = planner_of(true, ReaderSize { threads: 4, ranks: 1 });
    for other in [planner(false), other_size] {
        let other = other.with_observations(known.clone());
        assert_eq!(other.plan_report(), None);
        assert_eq!(other.split(1), 0, "an exploration");
    }
}
