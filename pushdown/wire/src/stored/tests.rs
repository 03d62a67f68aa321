//! Stored values of all kinds: complete, damaged and hostile.

use arrow_buffer::Buffer;
use arrow_schema::Schema;
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::arbitrary::{self, damage, damaged};
use pushdown_core::{
    BytesKind, DType, ErrorKind, Image, ImageKind, Layout, Table, TableKind, Tensor, TensorKind,
};

/// The kinds of values as a pipeline states them before the values exist.
fn kinds() -> [Kind; 4] {
    [
        Kind::Bytes(BytesKind::default()),
        Kind::Image(ImageKind::default()),
        Kind::Tensor(TensorKind {
            dtype: DType::F32,
            layout: Layout::Flat,
            shape: vec![None],
            quantized: false,
        }),
        Kind::Table(TableKind::default()),
    ]
}

fn body(value: &Sample) -> Bytes {
    encode(value).unwrap().concat().into()
}

fn read(value: &Sample, body: Bytes) -> Result<Sample> {
    decode(&Kind::from(value), body, &Limits::default())
}

fn image() -> Sample {
    Sample::Image(Image::new(2, 3, (0..18).collect()).unwrap())
}

#[test]
fn every_dtype_reads_back_with_and_without_a_scale() {
    for dtype in DType::ALL {
        for (shape, scale) in [
            (&[3, 4][..], None),
            (&[], Some(0.1)),
            (&[2, 0], Some(f32::INFINITY)),
        ] {
            let bytes = shape.iter().product::<usize>() * dtype.size();
            let data = Buffer::from_vec((0..bytes).map(|byte| u8::try_from(byte).unwrap()).collect());
            let tensor = Tensor::new(dtype, Layout::Hwc, shape.to_vec(), data).unwrap();
            let value = Sample::Tensor(tensor.with_scale(scale));
            assert_eq!(
                read(&value, body(&value)).unwrap(),
                value,
                "{dtype} {shape:?} {scale:?}"
            );
        }
    }
}

#[test]
fn bytes_are_stored_as_they_are() {
    let value = Sample::Bytes(Bytes::from_static(b"\xff\xd8 photo"));
    assert_eq!(encode(&value).unwrap().concat(), b"\xff\xd8 photo");
    let limits = Limits {
        max_object_bytes: 7,
        max_value_bytes: 7,
        ..Limits::default()
    };
    let error = decode(&kinds()[0], body(&value), &limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

#[test]
fn elements_share_the_memory_of_the_body() {
    let tensor = Tensor::new(
        DType::U8,
        Layout::Flat,
        vec![5000],
        Buffer::from_vec(vec![7_u8; 5000]),
    )
    .unwrap();
    let value = Sample::Tensor(tensor);
    let body = body(&value);
    let range = body.as_ptr_range();
    let Sample::Tensor(tensor) = read(&value, body.clone()).unwrap() else {
        panic!("expected a tensor")
    };
    assert!(range.contains(&tensor.data().as_ptr()));
}

#[test]
fn a_value_of_another_kind_is_an_error() {
    let [_, image_kind, tensor, table] = kinds();
    let error = |kind: &Kind| decode(kind, body(&image()), &Limits::default()).unwrap_err();
    assert_eq!(
        decode(&image_kind, body(&image()), &Limits::default()).unwrap(),
        image()
    );
    assert_eq!(
        error(&tensor).to_string(),
        "invalid stored value: expected Tensor, found Image"
    );
    for error in [error(&tensor), error(&table)] {
        assert_eq!(error.kind(), ErrorKind::InvalidWire);
    }
}

#[test]
fn tables_are_not_stored() {
    let table = Table::new(Schema::empty().into(), Vec::new()).unwrap();
    let error = encode(&Sample::Table(table)).unwrap_err();
    assert!(error.to_string().contains("found a table"), "{error}");
}

proptest! {
    #[test]
    fn stored_values_read_back(value in arbitrary::sample()) {
        prop_assert_eq!(read(&value, body(&value)), Ok(value));
    }

    #[test]
    fn equal_values_have_equal_bytes(value in arbitrary::sample()) {
        prop_assert_eq!(body(&value), body(&value.clone()));
    }

    #[test]
    fn damage_never_panics(value in arbitrary::sample(), damage in damage()) {
        let damaged = damaged(&body(&value), &damage);
        for kind in kinds() {
            let _any = decode(&kind, damaged.clone(), &Limits::default());
        }
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        for kind in kinds() {
            let _any = decode(&kind, Bytes::from(bytes.clone()), &Limits::default());
        }
    }
}
