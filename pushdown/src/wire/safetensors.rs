//! safetensors: one tensor, `value`; the rest as strings in `__metadata__`.

use std::collections::BTreeMap;

use arrow_buffer::Buffer;
use bytes::Bytes;
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;

use super::{header, shape::Shape};
use crate::{DType, Error, Limits, Result, Sample};

const NAME: &str = "value";
/// Bytes of the length before the header.
const PREFIX: usize = size_of::<u64>();
/// The longest header that is read. Ours have 200 bytes; the format's own limit is 100 MB.
const MAX_HEADER: usize = 64 * 1024;

/// The header. Written here rather than by the library, which would copy the elements and order the metadata by
/// chance: the same value is always the same bytes.
#[derive(Serialize)]
struct Header<'a> {
    __metadata__: BTreeMap<&'static str, String>,
    value: Info<'a>,
}

#[derive(Serialize)]
struct Info<'a> {
    dtype: Dtype,
    shape: &'a [usize],
    data_offsets: [usize; 2],
}

/// What stands before `length` bytes of elements.
pub(super) fn head(shape: &Shape, length: usize) -> Result<Bytes> {
    let metadata = shape
        .metadata()
        .into_iter()
        .filter(|(name, _)| !matches!(*name, header::DTYPE | header::SHAPE));
    let header = Header {
        __metadata__: metadata.map(|(name, value)| (key(name), value)).collect(),
        value: Info {
            dtype: dtype(shape.dtype),
            shape: &shape.extents,
            data_offsets: [0, length],
        },
    };
    let mut json = serde_json::to_vec(&header)
        .map_err(|error| Error::internal(format!("safetensors header: {error}")))?;
    json.resize(json.len().next_multiple_of(PREFIX), b' ');
    let mut start = (json.len() as u64).to_le_bytes().to_vec();
    start.append(&mut json);
    Ok(start.into())
}

/// Reads the array `value`, or the only one there is.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for what is no such file;
/// [`TooLarge`](crate::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode(mut body: Bytes, limits: &Limits) -> Result<Sample> {
    let invalid = |error: &dyn std::fmt::Display| Error::wire(format!("found no safetensors file: {error}"));
    if let Some((length, _)) = body.split_first_chunk()
        && u64::from_le_bytes(*length) > MAX_HEADER as u64
    {
        return Err(invalid(&format_args!(
            "its header is longer than {MAX_HEADER} bytes"
        )));
    }
    let (length, parsed) = SafeTensors::read_metadata(&body).map_err(|error| invalid(&error))?;
    let info = match (parsed.info(NAME), parsed.tensors().into_values().next()) {
        (Some(info), _) => info,
        (None, Some(info)) if parsed.offset_keys().len() == 1 => info,
        _ => return Err(invalid(&"it has no tensor named `value`")),
    };
    let dtype = DType::ALL.into_iter().find(|known| dtype(*known) == info.dtype);
    let dtype = dtype.ok_or_else(|| {
        invalid(&format_args!(
            "elements of type {} are not known here",
            info.dtype
        ))
    })?;
    let metadata = parsed.metadata().as_ref();
    let get = |name: &'static str| Some(metadata?.get(key(name))?.as_str());
    let shape = Shape::described(dtype, info.shape.clone(), get)?;
    let (start, end) = info.data_offsets;
    // The library checked that the offsets lie within the body.
    let mut elements = body.split_off(PREFIX + length);
    elements.truncate(end);
    shape.give(Buffer::from(elements.split_off(start)), limits)
}

/// A metadata key: the header's name without what all of them start with.
fn key(name: &'static str) -> &'static str {
    name.trim_start_matches(header::PREFIX)
}

const fn dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    fn file(header: &str, elements: &[u8]) -> Bytes {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), elements]
            .concat()
            .into()
    }

    #[test]
    fn the_library_reads_what_is_written() {
        let shape = Shape {
            dtype: DType::Bf16,
            layout: Layout::Chw,
            extents: vec![1, 2],
            scale: Some(0.5),
            image: false,
        };
        let head = head(&shape, 4).unwrap();
        assert_eq!(head.len() % PREFIX, 0, "elements are aligned");
        let whole = [head.as_ref(), b"\x80\x3f\0\0"].concat();
        let parsed = SafeTensors::deserialize(&whole).unwrap();
        let tensor = parsed.tensor(NAME).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.data()),
            (Dtype::BF16, &[1, 2][..], &whole[head.len()..])
        );
        let (_, metadata) = SafeTensors::read_metadata(&whole).unwrap();
        let metadata: BTreeMap<_, _> = metadata.metadata().clone().unwrap().into_iter().collect();
        let expected = [("kind", "tensor"), ("layout", "chw"), ("scale", "0.5")];
        assert_eq!(
            metadata,
            expected
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into()
        );
    }

    #[test]
    fn a_file_from_elsewhere_with_one_tensor_is_read() {
        let other = r#"{"weight":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}"#;
        let Sample::Tensor(tensor) = decode(file(other, &[1, 2]), &Limits::default()).unwrap() else {
            panic!("no tensor")
        };
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.data().as_slice()),
            (DType::I8, &[2][..], &[1, 2][..])
        );
        let two = r#"{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"value":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
        let Sample::Tensor(tensor) = decode(file(two, &[1, 2]), &Limits::default()).unwrap() else {
            panic!("no tensor")
        };
        assert_eq!((tensor.dtype(), tensor.data().as_slice()), (DType::U8, &[2][..]));
    }

    #[test]
    fn refuses_the_rest() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let two = r#"{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}}"#;
        for (file, expected) in [
            (Bytes::new(), "header too small"),
            (Bytes::from_static(&[0xff; 16]), "longer than 65536 bytes"),
            (file("{}", b""), "no tensor named"),
            (file(two, &[1, 2]), "no tensor named"),
            (file(&deep, b""), "JSON"),
            (
                file(
                    r#"{"value":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}"#,
                    b"",
                ),
                "F64",
            ),
            (
                file(
                    r#"{"value":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}"#,
                    b"1",
                ),
                "invalid shape",
            ),
            (
                file(
                    r#"{"value":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#,
                    b"",
                ),
                "overflow",
            ),
            (
                file(
                    r#"{"__metadata__":{"kind":"image"},"value":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
                    b"1",
                ),
                "found an image of u8, flat, [1]",
            ),
            (
                file(
                    r#"{"__metadata__":{"scale":"x"},"value":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
                    b"1",
                ),
                "found x-pushdown-scale \"x\"",
            ),
        ] {
            let error = decode(file, &Limits::default()).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidWire);
            assert!(
                error.to_string().contains(expected),
                "{error}; expected {expected}"
            );
        }
    }
}
