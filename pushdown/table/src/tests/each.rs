//! `sample` and `each`.

mod hosts;
mod parts;

use std::future::poll_fn;

use arrow_array::{
    Array as _, BinaryArray, FixedSizeBinaryArray, FixedSizeListArray, StructArray, types::Float32Type,
    types::UInt8Type,
};
use arrow_schema::{Field, Fields};

use super::*;
use pushdown_core::Image;
use pushdown_image::image::Encode;

/// A PNG of two rows whose pixels are all `grey`.
fn png(width: u32, grey: u8) -> Vec<u8> {
    let image = Image::new(width, 2, vec![grey; width as usize * 6]).unwrap();
    let context = Context::new(b"x");
    let encode = pipeline("decode | encode(png)");
    assert!(matches!(encode.steps()[1], pushdown::Step::Encode(Encode { .. })));
    match encode.run(1..2, Sample::Image(image), &context).unwrap() {
        Sample::Bytes(bytes) => bytes.to_vec(),
        other => panic!("found {other:?}"),
    }
}

/// Photos: the third is invalid, the fourth is null.
fn photos() -> Vec<Option<Vec<u8>>> {
    vec![
        Some(png(3, 10)),
        Some(png(4, 255)),
        Some(b"no photo".to_vec()),
        None,
        Some(png(3, 0)),
    ]
}

fn object(column: ArrayRef) -> Bytes {
    let rows = i64::try_from(column.len()).unwrap();
    let columns = [("n", super::column(0..rows)), ("image", column)];
    let nullable = columns.map(|(name, column)| (name, column, true));
    parquet_file(&RecordBatch::try_from_iter_with_nullable(nullable).unwrap(), 2)
}

fn binary() -> ArrayRef {
    Arc::new(BinaryArray::from_iter(photos()))
}

/// The rows of a scan.
fn scan_rows(text: &str, object: &Bytes, context: &Context<'_>) -> Result<Table> {
    let pipeline = pipeline(text);
    block_on(async {
        let mut scan = pipeline
            .scan(0..pipeline.len(), Arc::new(object.clone()), context)
            .await?;
        let schema = Arc::clone(scan.schema());
        let mut batches = Vec::new();
        while let Some(batch) = scan.next().await.transpose()? {
            batches.push(batch);
        }
        Table::new(schema, batches)
    })
}

/// The rows of a whole run, after a check that a scan returns the same.
fn run_and_scan(text: &str, object: &Bytes, context: &Context<'_>) -> Result<Table> {
    let pipeline = pipeline(text);
    let whole = pipeline.run(0..pipeline.len(), Sample::Bytes(object.clone()), context);
    let scanned = scan_rows(text, object, context);
    let whole = whole.map(|sample| match sample {
        Sample::Table(table) => table,
        other => panic!("found {other:?}"),
    });
    assert_eq!(scanned, whole, "{text}");
    whole
}

fn concat(table: &Table) -> RecordBatch {
    arrow_select::concat::concat_batches(table.schema(), table.batches()).unwrap()
}

#[test]
fn each_value_runs_the_pipeline_and_fails_separately() {
    let context = Context::new(b"photos.parquet");
    let text = "select | each(image: decode | resize(2, 2) | to_float)";
    let table = concat(&run_and_scan(text, &object(binary()), &context).unwrap());
    let names: Vec<_> = table
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["n", "image", "image_error"]);
    let schema = table.schema();
    let field = schema.field(1);
    assert_eq!(field.extension_type_name(), Some("arrow.fixed_shape_tensor"));
    assert_eq!(field.extension_type_metadata(), Some("{\"shape\":[3,2,2]}"));
    let values: &FixedSizeListArray = table.column(1).as_fixed_size_list();
    let nulls: Vec<_> = (0..5).map(|row| values.is_null(row)).collect();
    assert_eq!(nulls, [false, false, true, true, false]);
    assert_eq!(
        values.value(1).as_primitive::<Float32Type>().values(),
        &[1.0; 12][..]
    );
    assert_eq!(
        values.value(4).as_primitive::<Float32Type>().values(),
        &[0.0; 12][..]
    );
    let errors = table.column(2).as_string::<i32>();
    let failed: Vec<_> = (0..5).map(|row| errors.is_valid(row)).collect();
    assert_eq!(failed, [false, false, true, false, false]);
    assert!(errors.value(2).contains("expected JPEG"), "{}", errors.value(2));
}

