//! Equal rows give equal bytes, in each release: a change of them has to be noticed, as parts that exist differ from new ones then.

use bytes::Bytes;
use pushdown_core::{DType, Kind, MediaType, Sample};
use pushdown_part::{Label, LabelType, PartFormat, PartSpec};
use sha2::{Digest as _, Sha256};

use crate::samples::{GIF, bytes, classes, encoded, fixed, image, images, part, spec, tensor, tensors};

/// A part of each format for each kind of values.
fn parts() -> Vec<(String, Vec<u8>)> {
    let kinds = [
        ("image", encoded(MediaType::Gif), vec![bytes(GIF), bytes(b"GIF")]),
        ("bytes", Kind::object(), vec![bytes(GIF), bytes(b"text")]),
        (
            "pixels",
            images(Some(2), Some(3)),
            vec![image(2, 3, 1), image(2, 3, 2)],
        ),
        (
            "f16",
            tensors(DType::F16, &fixed(&[3, 2]), false),
            vec![
                tensor(DType::F16, &[3, 2], 1, None),
                tensor(DType::F16, &[3, 2], 2, None),
            ],
        ),
        (
            "bf16",
            tensors(DType::Bf16, &fixed(&[4]), false),
            vec![
                tensor(DType::Bf16, &[4], 1, None),
                tensor(DType::Bf16, &[4], 2, None),
            ],
        ),
        (
            "quantized",
            tensors(DType::I8, &fixed(&[4]), true),
            vec![
                tensor(DType::I8, &[4], 1, Some(0.5)),
                tensor(DType::I8, &[4], 2, Some(0.1)),
            ],
        ),
    ];
    let mut parts = Vec::new();
    for format in PartFormat::ALL {
        for (name, kind, values) in &kinds {
            let spec = PartSpec {
                label: Some(if *name == "image" {
                    classes()
                } else {
                    LabelType::Float
                }),
                columns: vec!["meta.xml".to_owned()],
                ..spec(format, kind.clone())
            };
            parts.push((format!("{name}.{}", format.extension()), written(&spec, values)));
        }
    }
    parts
}

fn written(spec: &PartSpec, values: &[Sample]) -> Vec<u8> {
    let samples: Vec<_> = ["photos/ä.1.jpg", "photos/b.png"]
        .into_iter()
        .zip(values)
        .enumerate()
        .map(|(index, (name, value))| {
            let label = (index == 0).then_some(Label::Int(1));
            let column = (index == 1).then_some(Bytes::from_static(b"<a/>"));
            (name, label, vec![column], value.clone())
        })
        .collect();
    part(spec, &samples)
}

#[test]
fn equal_rows_give_equal_bytes() {
    for ((name, first), (_, second)) in parts().into_iter().zip(parts()) {
        assert!(first == second, "{name}");
    }
}

#[test]
fn bytes_are_those_of_earlier_releases() {
    let digests: Vec<String> = parts()
        .into_iter()
        .map(|(name, part)| format!("{name} {}", hex::encode(Sha256::digest(part))))
        .collect();
    assert_eq!(digests, GOLDEN, "{digests:#?}");
}

/// SHA-256 of each part.
const GOLDEN: [&str; 12] = [
    "image.tar be773d15d5f5d541cb980c052bd30ae3f1bbe5a6f617aae8f498fa3cb8f86786",
    "bytes.tar 01be0ea11c4ec3559a19778f8714ad8d851c8658ecaf5b8aafc247c1a32ea0ab",
    "pixels.tar b337cb1a033cf05f3202f560e3702603e83ab089aef21d0eef624b0c12181cbf",
    "f16.tar 3bd1e719aa3d3678c7a90e29f0113487822200a5d65b16882ab16f6d7eece400",
    "bf16.tar b9fb187e89074dbb7fe7a969e4f090eb7c5a2eec28123b34d7fd969884ae4568",
    "quantized.tar b978af2b1d71f26bae61cf9616a4b01b7be494f59a9ee4a6bfda987f8e98efb1",
    "image.parquet a050ba096ec73e970ed6e03145350060199b2057b601ba57cab2e5b49838148c",
    "bytes.parquet 974eeead7f36a6b44c0b09cd53e0903630e7d3b4a1ffcbafcdd4a860df5b4cb0",
    "pixels.parquet ff322c89b68900d3702e9bfdcaf99e5bbb38f66658b951f854d308f72bdf14df",
    "f16.parquet 9559b6f442612db1886c6d3f22358d40da31b1ab7051a36a8f697abcabb38d76",
    "bf16.parquet 86f56ae8e397339f92f76cfbb27cbdfb2afee90daf74955d3152f2a4633a4bb3",
    "quantized.parquet 136394770c7e513041f913bb33223caf1728e01b9661f57b429973000be592f0",
];
