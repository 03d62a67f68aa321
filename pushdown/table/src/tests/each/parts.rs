//! Parts of an `each` that was cut compute what the whole does.

use pushdown::pipeline::RowStage;

use super::*;

/// The stages of a pipeline's rows within `each`.
fn inner_stages(pipeline: &Pipeline) -> Vec<RowStage> {
    let stages = pipeline.row_stages().into_iter();
    stages.filter(|stage| stage.inner > 0).collect()
}

/// The rows of a pipeline that is cut at a stage: the first steps run in a scan, and the rest on a table.
fn run_cut(pipeline: &Pipeline, stage: RowStage, object: &Bytes, context: &Context<'_>) -> Result<Table> {
    let (cut, steps) = pipeline.cut_rows(stage).unwrap();
    assert_eq!(Pipeline::parse(&cut.to_string())?, cut, "{stage:?}");
    let rows = block_on(async {
        let mut scan = cut.scan(0..steps, Arc::new(object.clone()), context).await?;
        let mut batches = Vec::new();
        while let Some(batch) = scan.next().await.transpose()? {
            batches.push(batch);
        }
        Table::new(Arc::clone(scan.schema()), batches)
    })?;
    match cut.run(steps..cut.len(), Sample::Table(rows), context)? {
        Sample::Table(table) => Ok(table),
        other => panic!("found {other:?}"),
    }
}

/// Law 1 inside of `each`: with values of variable and of fixed shapes, encoded ones, errors of both parts, and nulls.
#[test]
fn law1_holds_for_every_cut_inside_of_each() {
    let context = Context::new(b"photos.parquet").with_randomness(3, 1);
    let object = object(binary());
    for (inner, stages) in [
        ("decode | resize(2, 2) | to_float | normalize(imagenet)", 3),
        ("decode | encode(png) | decode | resize(2, 2)", 3),
        ("decode | random_crop(2) | flip_h | to_tensor", 3),
        // The photos of 3 x 2 pixels are too small: an error of the second part.
        ("decode | random_crop(4, 2) | to_float | cast(f16)", 3),
        ("decode | to_float | quantize(int8) | dequantize", 2),
        ("decode", 0),
    ] {
        let text = format!("select(row_number=at) | each(image: {inner})");
        let pipeline = pipeline(&text);
        let whole = run_and_scan(&text, &object, &context).unwrap();
        let cuts = inner_stages(&pipeline);
        assert_eq!(cuts.len(), stages, "{inner}");
        for stage in cuts {
            assert_eq!(
                run_cut(&pipeline, stage, &object, &context).unwrap(),
                whole,
                "{inner} at {stage:?}"
            );
        }
    }
}

#[test]
fn rows_have_stages_between_steps_and_inside_of_each() {
    let pipeline =
        pipeline("select | each(a: decode | to_float | quantize(int8) | dequantize) | each(b: decode)");
    let stages = pipeline
        .row_stages()
        .into_iter()
        .map(|stage| (stage.steps, stage.inner));
    assert_eq!(
        stages.collect::<Vec<_>>(),
        [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0)],
        "codes have a scale each, which no column has"
    );
    for (steps, inner) in [(1, 3), (1, 4), (2, 1), (0, 1), (4, 0)] {
        assert!(
            pipeline.cut_rows(RowStage { steps, inner }).is_none(),
            "{steps}, {inner}"
        );
    }
    let (same, steps) = pipeline.cut_rows(RowStage { steps: 2, inner: 0 }).unwrap();
    assert_eq!((same, steps), (pipeline, 2));
}

/// Both parts have the column and the pipeline in their text.
#[test]
fn a_pipeline_that_would_be_too_long_is_not_cut() {
    let stage = RowStage { steps: 1, inner: 1 };
    for (bytes, can_cut) in [(7_000, true), (9_000, false)] {
        let text = format!("select | each({}: decode | to_float)", "a".repeat(bytes));
        let cut = pipeline(&text).cut_rows(stage);
        assert_eq!(cut.is_some(), can_cut, "{bytes}");
        assert!(cut.is_none_or(|(cut, _)| Pipeline::parse(&cut.to_string()).is_ok()));
    }
}

/// Consecutive parts run as one step, in a scan as on a table.
#[test]
fn parts_are_written_as_steps_and_joined() {
    let inner = "decode | resize(2, 2) | to_float";
    let whole = format!("select | each(image: {inner})");
    let parts = format!("select | each(image: {inner}, until=1) | each(image: {inner}, from=1)");
    let (cut, _) = pipeline(&whole)
        .cut_rows(RowStage { steps: 1, inner: 1 })
        .unwrap();
    assert_eq!(cut, pipeline(&parts));
    let context = Context::new(b"photos.parquet");
    let object = object(binary());
    assert_eq!(
        run_and_scan(&parts, &object, &context).unwrap(),
        run_and_scan(&whole, &object, &context).unwrap()
    );
}

#[test]
fn invalid_parts_are_refused_with_the_reason() {
    let context = Context::new(b"photos.parquet");
    let inner = "decode | resize(2, 2) | to_float | quantize(int8) | dequantize";
    for arguments in [
        "until=0",
        "until=6",
        "from=2, until=2",
        "from=5",
        "until=4",
        "from=4",
    ] {
        let text = format!("select | each(image: {inner}, {arguments})");
        let error = Pipeline::parse(&text).unwrap_err();
        assert_eq!(
            error.position().map(|at| at as usize),
            text.find("each"),
            "{text}: {error}"
        );
    }
    for (steps, message) in [
        ("each(image: decode | to_float, from=1)", "`until=1`"),
        (
            "each(image: decode, until=1) | each(image: decode | resize(2, 2) | to_float, from=2)",
            "`until=2`",
        ),
        (
            "each(image: decode, until=1) | each(image: decode)",
            "expected binary",
        ),
    ] {
        let error = run_and_scan(&format!("select | {steps}"), &object(binary()), &context).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsuitable, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// A part draws as the whole does, and needs row numbers only if it is random itself.
#[test]
fn only_a_random_part_needs_row_numbers() {
    let context = Context::new(b"photos.parquet").with_randomness(7, 3);
    let inner = "decode | resize(4, 2) | flip_h";
    let rows = |arguments: &str| {
        let text = format!("select | each(image: {inner}, {arguments})");
        run_and_scan(&text, &object(binary()), &context)
    };
    assert!(rows("until=2").is_ok());
    let error = rows("from=0").unwrap_err();
    assert!(error.to_string().contains("row_number="), "{error}");
}