/// The types that writers use for bytes: pyarrow's `large_binary`, the views of Polars and `DuckDB`, dictionaries, and values of
/// fixed size.
#[test]
fn every_binary_type_is_read() {
    let context = Context::new(b"photos.parquet");
    let text = "select | each(image: decode | resize(2, 2))";
    let expected = concat(&run_and_scan(text, &object(binary()), &context).unwrap());
    let cast = |to: &DataType| arrow_cast::cast(&binary(), to).unwrap();
    let dictionary = |value: DataType| DataType::Dictionary(Box::new(DataType::Int32), Box::new(value));
    let mut arrays = vec![
        cast(&DataType::LargeBinary),
        cast(&DataType::BinaryView),
        cast(&dictionary(DataType::Binary)),
        cast(&dictionary(DataType::LargeBinary)),
    ];
    let length = photos().iter().flatten().map(Vec::len).max().unwrap();
    // Bytes after the end of a photo are ignored.
    let padded = photos().into_iter().map(|photo| {
        photo.map(|mut photo| {
            photo.resize(length, 0);
            photo
        })
    });
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(padded, i32::try_from(length).unwrap());
    arrays.push(Arc::new(fixed.unwrap()));
    for array in arrays {
        let data_type = array.data_type().clone();
        let bytes = Field::new("bytes", data_type.clone(), true);
        for path in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            let paths: ArrayRef = Arc::new(StringArray::from(vec!["a.png"; 5]));
            let paths = arrow_cast::cast(&paths, &path).unwrap();
            let fields = Fields::from(vec![Field::new("path", path, true), bytes.clone()]);
            let structs = StructArray::new(fields, vec![paths, Arc::clone(&array)], None);
            let found = concat(&run_and_scan(text, &object(Arc::new(structs)), &context).unwrap());
            assert_eq!(found, expected, "a struct of {data_type}");
        }
        let found = concat(&run_and_scan(text, &object(array), &context).unwrap());
        assert_eq!(found, expected, "{data_type}");
    }
}

