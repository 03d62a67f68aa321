//! All forms with all kinds of values: complete, truncated and damaged.

use arrow_buffer::Buffer;
use proptest::prelude::*;

use super::*;
use crate::arbitrary::{self, damage, damaged};
use pushdown_core::{BytesKind, DType, ErrorKind, Image, Layout, MediaType, Tensor};

const FORMS: [Form; 5] = [
    Form::Npy,
    Form::ArrowStream,
    Form::Safetensors,
    Form::Raw,
    Form::Encoded,
];

fn body(encoded: &Encoded) -> Bytes {
    encoded.parts.concat().into()
}

fn read(encoded: &Encoded, body: Bytes) -> Result<Sample> {
    let header = |name: &str| {
        Some(
            encoded
                .metadata
                .iter()
                .find(|(known, _)| *known == name)?
                .1
                .as_str(),
        )
    };
    decode(encoded.content_type, header, body, &Limits::default())
}

fn write(sample: &Sample, form: Form) -> Result<Encoded> {
    encode(sample.clone(), form, &Kind::from(sample))
}

fn image() -> Sample {
    Sample::Image(Image::new(2, 3, (0..18).collect()).unwrap())
}

fn tensor(dtype: DType, shape: &[usize]) -> Sample {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    let data = Buffer::from_vec((0..bytes).map(|byte| u8::try_from(byte % 251).unwrap()).collect());
    Sample::Tensor(Tensor::new(dtype, Layout::Chw, shape.to_vec(), data).unwrap())
}

#[test]
fn every_form_decodes_every_dtype() {
    for dtype in DType::ALL {
        for shape in [&[3, 4, 5][..], &[7], &[], &[0], &[2, 0, 3]] {
            let sample = tensor(dtype, shape);
            for form in Form::offered(&Kind::from(&sample)) {
                let encoded = write(&sample, *form).unwrap();
                assert_eq!(encoded.len(), body(&encoded).len() as u64);
                assert_eq!(
                    read(&encoded, body(&encoded)).unwrap(),
                    sample,
                    "{form:?} {dtype} {shape:?}"
                );
            }
        }
    }
}

#[test]
fn an_image_is_not_a_u8_tensor() {
    let same_bytes = Tensor::new(
        DType::U8,
        Layout::Hwc,
        vec![3, 2, 3],
        Buffer::from_vec((0..18_u8).collect()),
    )
    .unwrap();
    for sample in [image(), Sample::Tensor(same_bytes)] {
        for form in Form::offered(&Kind::from(&sample)) {
            let encoded = write(&sample, *form).unwrap();
            assert_eq!(read(&encoded, body(&encoded)).unwrap(), sample, "{form:?}");
        }
    }
}

#[test]
fn headers_describe_the_value() {
    let encoded = write(&image(), Form::Raw).unwrap();
    let expected = [
        (header::KIND, "image"),
        (header::DTYPE, "u8"),
        (header::SHAPE, "3,2,3"),
        (header::LAYOUT, "hwc"),
    ];
    assert_eq!(
        encoded.metadata,
        expected.map(|(name, value)| (name, value.to_owned()))
    );
    let Sample::Tensor(codes) = tensor(DType::I8, &[2]) else {
        unreachable!()
    };
    let encoded = write(&Sample::Tensor(codes.with_scale(Some(0.1))), Form::Npy).unwrap();
    assert_eq!(encoded.metadata.last(), Some(&(header::SCALE, "0.1".to_owned())));
    let jpeg = Kind::Bytes(BytesKind {
        media: Some(MediaType::Jpeg),
        ..BytesKind::default()
    });
    let encoded = encode(Sample::Bytes(Bytes::from_static(b"any")), Form::Encoded, &jpeg).unwrap();
    assert_eq!(encoded.metadata, [(header::KIND, "bytes".to_owned())]);
    assert_eq!(encoded.content_type, "image/jpeg");
}

#[test]
fn elements_are_not_copied() {
    let Sample::Tensor(tensor) = tensor(DType::F32, &[64, 64]) else {
        unreachable!()
    };
    let start = tensor.data().as_ptr();
    for form in [Form::Npy, Form::Safetensors, Form::Raw, Form::ArrowStream] {
        let encoded = write(&Sample::Tensor(tensor.clone()), form).unwrap();
        assert!(
            encoded.parts.iter().any(|part| part.as_ptr() == start),
            "{form:?}"
        );
    }
    let encoded = write(&Sample::Tensor(tensor), Form::Raw).unwrap();
    let Sample::Tensor(read) = read(&encoded, encoded.parts[0].clone()).unwrap() else {
        unreachable!()
    };
    assert_eq!(read.data().as_ptr(), start);
}

