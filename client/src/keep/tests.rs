//! Which stage is kept, and under which name.

use super::*;

fn keep(pipeline: &str) -> (Keep, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = Pipeline::parse(pipeline).unwrap();
    (
        Keep::open(folder.path().to_owned(), 1 << 20, "b", &pipeline).unwrap(),
        folder,
    )
}

fn stage(pipeline: &str, stored: Option<u64>) -> Option<usize> {
    keep(pipeline).0.stage(stored).map(|stage| stage.number)
}

#[test]
fn the_last_value_that_is_steady_and_no_larger_than_its_object_is_kept() {
    let floats = "decode | resize(10, 10) | to_float | cast(f16)";
    assert_eq!(stage(floats, Some(5_000)), Some(4));
    assert_eq!(stage(floats, Some(600)), Some(4));
    assert_eq!(stage(floats, Some(599)), Some(2), "the pixels have 300 bytes");
    assert_eq!(
        stage(floats, Some(299)),
        Some(1),
        "decoded, it may have as few: that turns out later"
    );
    assert_eq!(stage(floats, None), Some(4), "without a listing there is no size");
    let random = "decode | resize(10, 10) | flip_h(seed=1) | to_float";
    assert_eq!(stage(random, Some(5_000)), Some(2));
    assert_eq!(stage("decode | resize(10, 10)", Some(299)), Some(1));
}

#[test]
fn values_that_turn_out_larger_than_their_objects_are_not_kept() {
    let (keep, _folder) = keep("decode | encode(png)");
    let object = Object {
        key: "k".into(),
        bytes: Some(5),
        etag: None,
    };
    let stage = keep.stage(object.bytes).unwrap();
    assert!(!stage.surely_fits(object.bytes));
    for (value, kept) in [("123456", Err(Reason::Larger)), ("12345", Ok(()))] {
        let stored = keep.store(&object, object.bytes, stage, &Sample::Bytes(value.into()));
        assert_eq!(stored, kept);
        assert_eq!(
            keep.missing(std::slice::from_ref(&object)).is_empty(),
            kept.is_ok()
        );
    }
}

#[test]
fn whatever_changes_a_value_changes_its_name() {
    let (keep, _folder) = keep("decode | resize(10, 10) | to_float");
    let (other, _other) = self::keep("decode | resize(11, 11) | to_float");
    let object = Object {
        key: "k".into(),
        bytes: Some(5_000),
        etag: Some("\"e\"".into()),
    };
    let name = |keep: &Keep, object: &Object| keep.name(object, &keep.stages[0]);
    let first = name(&keep, &object);
    assert_eq!(name(&keep, &object.clone()), first);
    assert_ne!(name(&other, &object), first, "another pipeline");
    assert_ne!(keep.name(&object, &keep.stages[1]), first, "another stage of it");
    let mut engine = keep.stages[0].clone();
    assert_eq!(engine.engine, pushdown::ENGINE.to_string());
    engine.engine += "; onnxruntime=1.30.0";
    assert_ne!(keep.name(&object, &engine), first, "another engine");
    let changed = [
        Object {
            key: "l".into(),
            ..object.clone()
        },
        Object {
            bytes: Some(5_001),
            ..object.clone()
        },
        Object {
            etag: Some("\"f\"".into()),
            ..object.clone()
        },
    ];
    for changed in changed {
        assert_ne!(name(&keep, &changed), first, "{changed:?}");
    }
}
