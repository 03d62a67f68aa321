use pushdown::{BytesKind, DType, Pipeline};

use super::*;

fn kind(pipeline: &str) -> (usize, Kind) {
    let pipeline = Pipeline::parse(pipeline).unwrap();
    (pipeline.len(), pipeline.kinds()[pipeline.len()].clone())
}

fn shown(file: &str, pipeline: &str, accept: Option<Accept>) -> String {
    let (stage, kind) = kind(pipeline);
    let shown = match OutputFile::new(Path::new(file)).value(stage, &kind, accept) {
        Ok(OutputForm { form, note }) => {
            let form = form.map_or("default", Accept::name);
            note.map_or_else(|| form.to_owned(), |note| format!("{form}; note: {note}"))
        }
        Err(Usage(error)) => error,
    };
    format!("{pipeline} -> {shown}")
}

#[test]
fn arrays_have_the_form_of_the_extension_or_are_refused() {
    let pixels = "decode | resize(224, 224)";
    let floats = "decode | resize(224, 224) | to_float";
    let halves = "decode | resize(8, 8) | to_float | cast(bf16)";
    insta::assert_snapshot!(
        [
            shown("x.npy", pixels, None),
            shown("x.NPY", pixels, None),
            shown("x.safetensors", pixels, None),
            shown("x.arrow", floats, None),
            shown("x.raw", floats, None),
            shown("x.jpg", pixels, None),
            shown("some/where.v2/x.JPEG", "decode", None),
            shown("x.png", pixels, None),
            shown("x.webp", pixels, None),
            shown("x.gif", pixels, None),
            shown("x.avif", pixels, None),
            shown("x.jpg", floats, None),
            shown("x.csv", floats, None),
            shown("x.parquet", floats, None),
            shown("x.jsonl", floats, None),
            shown("x.npy", halves, None),
            shown("x.safetensors", halves, None),
            shown("x", pixels, None),
            shown("x.dat", halves, None),
            shown("x.tar.gz", pixels, None),
            shown(".npy", pixels, None),
            shown("x.dat", pixels, Some(Accept::Raw)),
            shown("x.npy", pixels, Some(Accept::Npy)),
            shown("x.npy", pixels, Some(Accept::Safetensors)),
            shown("x.jpg", pixels, Some(Accept::Npy)),
        ]
        .join("\n")
    );
}

#[test]
fn encoded_images_have_the_extension_of_their_format() {
    for (format, extensions) in [
        ("jpeg", &["jpg", "jpeg", "jpe", "JPG"][..]),
        ("png", &["png"]),
        ("webp", &["webp"]),
    ] {
        let pipeline = format!("decode | encode({format})");
        let (stage, kind) = kind(&pipeline);
        for extension in extensions {
            let written = OutputFile {
                path: Path::new(""),
                extension: Extension::from_path(Path::new(&format!("x.{extension}"))),
            }
            .value(stage, &kind, None);
            assert_eq!(
                written.unwrap(),
                OutputForm {
                    form: None,
                    note: None
                },
                "{format} {extension}"
            );
        }
    }
    insta::assert_snapshot!(
        [
            shown("x.jpg", "decode | encode(png)", None),
            shown("x.png", "decode | encode(jpeg, quality=80)", None),
            shown("x.gif", "decode | encode(webp)", None),
            shown("x.npy", "decode | encode(webp)", None),
            shown("x.arrow", "decode | encode(jpeg)", None),
            shown("x.csv", "decode | encode(jpeg)", None),
            shown("x.raw", "decode | encode(jpeg)", None),
            shown("x", "decode | encode(jpeg)", None),
            shown("x.bin", "decode | encode(png)", None),
        ]
        .join("\n")
    );
}

/// Every kind is written under the extensions of its own forms, and refused under all others.
#[test]
fn each_extension_has_one_form() {
    let tensor = |dtype: DType| kind(&format!("decode | resize(8, 8) | to_float | cast({dtype})")).1;
    let mut kinds: Vec<Kind> = [DType::F16, DType::Bf16].map(tensor).into();
    kinds.push(kind("decode").1);
    kinds.push(kind("decode | encode(png)").1);
    for kind in &kinds {
        for extension in [
            "npy",
            "safetensors",
            "arrow",
            "jpg",
            "png",
            "webp",
            "csv",
            "parquet",
            "ndjson",
        ] {
            let file = format!("x.{extension}");
            let taken = OutputFile::new(Path::new(&file)).value(1, kind, None).is_ok();
            let expected = match kind {
                Kind::Bytes(_) => extension == "png",
                Kind::Tensor(tensor) if tensor.dtype == DType::Bf16 => {
                    ["safetensors", "arrow"].contains(&extension)
                }
                _ => ["npy", "safetensors", "arrow"].contains(&extension),
            };
            assert_eq!(taken, expected, "{kind} as {file}");
        }
    }
}

#[test]
fn the_object_itself_is_written_under_any_name() {
    let object = Kind::Bytes(BytesKind::default());
    for file in ["x.jpg", "x.npy", "x", "x.csv"] {
        let OutputForm { form, note } = OutputFile::new(Path::new(file)).value(0, &object, None).unwrap();
        let expected = format!("{file} is the object as stored (stage 0)");
        assert_eq!((form, note), (None, Some(expected)));
    }
}

#[test]
fn rows_have_the_form_of_the_extension_or_are_refused() {
    let shown = |file: &str, format: Option<TableFormat>| {
        let shown = match OutputFile::new(Path::new(file)).rows(format) {
            Ok(OutputForm { form, note }) => {
                let form = form.map_or("default", TableFormat::name);
                note.map_or_else(|| form.to_owned(), |note| format!("{form}; note: {note}"))
            }
            Err(Usage(error)) => error,
        };
        format!("{file} -> {shown}")
    };
    insta::assert_snapshot!(
        [
            shown("x.arrow", None),
            shown("x.arrows", None),
            shown("x.PARQUET", None),
            shown("x.csv", None),
            shown("x.jsonl", None),
            shown("x.ndjson", None),
            shown("x.npy", None),
            shown("x.safetensors", None),
            shown("x.jpg", None),
            shown("x.raw", None),
            shown("x", None),
            shown("x.csv.gz", None),
            shown("x.txt", Some(TableFormat::Csv)),
            shown("x.csv", Some(TableFormat::Csv)),
            shown("x.csv", Some(TableFormat::Parquet)),
            shown("x.jpg", Some(TableFormat::Csv)),
        ]
        .join("\n")
    );
}
