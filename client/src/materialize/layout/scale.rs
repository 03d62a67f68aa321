//! What a list of ten million keys costs this host.

use std::{process, time::Instant};

use pushdown_testkit::peak_memory;

use super::{super::data_set::DataSet, *};
use crate::objects::ObjectsBuilder;

const KEYS: usize = 10_000_000;
const SAMPLES_PER_PART: usize = 4_096;
const MAX_MICROSECONDS_PER_SAMPLE: f64 = 60.0;
const MAX_BYTES_PER_KEY: f64 = 1024.0;

/// Objects as a listing collects them: keys of 44 bytes, ETags of 34.
fn listed(keys: usize) -> Objects {
    let mut builder = ObjectsBuilder::default();
    for number in 0..keys {
        builder.push(Object {
            key: &format!("photos/train/n{:08}/photo-{number:012}.jpg", number / 1_300),
            bytes: Some(110_000),
            etag: Some(&format!("\"{number:032x}\"")),
            member: None,
        });
    }
    builder.finish("bucket".into())
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "counts, of which a few digits matter")]
#[ignore = "half a minute and 1.1 GB of memory: --ignored --nocapture ten_million"]
fn ten_million_keys_are_divided_and_named_in_little_time_and_memory() {
    let before = peak_memory(process::id()).unwrap();
    let start = Instant::now();
    let objects = listed(KEYS);
    let listed_seconds = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let layout = Layout::new(&objects, SAMPLES_PER_PART).unwrap();
    let data_set = DataSet::new(objects, None, "photos/train/").unwrap();
    let recipe = Digest::new(b"recipe");
    let names: Vec<String> = (0..layout.len())
        .map(|number| {
            let samples = data_set.current(layout.part(number));
            let samples = samples.iter().map(|sample| (sample.object, sample.etag.as_str()));
            part_name(number, &recipe, samples, None, "tar")
        })
        .collect();
    let seconds = start.elapsed().as_secs_f64();

    let bytes = peak_memory(process::id()).unwrap() - before;
    let (microseconds_per_sample, bytes_per_key) = (seconds * 1e6 / KEYS as f64, bytes as f64 / KEYS as f64);
    println!(
        "{KEYS} keys in {} parts: {microseconds_per_sample:.2} us per sample to divide and name, {:.2} us to list, {bytes_per_key:.0} bytes per \
         key at the peak",
        names.len(),
        listed_seconds * 1e6 / KEYS as f64,
    );
    assert_eq!(names.len(), KEYS.div_ceil(SAMPLES_PER_PART));
    assert!(
        microseconds_per_sample <= MAX_MICROSECONDS_PER_SAMPLE,
        "{microseconds_per_sample} us"
    );
    assert!(bytes_per_key <= MAX_BYTES_PER_KEY, "{bytes_per_key} bytes");
}
