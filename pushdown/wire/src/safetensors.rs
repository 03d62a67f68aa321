//! safetensors files with one tensor, `value`, and its properties as strings in `__metadata__`.

use std::collections::BTreeMap;

use arrow_buffer::Buffer;
use bytes::Bytes;
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;

use super::{header, shape::Shape};
use pushdown_core::{DType, Error, Limits, Result, Sample};

const NAME: &str = "value";
/// Bytes of the length before the header.
const PREFIX_BYTES: usize = size_of::<u64>();
/// Maximum length of a header. Those of pushdown have 200 bytes; the limit of the format is 100 MB.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The header. The `safetensors` crate would copy the elements and write the metadata in random order; this module writes equal
/// bytes for equal values.
#[derive(Serialize)]
struct Header<'a> {
    __metadata__: BTreeMap<&'static str, String>,
    value: TensorInfo<'a>,
}

#[derive(Serialize)]
struct TensorInfo<'a> {
    dtype: Dtype,
    shape: &'a [usize],
    data_offsets: [usize; 2],
}

/// The header of a file with `length` bytes of elements.
pub(super) fn head(shape: &Shape, length: usize) -> Result<Bytes> {
    let metadata = shape
        .metadata()
        .into_iter()
        .filter(|(name, _)| !matches!(*name, header::DTYPE | header::SHAPE));
    let header = Header {
        __metadata__: metadata.map(|(name, value)| (key(name), value)).collect(),
        value: TensorInfo {
            dtype: dtype(shape.dtype),
            shape: &shape.extents,
            data_offsets: [0, length],
        },
    };
    let mut json = serde_json::to_vec(&header)
        .map_err(|error| Error::internal(format!("safetensors header: {error}")))?;
    json.resize(json.len().next_multiple_of(PREFIX_BYTES), b' ');
    let mut start = (json.len() as u64).to_le_bytes().to_vec();
    start.append(&mut json);
    Ok(start.into())
}

/// Decodes the array `value`, or the only array of the file.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for an invalid file;
/// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode(mut body: Bytes, limits: &Limits) -> Result<Sample> {
    let invalid = |error: &dyn std::fmt::Display| Error::wire(format!("invalid safetensors file: {error}"));
    if let Some((length, _)) = body.split_first_chunk()
        && u64::from_le_bytes(*length) > MAX_HEADER_BYTES as u64
    {
        return Err(invalid(&format_args!(
            "expected a header of at most {MAX_HEADER_BYTES} bytes"
        )));
    }
    let (length, parsed) = SafeTensors::read_metadata(&body).map_err(|error| invalid(&error))?;
    let info = match (parsed.info(NAME), parsed.tensors().into_values().next()) {
        (Some(info), _) => info,
        (None, Some(info)) if parsed.offset_keys().len() == 1 => info,
        _ => return Err(invalid(&"expected a tensor named `value`")),
    };
    let dtype = DType::ALL.into_iter().find(|known| dtype(*known) == info.dtype);
    let dtype = dtype.ok_or_else(|| invalid(&format_args!("unsupported dtype {}", info.dtype)))?;
    let metadata = parsed.metadata().as_ref();
    let get = |name: &'static str| Some(metadata?.get(key(name))?.as_str());
    let shape = Shape::from_metadata(dtype, info.shape.clone(), get)?;
    let (start, end) = info.data_offsets;
    // The crate has checked that the offsets are within the body.
    let mut elements = body.split_off(PREFIX_BYTES + length);
    elements.truncate(end);
    shape.into_sample(Buffer::from(elements.split_off(start)), limits)
}

/// The metadata key of a header: its name without the common prefix.
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
    use pushdown_core::Layout;

    fn file(header: &str, elements: &[u8]) -> Bytes {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), elements]
            .concat()
            .into()
    }

    #[test]
    fn the_safetensors_crate_reads_written_files() {
        let shape = Shape {
            dtype: DType::Bf16,
            layout: Layout::Chw,
            extents: vec![1, 2],
            scale: Some(0.5),
            image: false,
        };
        let head = head(&shape, 4).unwrap();
        assert_eq!(head.len() % PREFIX_BYTES, 0, "elements are aligned");
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
    fn foreign_files_with_one_tensor_decode() {
        let other = r#"{"weight":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}"#;
        let Sample::Tensor(tensor) = decode(file(other, &[1, 2]), &Limits::default()).unwrap() else {
            panic!("expected a tensor")
        };
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.data().as_slice()),
            (DType::I8, &[2][..], &[1, 2][..])
        );
        let two = r#"{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"value":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
        let Sample::Tensor(tensor) = decode(file(two, &[1, 2]), &Limits::default()).unwrap() else {
            panic!("expected a tensor")
        };
        assert_eq!((tensor.dtype(), tensor.data().as_slice()), (DType::U8, &[2][..]));
    }

    #[test]
    fn other_files_are_errors() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let two = r#"{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}}"#;
        for (file, expected) in [
            (Bytes::new(), "header too small"),
            (Bytes::from_static(&[0xff; 16]), "at most 65536 bytes"),
            (file("{}", b""), "expected a tensor named"),
            (file(two, &[1, 2]), "expected a tensor named"),
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
                "invalid image: expected u8, hwc, [height, width, 3], found u8, flat, [1]",
            ),
            (
                file(
                    r#"{"__metadata__":{"scale":"x"},"value":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
                    b"1",
                ),
                "invalid x-pushdown-scale \"x\"",
            ),
        ] {
            let error = decode(file, &Limits::default()).unwrap_err();
            assert_eq!(error.kind(), pushdown_core::ErrorKind::InvalidWire);
            assert!(
                error.to_string().contains(expected),
                "expected {expected}, found {error}"
            );
        }
    }
}
