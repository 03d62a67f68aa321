//! Tars, read back by the reader of shards.

use std::collections::HashSet;

use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*};
use pushdown_core::{DType, Kind, Limits, MediaType, Sample};
use pushdown_part::{Label, LabelType, PartFormat, PartRow, PartSpec, PartWriter};
use pushdown_shard::{EntryCursor, ShardLimits, split_name};

use crate::samples::{GIF, bytes, classes, encoded, fixed, image, images, part, spec, tensor, tensors};

/// The members of a tar.
fn members(tar: &[u8]) -> Vec<(String, Bytes)> {
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    cursor.push(Bytes::copy_from_slice(tar));
    let mut members = Vec::new();
    while let Some(member) = cursor.next_member().unwrap() {
        members.push((member.name, cursor.content().unwrap()));
    }
    assert!(cursor.left_out().is_empty());
    cursor.finish(tar.len() as u64).unwrap();
    members
}

/// Extensions and contents of each sample of a tar, after its base.
type Group = (String, Vec<(String, Bytes)>);

fn groups(tar: &[u8]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (name, content) in members(tar) {
        let (base, extension) = split_name(&name).unwrap();
        let member = (extension.into_owned(), content);
        match groups.last_mut() {
            Some((last, members)) if last == base => members.push(member),
            _ => groups.push((base.to_owned(), vec![member])),
        }
    }
    groups
}

fn names(tar: &[u8]) -> Vec<String> {
    members(tar).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn members_of_a_sample_are_its_value_its_label_and_its_columns() {
    let spec = PartSpec {
        label: Some(classes()),
        columns: vec!["json".to_owned(), "seg.PNG".to_owned()],
        ..spec(PartFormat::Wds, Kind::object())
    };
    let json = Some(Bytes::from_static(b"{}"));
    let png = Some(Bytes::new());
    let tar = part(
        &spec,
        &[
            (
                "x/a.JPG",
                Some(Label::Int(1)),
                vec![json.clone(), png],
                bytes(GIF),
            ),
            ("x/b.MD", None, vec![None, None], bytes(b"# B")),
            ("x/c", Some(Label::Int(0)), vec![json, None], bytes(b"")),
        ],
    );
    let expected = [
        ("x/a.gif", GIF),
        ("x/a.cls", b"1"),
        ("x/a.json", b"{}"),
        ("x/a.seg.png", b""),
        ("x/b.md", b"# B"),
        ("x/c.bin", b""),
        ("x/c.cls", b"0"),
        ("x/c.json", b"{}"),
    ];
    let expected = expected.map(|(name, content)| (name.to_owned(), Bytes::from_static(content)));
    assert_eq!(members(&tar), expected);
}

#[test]
fn labels_have_the_extension_of_their_decoder() {
    for (label_type, label, extension, content) in [
        (classes(), Label::Int(1), "cls", "1"),
        (
            LabelType::Int,
            Label::Int(i64::MIN),
            "cls",
            "-9223372036854775808",
        ),
        (LabelType::Float, Label::Float(0.1), "json", "0.1"),
        (LabelType::Float, Label::Float(-1e300), "json", "-1e300"),
        (LabelType::Float, Label::Int(3), "json", "3.0"),
        (LabelType::Text, Label::Text("ä\n".to_owned()), "txt", "ä\n"),
    ] {
        let spec = PartSpec {
            label: Some(label_type),
            ..spec(PartFormat::Wds, Kind::object())
        };
        let tar = part(&spec, &[("a", Some(label), Vec::new(), bytes(b""))]);
        let member = (format!("a.{extension}"), Bytes::from_static(content.as_bytes()));
        assert_eq!(members(&tar)[1], member);
    }
}

#[test]
fn arrays_return_from_their_files() {
    let mut cases = vec![
        (images(None, None), image(2, 3, 5), "npy"),
        (
            tensors(DType::I8, &[None], true),
            tensor(DType::I8, &[4], 1, Some(0.5)),
            "safetensors",
        ),
    ];
    for dtype in DType::ALL {
        let extension = if dtype == DType::Bf16 {
            "safetensors"
        } else {
            "npy"
        };
        for shape in [&[][..], &[0], &[2, 3]] {
            cases.push((
                tensors(dtype, &fixed(shape), false),
                tensor(dtype, shape, 3, None),
                extension,
            ));
        }
    }
    for (kind, value, extension) in cases {
        let tar = part(
            &spec(PartFormat::Wds, kind),
            &[("a.b.jpg", None, Vec::new(), value.clone())],
        );
        let [(name, file)] = &members(&tar)[..] else {
            panic!("expected one member");
        };
        assert_eq!(*name, format!("a%2Eb.{extension}"));
        let content_type = match extension {
            "npy" => "application/x-npy",
            _ => "application/vnd.safetensors",
        };
        let found = pushdown_wire::decode(content_type, |_| None, file.clone(), &Limits::default()).unwrap();
        match (found, value) {
            (Sample::Tensor(found), Sample::Image(image)) => assert_eq!(found.data(), image.data()),
            (found, value) => assert_eq!(found, value),
        }
    }
}

#[test]
fn encoded_images_have_the_extension_of_their_format() {
    for (media, extension) in [
        (MediaType::Jpeg, "jpg"),
        (MediaType::Png, "png"),
        (MediaType::Webp, "webp"),
        (MediaType::Gif, "gif"),
        (MediaType::Bmp, "bmp"),
        (MediaType::Tiff, "tiff"),
    ] {
        let tar = part(
            &spec(PartFormat::Wds, encoded(media)),
            &[("a.txt", None, Vec::new(), bytes(b"x"))],
        );
        assert_eq!(names(&tar), [format!("a.{extension}")]);
    }
}

#[test]
fn a_base_depends_on_all_names_of_the_part() {
    let spec = spec(PartFormat::Wds, Kind::object());
    let mut writer = PartWriter::new(spec, ["a.jpg", "a.png"]).unwrap();
    writer.push(&crate::samples::row(1, &bytes(b"x"))).unwrap();
    assert_eq!(names(&writer.finish(&[]).unwrap()), ["a%2Epng.png"]);
}

#[test]
fn bytes_are_those_of_the_tar_at_any_time() {
    let spec = spec(PartFormat::Wds, Kind::object());
    for rows in 0..3 {
        let mut writer = PartWriter::new(spec.clone(), ["a", "b", "c"]).unwrap();
        let values: Vec<Sample> = (0..rows).map(|row| bytes(&vec![0; row * 600])).collect();
        for (index, value) in values.iter().enumerate() {
            writer.push(&crate::samples::row(index, value)).unwrap();
        }
        let bytes = writer.bytes();
        assert_eq!(writer.finish(&[]).unwrap().len() as u64, bytes);
    }
}

/// Names with all that is escaped, and such that differ only a little.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[ab./%_]{1,6}",
        4 => "[ab]{1,2}(\\.(jpg|png|b)){0,3}",
        2 => "\\PC{1,12}",
        1 => any::<String>().prop_filter("not empty", |name| !name.is_empty()),
        1 => "[a./\n]{300,1100}",
    ]
}

