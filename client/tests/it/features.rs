//! A client without models or tables refuses their steps by name. What it reads nevertheless is in `splits`.

use pushdown_client::ErrorKind;

use super::world::{World, read_batches};

/// The error of reading a photo with this pipeline.
fn refusal(pipeline: &str) -> String {
    let error = read_batches(World::with_photos(1).reader(pipeline)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Pipeline, "{error}");
    error.to_string()
}

#[cfg(not(feature = "models"))]
#[test]
fn the_step_model_is_refused_with_the_missing_feature() {
    let refusal = refusal("decode | to_float | model(tiny)");
    assert!(
        refusal.contains(
            "found the step `model`, which this program lacks: it was built without the feature `models`"
        ),
        "{refusal}"
    );
}

#[cfg(not(feature = "tables"))]
#[test]
fn the_step_select_is_refused_with_the_missing_feature() {
    let refusal = refusal("select(columns=[a])");
    assert!(
        refusal.contains(
            "found the step `select`, which this program lacks: it was built without the feature `tables`"
        ),
        "{refusal}"
    );
}
