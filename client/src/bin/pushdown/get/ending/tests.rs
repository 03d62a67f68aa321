use pushdown::{BytesKind, DType, Pipeline};

use super::*;

fn kind(pipeline: &str) -> (usize, Kind) {
    let pipeline = Pipeline::parse(pipeline).unwrap();
    (pipeline.len(), pipeline.kinds()[pipeline.len()].clone())
}

fn shown(file: &str, pipeline: &str, accept: Option<Accept>) -> String {
    let (stage, kind) = kind(pipeline);
    let shown = match Named::of(Path::new(file)).value(stage, &kind, accept) {
        Ok(Written { form, note }) => {
            let form = form.map_or("default", Accept::name);
            note.map_or_else(|| form.to_owned(), |note| format!("{form}; note: {note}"))
        }
        Err(Usage(error)) => error,
    };
    format!("{pipeline} -> {shown}")
}

#[test]
fn arrays_are_written_as_the_ending_says_or_not_at_all() {
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
fn encoded_images_have_the_ending_of_their_format() {
    for (format, endings) in [
        ("jpeg", &["jpg", "jpeg", "jpe", "JPG"][..]),
        ("png", &["png"]),
        ("webp", &["webp"]),
    ] {
        let pipeline = format!("decode | encode({format})");
        let (stage, kind) = kind(&pipeline);
        for ending in endings {
            let written = Named {
                file: Path::new(""),
                ending: Ending::of(Path::new(&format!("x.{ending}"))),
            }
            .value(stage, &kind, None);
            assert_eq!(
                written.unwrap(),
                Written {
                    form: None,
                    note: None
                },
                "{format} {ending}"
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

/// Every kind has an ending that it is written under, and is refused under that of each other form.
#[test]
fn each_form_has_one_meaning() {
    let tensor = |dtype: DType| kind(&format!("decode | resize(8, 8) | to_float | cast({dtype})")).1;
    let mut kinds: Vec<Kind> = [DType::F16, DType::Bf16].map(tensor).into();
    kinds.push(kind("decode").1);
    kinds.push(kind("decode | encode(png)").1);
    for kind in &kinds {
        for ending in [
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
            let file = format!("x.{ending}");
            let taken = Named::of(Path::new(&file)).value(1, kind, None).is_ok();
            let expected = match kind {
                Kind::Bytes(_) => ending == "png",
                Kind::Tensor(tensor) if tensor.dtype == DType::Bf16 => {
                    ["safetensors", "arrow"].contains(&ending)
                }
                _ => ["npy", "safetensors", "arrow"].contains(&ending),
            };
            assert_eq!(taken, expected, "{kind} as {file}");
        }
    }
}

#[test]
fn the_object_itself_is_written_under_any_name() {
    let object = Kind::Bytes(BytesKind::default());
    for file in ["x.jpg", "x.npy", "x", "x.csv"] {
        let Written { form, note } = Named::of(Path::new(file)).value(0, &object, None).unwrap();
        let expected = format!("{file} is the object as it is stored (stage 0)");
        assert_eq!((form, note), (None, Some(expected)));
    }
}

#[test]
fn rows_are_written_as_the_ending_says_or_not_at_all() {
    let shown = |file: &str, format: Option<Format>| {
        let shown = match Named::of(Path::new(file)).rows(format) {
            Ok(Written { form, note }) => {
                let form = form.map_or("default", Format::name);
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
            shown("x.txt", Some(Format::Csv)),
            shown("x.csv", Some(Format::Csv)),
            shown("x.csv", Some(Format::Parquet)),
            shown("x.jpg", Some(Format::Csv)),
        ]
        .join("\n")
    );
}