proptest! {
    /// Each sample has one base, and its members follow each other, whatever its name.
    #[test]
    fn samples_return_in_their_order(
        samples in vec((name(), option::of(any::<i64>()), vec(option::of(vec(any::<u8>(), 0..20)), 2), any::<bool>()), 0..8)
    ) {
        let mut known = HashSet::new();
        let samples: Vec<_> = samples.into_iter().filter(|(name, ..)| known.insert(name.clone())).collect();
        let spec = PartSpec {
            label: Some(LabelType::Int),
            columns: vec!["one".to_owned(), "two.x".to_owned()],
            ..spec(PartFormat::Wds, Kind::object())
        };
        let mut writer = PartWriter::new(spec, samples.iter().map(|(name, ..)| name.as_str())).unwrap();
        let mut expected = Vec::new();
        for (index, (name, label, columns, _)) in samples.iter().enumerate().filter(|(_, (.., is_good))| *is_good) {
            let columns: Vec<Option<Bytes>> = columns.iter().cloned().map(|content| content.map(Bytes::from)).collect();
            let value = Bytes::from(name.clone());
            let label = label.map(Label::Int);
            let row = PartRow { index, label: label.as_ref(), columns: columns.clone(), value: &Sample::Bytes(value.clone()) };
            writer.push(&row).unwrap();
            let mut contents = vec![value];
            contents.extend(label.map(|label| match label {
                Label::Int(number) => number.to_string().into(),
                _ => Bytes::new(),
            }));
            contents.extend(columns.into_iter().flatten());
            expected.push(contents);
        }
        let groups = groups(&writer.finish(&[]).unwrap());
        let bases: HashSet<&String> = groups.iter().map(|(base, _)| base).collect();
        prop_assert_eq!(bases.len(), groups.len());
        let found: Vec<Vec<Bytes>> =
            groups.into_iter().map(|(_, members)| members.into_iter().map(|(_, content)| content).collect()).collect();
        prop_assert_eq!(found, expected);
    }
}