#[test]
fn structs_of_bytes_and_path_are_read_with_different_shapes() {
    let fields = Fields::from(vec![
        Field::new("bytes", DataType::Binary, true),
        Field::new("path", DataType::Utf8, true),
    ]);
    let paths: ArrayRef = Arc::new(StringArray::from(vec!["a.png"; 5]));
    let structs = StructArray::new(fields, vec![binary(), paths], None);
    let context = Context::new(b"photos.parquet");
    let table = run_and_scan(
        "select | each(image: decode)",
        &object(Arc::new(structs)),
        &context,
    )
    .unwrap();
    let table = concat(&table);
    let schema = table.schema();
    assert_eq!(
        schema.field(1).extension_type_name(),
        Some("arrow.variable_shape_tensor")
    );
    let values = table.column(1).as_struct();
    let shapes: Vec<_> = [0, 1, 4]
        .map(|row| values.column(1).as_fixed_size_list().value(row))
        .to_vec();
    let shapes: Vec<_> = shapes
        .iter()
        .map(|shape| {
            shape
                .as_primitive::<arrow_array::types::Int32Type>()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(shapes, [[2, 3, 3], [2, 4, 3], [2, 3, 3]]);
    let pixels = values.column(0).as_list::<i32>().value(1);
    assert_eq!(pixels.as_primitive::<UInt8Type>().values(), &[255; 24][..]);
    let bytes = run_and_scan(
        "select | each(image: decode | encode(png))",
        &object(binary()),
        &context,
    )
    .unwrap();
    assert_eq!(*bytes.schema().field(1).data_type(), DataType::Binary);
}

/// Six values of 3 MB exceed 16 MiB.
#[test]
fn large_values_are_returned_in_small_batches() {
    let photos: BinaryArray = (0..14).map(|grey| Some(png(500_000, grey))).collect();
    let columns: [(&str, ArrayRef); 2] = [("n", column(0..14)), ("image", Arc::new(photos))];
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 14);
    let mut context = Context::new(b"photos.parquet");
    let text = "select | each(image: decode)";
    for table in [
        scan_rows(text, &object, &context).unwrap(),
        run_and_scan(text, &object, &context).unwrap(),
    ] {
        let rows: Vec<_> = table.batches().iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [6, 6, 2]);
        assert_eq!(int64s(&table, 0), (0..14).collect::<Vec<_>>());
        let mut greys = 0..;
        for batch in table.batches() {
            let pixels = batch.column(1).as_struct().column(0).as_list::<i32>();
            for (row, grey) in (0..batch.num_rows()).zip(&mut greys) {
                let found = pixels.value(row);
                let found = found.as_primitive::<UInt8Type>().values();
                assert!(found.len() == 3_000_000 && found.iter().all(|value| *value == grey));
            }
        }
    }
    context.limits.tables.max_batch_bytes = 2_000_000;
    let table = concat(&scan_rows(text, &object, &context).unwrap());
    let errors = table.column(2).as_string::<i32>();
    assert!(
        (0..14).all(|row| errors.value(row).contains("at most 2000000 bytes")),
        "{}",
        errors.value(0)
    );
}

#[test]
fn random_steps_draw_by_row_number() {
    let context = Context::new(b"photos.parquet").with_randomness(7, 3);
    let photos: BinaryArray = (0..40).map(|_| Some(png(4, 100))).collect();
    let object = object(Arc::new(photos));
    let text = |condition: &str| {
        format!(
            "select(where=\"{condition}\", row_number=place) | each(image: decode | resize(4, 2) | color_jitter(brightness=0.9) | to_tensor)"
        )
    };
    let all = concat(&run_and_scan(&text("true"), &object, &context).unwrap());
    let some = concat(&run_and_scan(&text("n >= 13"), &object, &context).unwrap());
    assert_eq!(all.column(1).slice(13, 27).as_ref(), some.column(1).as_ref());
    let first = all.column(1).as_fixed_size_list();
    assert!((1..40).any(|row| first.value(row).as_ref() != first.value(0).as_ref()));
    // A separate object whose id ends in the row number has the same draws.
    let id = Context::new(b"photos.parquet\x0013").with_randomness(7, 3);
    let single = pipeline("decode | resize(4, 2) | color_jitter(brightness=0.9) | to_tensor");
    let Sample::Tensor(single) = single.run(0..4, Sample::Bytes(png(4, 100).into()), &id).unwrap() else {
        panic!("expected a tensor")
    };
    assert_eq!(
        first
            .value(13)
            .as_primitive::<UInt8Type>()
            .values()
            .inner()
            .as_slice(),
        single.data().as_slice()
    );

    let missing = "select | each(image: decode | resize(4, 2) | color_jitter(brightness=0.9) | to_tensor)";
    let error = run_and_scan(missing, &object, &context).unwrap_err();
    assert!(error.to_string().contains("row_number="), "{error}");
    let error = run_and_scan(&text("true"), &object, &Context::new(b"x")).unwrap_err();
    assert_eq!(
        (error.kind(), error.position()),
        (
            ErrorKind::InvalidPipeline,
            text("true").find("each").and_then(|at| u32::try_from(at).ok())
        )
    );
}

