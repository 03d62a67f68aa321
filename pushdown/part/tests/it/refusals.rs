//! What a part cannot hold.

use bytes::Bytes;
use pushdown_core::{CropPosition, CroppedJpeg, DType, ErrorKind, Kind, MediaType, Sample, TableKind};
use pushdown_part::{Label, LabelType, PartFormat, PartRow, PartSpec, PartWriter};

use crate::samples::{bytes, classes, encoded, fixed, image, images, row, spec, tensor, tensors};

fn refusal(spec: &PartSpec) -> String {
    let error = spec.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidWire);
    assert_eq!(PartWriter::new(spec.clone(), ["a"]).unwrap_err(), error);
    error.to_string()
}

#[test]
fn kinds_that_the_format_cannot_hold_are_refused() {
    use PartFormat::{Parquet, Wds};
    let table = || Kind::Table(TableKind::default());
    for (format, kind, expected) in [
        (
            Wds,
            table(),
            "cannot write tables to wds: expected a pipeline that ends with bytes",
        ),
        (Parquet, table(), "cannot write tables to parquet"),
        (
            Parquet,
            images(Some(2), None),
            "cannot write Image(2x?x3 u8) to parquet: expected arrays of one shape; add encode(..) to the pipeline, or steps that \
             fix the size",
        ),
        (
            Parquet,
            tensors(DType::F32, &[None], false),
            "expected arrays of one shape",
        ),
        (
            Parquet,
            tensors(DType::F32, &[Some(0)], false),
            "expected 1 to 16,777,216 elements",
        ),
        (
            Parquet,
            tensors(DType::U8, &[Some(1 << 28)], false),
            "expected 1 to",
        ),
        (
            Parquet,
            tensors(DType::U8, &[Some(usize::MAX); 2], false),
            "expected 1 to",
        ),
        (
            Parquet,
            tensors(DType::U8, &[Some(1); 33], false),
            "at most 32 axes, found 33",
        ),
        (
            Wds,
            tensors(DType::U8, &[None; 33], false),
            "at most 32 axes, found 33",
        ),
    ] {
        let found = refusal(&spec(format, kind));
        assert!(found.contains(expected), "expected {expected}, found {found}");
    }
    for kind in [images(None, None), tensors(DType::F32, &[None; 32], false)] {
        spec(Wds, kind).check().unwrap();
    }
    spec(Parquet, tensors(DType::U8, &[Some(1); 32], true))
        .check()
        .unwrap();
}

#[test]
fn columns_with_the_name_of_another_are_refused() {
    use PartFormat::{Parquet, Wds};
    let array = || tensors(DType::I8, &fixed(&[2]), false);
    let quantized = || tensors(DType::I8, &fixed(&[2]), true);
    let png = || encoded(MediaType::Png);
    for (format, kind, label, columns) in [
        (Wds, Kind::object(), None, &["txt", "TXT"][..]),
        (Wds, Kind::object(), None, &["bin"]),
        (Wds, png(), None, &["PNG"]),
        (Wds, array(), None, &["npy"]),
        (Wds, quantized(), None, &["safetensors"]),
        (Wds, Kind::object(), Some(classes()), &["cls"]),
        (Wds, Kind::object(), Some(LabelType::Text), &["txt"]),
        (Wds, Kind::object(), Some(LabelType::Float), &["json"]),
        (Parquet, Kind::object(), None, &["Key"]),
        (Parquet, Kind::object(), None, &["value"]),
        (Parquet, png(), None, &["image"]),
        (Parquet, quantized(), None, &["scale"]),
        (Parquet, Kind::object(), Some(LabelType::Int), &["label"]),
        (Parquet, Kind::object(), None, &["a", "b", "a"]),
    ] {
        let spec = PartSpec {
            label,
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            ..spec(format, kind)
        };
        let found = refusal(&spec);
        assert!(found.starts_with("invalid columns: "), "{columns:?}: {found}");
    }
    for (format, kind, columns) in [
        (Wds, png(), &["jpg", "cls", "txt", "bin", "key", "label"][..]),
        (Parquet, array(), &["scale", "image", "label", "a/b", "npy"]),
    ] {
        let spec = PartSpec {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            ..spec(format, kind)
        };
        spec.check().unwrap();
    }
}

#[test]
fn columns_that_are_no_extension_are_refused() {
    for name in ["", "a b", "a/b", "__key__", "ä", &"a".repeat(65)] {
        let spec = PartSpec {
            columns: vec![name.to_owned()],
            ..spec(PartFormat::Wds, Kind::object())
        };
        assert!(refusal(&spec).contains(&format!("found {name:?}")), "{name}");
    }
}

