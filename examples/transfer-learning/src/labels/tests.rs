//! Which samples are used, and which of them are held out.

use std::{collections::BTreeSet, ops::Range};

use super::*;

fn location() -> Location {
    "s3://b/photos/".parse().unwrap()
}

/// Photos of which every fourth is positive.
fn dataset(count: usize, samples: Option<usize>) -> Dataset {
    let key = |index: usize| format!("photos/{index:04}.png");
    let labels = (0..count).map(|index| (key(index), index % 4 == 0)).collect();
    let objects = Objects::from_keys("b", (0..count).map(key));
    Dataset::new(&location(), &objects, labels, samples).unwrap()
}

fn keys(objects: &Objects, indices: Range<usize>) -> BTreeSet<&str> {
    indices.map(|index| objects.key(index)).collect()
}

fn positives(labels: &[bool]) -> usize {
    labels.iter().filter(|label| **label).count()
}

#[test]
fn a_quarter_of_each_class_is_held_out() {
    let data = dataset(400, None);
    assert_eq!((data.train, data.objects.len()), (300, 400));
    assert_eq!(positives(data.train_labels()), 75);
    assert_eq!(positives(data.held_out_labels()), 25);
    assert_eq!(keys(&data.objects, 0..400).len(), 400);
}

/// A sample stays in its part when other samples are added or removed.
#[test]
fn the_split_depends_on_keys() {
    let (whole, again, some) = (dataset(400, None), dataset(400, None), dataset(400, Some(100)));
    let training_keys = keys(&whole.objects, 0..whole.train);
    assert_eq!(training_keys, keys(&again.objects, 0..again.train));
    assert_eq!((some.train, some.objects.len()), (74, 100));
    assert_eq!(positives(some.train_labels()), 18);
    assert_eq!(positives(some.held_out_labels()), 7);
    assert!(keys(&some.objects, 0..some.train).is_subset(&training_keys));
    let held_out = keys(&whole.objects, whole.train..400);
    assert!(keys(&some.objects, some.train..100).is_subset(&held_out));
    let more = dataset(404, None);
    let moved = keys(&more.objects, 0..more.train).intersection(&held_out).count();
    assert!(moved <= 2, "{moved} samples were moved by four more");
}

#[test]
fn labels_match_keys_with_or_without_the_prefix() {
    let labels = BTreeMap::from([
        ("a".to_owned(), true),
        ("photos/b".to_owned(), false),
        ("c".to_owned(), true),
        ("d".to_owned(), false),
        ("nowhere".to_owned(), false),
    ]);
    let keys = ["a", "b", "c", "d", "none"].map(|key| format!("photos/{key}"));
    let data = Dataset::new(&location(), &Objects::from_keys("b", keys), labels, None).unwrap();
    assert_eq!(data.objects.len(), 4);
    assert_eq!(positives(&data.labels), 2);
}

#[test]
fn data_without_both_classes_is_refused() {
    let refused = |labels: &[(&str, bool)]| {
        let objects = Objects::from_keys("b", ["photos/a", "photos/b", "photos/c"]);
        let labels = labels.iter().map(|(key, label)| ((*key).to_owned(), *label));
        Dataset::new(&location(), &objects, labels.collect(), None)
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(
        [
            refused(&[("x", true), ("y", false)]),
            refused(&[("a", true), ("b", true), ("c", true)]),
            refused(&[("a", true), ("b", false), ("c", false)]),
        ]
        .join("\n")
    );
}

#[test]
fn label_files_are_parsed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels.csv");
    let parse = |text: &str| {
        fs::write(&path, text).unwrap();
        read(&path, 0.5)
    };
    let labels = parse("key,label\nimages/a.png,1\n\"b, c.png\", 0.5\nd,0.333\n\nd,0\r\ne,1.0\n").unwrap();
    let expected = [
        ("b, c.png", true),
        ("d", false),
        ("e", true),
        ("images/a.png", true),
    ];
    assert_eq!(
        labels,
        expected.map(|(key, label)| (key.to_owned(), label)).into()
    );
    let errors = ["a", "a,1\nb", "a,1\nb,x", "a,1\nb,2", "a,NaN", "a,1\na,0"].map(|text| {
        let error = parse(text).unwrap_err().to_string();
        error.replace(path.to_str().unwrap(), "labels.csv")
    });
    insta::assert_snapshot!(errors.join("\n"));
    assert!(read(&folder.path().join("none"), 0.5).is_err());
}