#[test]
fn each_accepts_a_pipeline_or_its_text() {
    let text = "select | each(image: decode | resize(2, 2))";
    let canonical = "select | each(column=image, pipeline=\"decode | resize(w=2, h=2)\")";
    assert_eq!(pipeline(text).to_string(), canonical);
    assert_eq!(pipeline(canonical), pipeline(text));
    let json = serde_json::to_string(&pipeline(text)).unwrap();
    assert_eq!(pipeline(&json), pipeline(text));
    assert_eq!(pipeline("select | each(\"my image\": decode)").len(), 2);
    for (text, fragment) in [
        ("select | each(image: decode | resize)", "resize"),
        ("select | each(image: decode | nonsense(1))", "nonsense"),
        ("select | each(image: decode |)", ")"),
        ("select | each(image: select)", "each"),
        ("select | each(image: decode | to_float | quantize(int8))", "each"),
        ("decode | each(image: decode)", "each"),
        (
            "select | each(a: decode | x(b: y(c: z(d: w(e: decode)))))",
            "decode)))))",
        ),
    ] {
        let error = Pipeline::parse(text).unwrap_err();
        let found = error.position().map(|position| position as usize);
        assert_eq!(found, text.find(fragment), "{text}: {error}");
    }
}

#[test]
fn each_requires_a_column_of_bytes() {
    let context = Context::new(b"photos.parquet");
    for (text, message) in [
        ("select | each(picture: decode)", "no column `picture`"),
        (
            "select | each(n: decode)",
            "`n` is of type Int64, expected binary",
        ),
        (
            "sql(\"select image, 1 as image_error from object\") | each(image: decode)",
            "a column `image_error` already",
        ),
    ] {
        let error = run_and_scan(text, &object(binary()), &context).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsuitable);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn a_sample_is_a_reproducible_fraction_of_the_rows() {
    let object = parquet_file(&numbers(20_000), 3_000);
    let context = Context::new(b"numbers.parquet");
    let rows = |text: &str, context: &Context<'_>| int64s(&run_and_scan(text, &object, context).unwrap(), 0);
    let tenth = rows("select | sample(0.1, 7)", &context);
    assert!((1800..2200).contains(&tenth.len()), "{}", tenth.len());
    assert!(tenth.is_sorted());
    assert_ne!(tenth, rows("select | sample(0.1, 8)", &context));
    assert_ne!(
        tenth,
        rows("select | sample(0.1, 7)", &Context::new(b"other.parquet"))
    );
    let third = rows("select | sample(0.3, 7)", &context);
    assert!(
        tenth.iter().all(|row| third.binary_search(row).is_ok()),
        "a larger fraction contains the smaller one"
    );
    assert_eq!(rows("select | sample(1, 7)", &context).len(), 20_000);
    assert_eq!(rows("select | sample(0, 7)", &context).len(), 0);
    for text in [
        "select | sample(1.5, 1)",
        "select | sample(0.5)",
        "select | sample(-0.1, 1)",
    ] {
        assert!(Pipeline::parse(text).is_err(), "{text}");
    }
}

/// A scan yields to other tasks on the thread after each photo.
#[test]
fn each_yields_between_values() {
    let photos = (0..20).map(|grey| Some(png(3, grey)));
    let object = object(Arc::new(photos.collect::<BinaryArray>()));
    let text = "select | each(image: decode | resize(8, 8))";
    let yields = block_on(async {
        let context = Context::new(b"object.parquet");
        let scan = pipeline(text).scan(0..2, Arc::new(object), &context).await;
        let (mut scan, mut yields) = (scan.unwrap(), 0);
        while let Some(rows) = poll_fn(|task| {
            let polled = scan.poll_next_unpin(task);
            yields += usize::from(polled.is_pending());
            polled
        })
        .await
        {
            rows.unwrap();
        }
        yields
    });
    assert!(yields >= 20, "{yields} times");
}
