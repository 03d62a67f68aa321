//! Writes a part of each format for each kind of values to a folder, to open them with other readers:
//! `cargo run --locked -p pushdown-part --example write_parts -- FOLDER`.

use std::{env, error::Error, fs, path::PathBuf};

use arrow_buffer::Buffer;
use bytes::Bytes;
use pushdown_core::{BytesKind, DType, Image, Kind, Layout, Sample, Tensor};
use pushdown_part::{Label, LabelType, PartFormat, PartRow, PartSpec, PartWriter};

/// Names that readers of tars might take for another thing, and two with one base.
const NAMES: [&str; 12] = [
    "photos/cat.jpg",
    "photos/cat.png",
    "a.b/c.d.tar.gz",
    "/absolute",
    "../up.jpg",
    "a//b/./c.jpg",
    "folder/",
    "__meta__/a.jpg",
    ".hidden",
    "100%2E \u{e4}\n\u{85}.jpg",
    "__x__.jpg",
    "long",
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("expected a folder")?);
    let mut names: Vec<String> = NAMES.map(str::to_owned).to_vec();
    names.push(format!("x.y{}/a.jpg", "\u{e4}".repeat(500)));
    let classes = LabelType::Class {
        names: vec!["cat".to_owned(), "dog".to_owned(), "owl".to_owned()],
    };
    let label = |label_type: &LabelType, row: i64| match label_type {
        LabelType::Class { .. } => Label::Int(row % 3),
        LabelType::Int => Label::Int(-row),
        LabelType::Float => Label::Float(f64::from(i32::try_from(row).unwrap_or_default()) / 8.0),
        LabelType::Text => Label::Text(format!("text {row}")),
    };
    for (name, label_type, value) in values(&classes) {
        let kind = match Kind::from(&value(0)?) {
            Kind::Bytes(bytes) => Kind::Bytes(BytesKind {
                media: bytes.media,
                ..BytesKind::default()
            }),
            other => other,
        };
        for format in PartFormat::ALL {
            let spec = PartSpec {
                format,
                kind: kind.clone(),
                label: Some(label_type.clone()),
                columns: vec!["xml".to_owned()],
            };
            let mut writer = PartWriter::new(spec, names.iter().map(String::as_str))?;
            for (index, row) in (0..names.len()).zip(0..) {
                let label = (index != 5).then(|| label(&label_type, row));
                let column = (index != 6).then(|| Bytes::from(format!("<row>{row}</row>")));
                writer.push(&PartRow {
                    index,
                    label: label.as_ref(),
                    columns: vec![column],
                    value: &value(u8::try_from(row)?)?,
                })?;
            }
            let file = folder.join(format!("{name}.{}", format.extension()));
            fs::write(file, writer.finish(&[])?)?;
        }
    }
    fs::write(folder.join("names.json"), serde_json::to_vec(&names)?)?;
    Ok(())
}

type Value = Box<dyn Fn(u8) -> pushdown_core::Result<Sample>>;

/// A name, a type of labels, and the value of each row.
fn values(classes: &LabelType) -> Vec<(String, LabelType, Value)> {
    let mut values: Vec<(String, LabelType, Value)> = vec![
        (
            "image".to_owned(),
            classes.clone(),
            Box::new(|row| Ok(Sample::Bytes(bitmap(row)))),
        ),
        (
            "bytes".to_owned(),
            LabelType::Text,
            Box::new(|row| Ok(Sample::Bytes(vec![row; usize::from(row)].into()))),
        ),
        (
            "pixels".to_owned(),
            LabelType::Int,
            Box::new(|row| Image::new(3, 2, (row..row + 18).collect()).map(Sample::Image)),
        ),
    ];
    let quantized = DType::ALL
        .map(|dtype| (dtype, false))
        .into_iter()
        .chain([(DType::I8, true)]);
    for (dtype, is_quantized) in quantized {
        for shape in [&[][..], &[2, 3, 4]] {
            let name = format!(
                "{}{dtype}-{}",
                if is_quantized { "quantized-" } else { "" },
                shape.len()
            );
            let value: Value = Box::new(move |row| {
                let bytes = shape.iter().product::<usize>() * dtype.size();
                // No element is a NaN.
                let data: Vec<u8> = (0..bytes)
                    .zip((0..60_u8).cycle())
                    .map(|(_, byte)| byte + row)
                    .collect();
                let tensor = Tensor::new(dtype, Layout::Flat, shape.to_vec(), Buffer::from_vec(data))?;
                Ok(Sample::Tensor(tensor.with_scale(is_quantized.then_some(0.5))))
            });
            values.push((name, LabelType::Float, value));
        }
    }
    values
}

/// A bitmap of Windows with 1 x 1 pixels of 24 bits, red of the given value.
fn bitmap(red: u8) -> Bytes {
    let mut file = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
    file.resize(54, 0);
    file.extend([0, 0, red, 0]);
    file.into()
}