#[test]
fn wrong_types_of_labels_are_refused() {
    let spec = PartSpec {
        label: Some(LabelType::Class { names: Vec::new() }),
        ..spec(PartFormat::Wds, Kind::object())
    };
    assert!(refusal(&spec).contains("at least one class"));
}

#[test]
fn names_are_given_once() {
    for (names, expected) in [
        (&["a", "b", "a"][..], "found \"a\" twice"),
        (&["a", ""], "found an empty one"),
    ] {
        for format in PartFormat::ALL {
            let error = PartWriter::new(spec(format, Kind::object()), names.iter().copied()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

/// After a row that is refused, the part goes on without it.
#[test]
fn rows_that_do_not_fit_are_refused_without_a_trace() {
    let crop = CropPosition {
        crop_x: 0,
        crop_y: 0,
        image_width: 8,
        image_height: 8,
    };
    let crop = Sample::CroppedJpeg(CroppedJpeg::new(Bytes::new(), crop).unwrap());
    let good = || tensor(DType::F32, &[2, 2], 1, None);
    let array = tensors(DType::F32, &fixed(&[2, 2]), false);
    let text = Label::Text("1".to_owned());
    for format in PartFormat::ALL {
        let spec = PartSpec {
            label: Some(LabelType::Int),
            columns: vec!["a".to_owned()],
            ..spec(format, array.clone())
        };
        let written = |bad: &[(usize, Option<&Label>, usize, Sample, &str)]| {
            let mut writer = PartWriter::new(spec.clone(), ["a", "b\n", "c"]).unwrap();
            let value = good();
            let row = |index| PartRow {
                columns: vec![None],
                ..row(index, &value)
            };
            writer.push(&row(0)).unwrap();
            for (index, label, columns, value, expected) in bad {
                let columns = vec![None; *columns];
                let error = writer
                    .push(&PartRow {
                        index: *index,
                        label: *label,
                        columns,
                        value,
                    })
                    .unwrap_err();
                assert!(
                    error.to_string().contains(expected),
                    "expected {expected}, found {error}"
                );
            }
            writer.push(&row(2)).unwrap();
            writer.finish(&[]).unwrap()
        };
        let bad = [
            (
                0,
                None,
                1,
                good(),
                "invalid row of sample \"a\": expected a position from 1 on, found 0",
            ),
            (
                3,
                None,
                1,
                good(),
                "expected the position of one of 3 samples, found 3",
            ),
            (
                1,
                None,
                0,
                good(),
                "sample \"b\\n\": expected 1 further columns, found 0",
            ),
            (
                1,
                Some(&text),
                1,
                good(),
                "label of sample \"b\\n\": expected a whole number, found the text \"1\"",
            ),
            (
                1,
                None,
                1,
                bytes(b""),
                "sample \"b\\n\": expected Tensor(2x2 f32, flat), found Bytes",
            ),
            (1, None, 1, image(2, 2, 0), "found Image(2x2x3 u8)"),
            (
                1,
                None,
                1,
                tensor(DType::F32, &[2, 3], 1, None),
                "found Tensor(2x3 f32, flat)",
            ),
            (
                1,
                None,
                1,
                tensor(DType::F32, &[2], 1, None),
                "found Tensor(2 f32, flat)",
            ),
            (
                1,
                None,
                1,
                tensor(DType::I32, &[2, 2], 1, None),
                "found Tensor(2x2 i32, flat)",
            ),
            (
                1,
                None,
                1,
                tensor(DType::F32, &[2, 2], 1, Some(1.0)),
                "found Tensor(2x2 f32, flat)",
            ),
            (1, None, 1, crop.clone(), "found a cropped JPEG"),
        ];
        assert_eq!(written(&bad), written(&[]));
    }
}

#[test]
fn labels_need_a_type() {
    let value = bytes(b"");
    for format in PartFormat::ALL {
        let mut writer = PartWriter::new(spec(format, Kind::object()), ["a"]).unwrap();
        let labelled = PartRow {
            label: Some(&Label::Int(1)),
            ..row(0, &value)
        };
        let error = writer.push(&labelled).unwrap_err();
        assert!(
            error.to_string().contains("label of sample \"a\": expected none"),
            "{error}"
        );
    }
}

#[test]
fn a_value_with_the_extension_of_a_column_is_refused() {
    let spec = PartSpec {
        columns: vec!["md".to_owned()],
        ..spec(PartFormat::Wds, Kind::object())
    };
    let mut writer = PartWriter::new(spec, ["a.MD", "a.rs"]).unwrap();
    let value = bytes(b"x");
    let at = |index| PartRow {
        columns: vec![Some(Bytes::new())],
        ..row(index, &value)
    };
    let error = writer.push(&at(0)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot write sample \"a.MD\": expected a value whose extension"),
        "{error}"
    );
    writer.push(&at(1)).unwrap();
}
