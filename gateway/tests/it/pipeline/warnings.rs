//! Warning headers: a batch answer carries the same warning as the answer to a single GET.

use anyhow::{Result, ensure};
use pushdown::{MergeRule, Pipeline, SchemaRule, step::model::ModelFolder};
use pushdown_testkit::{Parquet, model_folder};

use super::{
    batch,
    models::{RUNTIME, launch, squeezenet_folder},
    photo,
};

const WARNING: &str = "x-pushdown-warning";

#[test]
fn a_batch_carries_the_warning_of_a_single_get() -> Result<()> {
    let folder = squeezenet_folder()?;
    let lab = launch(&folder, &[])?;
    lab.put("cat.jpg", photo(230, 230, "jpeg"))?;
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    for (normalize, reason) in [
        ("normalize(model=squeezenet) | ", None),
        (
            "normalize(mean=0.5, std=0.5) | ",
            Some("the pipeline normalizes with other values"),
        ),
        ("", Some("the pipeline does not normalize")),
    ] {
        let text =
            format!("decode | resize(224, 224) | to_float | {normalize}model(squeezenet, until=cut:2)");
        let single = lab.get("cat.jpg", &text, &[])?;
        let pipeline = Pipeline::parse_with(&text, &local_models)?;
        let answer = batch::send(&lab, &batch::request(&lab, pipeline, &["cat.jpg".to_owned()])?)?;
        let warning = answer.header(WARNING).map(str::to_owned);
        assert_eq!(warning.as_deref(), single.header(WARNING), "{normalize}");
        let expected = reason.is_none_or(|reason| warning.as_ref().is_some_and(|text| text.contains(reason)));
        ensure!(
            expected && warning.is_some() == reason.is_some(),
            "{normalize}: {warning:?}"
        );
        let rows = batch::rows(answer)?;
        ensure!(
            rows.len() == 1 && rows[0].value.is_ok(),
            "expected one value: {rows:?}"
        );
    }
    Ok(())
}

/// The model is inside `each`.
#[test]
fn a_table_of_many_objects_carries_the_warning() -> Result<()> {
    let folder = model_folder(&["tiny/batch_mean"])?;
    let lab = launch(&folder, &[])?;
    let photos = [photo(16, 12, "png"), photo(12, 16, "png")];
    let column: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    lab.put("photos.parquet", Parquet::of_photos(&column, 2)?)?;
    let local_models = ModelFolder::open(folder.path(), RUNTIME.clone())?;
    let text = "select | each(photo: decode | resize(4, 4) | to_float | model(batch_mean))";
    let pipeline = Pipeline::parse_with(text, &local_models)?;
    let mut request = batch::request(&lab, pipeline, &["photos.parquet".to_owned()])?;
    request.table = Some(MergeRule {
        key: false,
        schema: SchemaRule::Same,
    });
    let answer = batch::send(&lab, &request)?;
    ensure!(answer.status == 200, "{}", answer.text());
    assert_eq!(
        answer.header(WARNING),
        Some(
            "the model batch_mean runs on one sample at a time: its results in a batch differ from those of single samples"
        )
    );
    Ok(())
}