#[test]
fn unsupported_forms_are_errors() {
    let faults = [
        (tensor(DType::Bf16, &[2]), Form::Npy),
        (tensor(DType::F32, &[2]), Form::Encoded),
        (image(), Form::Encoded),
        (Sample::Bytes(Bytes::new()), Form::Npy),
        (Sample::Bytes(Bytes::new()), Form::ArrowStream),
        (tensor(DType::U8, &[1; 33]), Form::Raw),
    ];
    for (sample, form) in faults {
        assert_eq!(
            write(&sample, form).unwrap_err().kind(),
            ErrorKind::InvalidWire,
            "{form:?}"
        );
    }
}

#[test]
fn truncated_or_longer_bodies_are_errors() {
    for sample in [tensor(DType::F16, &[3, 5]), image()] {
        for form in [Form::Npy, Form::ArrowStream, Form::Safetensors, Form::Raw] {
            let encoded = write(&sample, form).unwrap();
            let whole = body(&encoded);
            for length in 0..whole.len() {
                let error = read(&encoded, whole.slice(..length)).unwrap_err();
                assert_eq!(
                    error.kind(),
                    ErrorKind::InvalidWire,
                    "{form:?} cut to {length}: {error}"
                );
            }
            let grown = [whole.as_ref(), b"\0"].concat();
            assert!(read(&encoded, grown.into()).is_err(), "{form:?}");
        }
    }
}

#[test]
fn limits_hold() {
    let limits = Limits {
        max_pixels: 5,
        max_object_bytes: 9,
        max_value_bytes: 9,
        ..Limits::default()
    };
    for sample in [
        image(),
        tensor(DType::U8, &[10]),
        Sample::Bytes(vec![0; 10].into()),
    ] {
        for form in Form::offered(&Kind::from(&sample)) {
            let encoded = write(&sample, *form).unwrap();
            let header = |name: &str| {
                Some(
                    encoded
                        .metadata
                        .iter()
                        .find(|(known, _)| *known == name)?
                        .1
                        .as_str(),
                )
            };
            let error = decode(encoded.content_type, header, body(&encoded), &limits).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{form:?}: {error}");
        }
    }
}

#[test]
fn false_shapes_are_errors() {
    for shape in [
        "18446744073709551615",
        "4294967296,4294967296,2",
        "1,2",
        "0",
        "-1",
        "1,,1",
        "x",
        &"1,".repeat(40),
    ] {
        let header = |name: &str| match name {
            header::KIND => Some("tensor"),
            header::DTYPE => Some("f32"),
            header::SHAPE => Some(shape),
            _ => None,
        };
        let read = decode(
            "application/octet-stream",
            header,
            Bytes::from_static(b"0123"),
            &Limits::default(),
        );
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidWire, "{shape}");
    }
}

#[test]
fn foreign_bodies_are_bytes() {
    let body = Bytes::from_static(b"any");
    for content_type in [
        "image/png",
        "application/octet-stream",
        "",
        "text/plain; charset=utf-8",
    ] {
        let read = decode(content_type, |_| None, body.clone(), &Limits::default()).unwrap();
        assert_eq!(read, Sample::Bytes(body.clone()), "{content_type}");
    }
    let tensor = |name: &str| (name == header::KIND).then_some("tensor");
    assert!(decode("text/html", tensor, body, &Limits::default()).is_err());
}

proptest! {
    #[test]
    fn encoded_values_decode_to_themselves(sample in arbitrary::sample()) {
        for form in Form::offered(&Kind::from(&sample)) {
            let encoded = write(&sample, *form).unwrap();
            prop_assert_eq!(&body(&encoded), &body(&write(&sample, *form).unwrap()), "encoding is deterministic");
            prop_assert_eq!(read(&encoded, body(&encoded)).unwrap(), sample.clone());
        }
    }

    #[test]
    fn damage_never_panics(sample in arbitrary::sample(), form in 0..5_usize, damage in damage()) {
        if let Ok(encoded) = write(&sample, FORMS[form]) {
            let _any = read(&encoded, damaged(&body(&encoded), &damage));
        }
    }
}
