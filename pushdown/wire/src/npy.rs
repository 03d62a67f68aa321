//! The file format of NumPy: writes version 1.0, byte for byte like NumPy, and reads 1.0 to 3.0.
//!
//! A file contains dtype and shape only. Layout, scale and kind are in HTTP headers; without them, as for a file from disk,
//! the value is a tensor with layout `flat`.

mod literal;

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::shape::Shape;
use pushdown_core::{DType, Error, Limits, Result, Sample};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Alignment of the elements in the file.
const ALIGNMENT: usize = 64;
/// NumPy reserves space for this number of digits of the first axis, so that the array can grow in place.
const GROWTH_DIGITS: usize = 21;

/// The header before the elements.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for bf16.
pub(super) fn head(shape: &Shape) -> Result<Bytes> {
    let descr = descr(shape.dtype)
        .ok_or_else(|| Error::wire("npy does not support bf16: use another form, or cast to f16 or f32"))?;
    let extents: Vec<String> = shape.extents.iter().map(usize::to_string).collect();
    let tuple = match extents.as_slice() {
        [only] => format!("({only},)"),
        extents => format!("({})", extents.join(", ")),
    };
    let growth = extents
        .first()
        .map_or(0, |first| GROWTH_DIGITS.saturating_sub(first.len()));
    let literal = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}{:growth$}",
        ""
    );
    let preamble = MAGIC.len() + 4;
    // One byte for the line break.
    let length = (preamble + literal.len() + 1).next_multiple_of(ALIGNMENT) - preamble;
    let header_length = u16::try_from(length).map_err(|_| Error::wire("the shape is too long for npy"))?;

    let mut header = Vec::with_capacity(preamble + length);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&header_length.to_le_bytes());
    header.extend_from_slice(format!("{literal:<width$}\n", width = length - 1).as_bytes());
    Ok(header.into())
}

/// Decodes an array.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a file that is not npy, not row-major, of an unknown dtype,
/// or of a size that does not match its shape; [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    mut body: Bytes,
    limits: &Limits,
) -> Result<Sample> {
    let (literal, start) = split_header(&body)?;
    let array = literal::parse(literal)?;
    if array.fortran_order {
        return Err(Error::wire(
            "unsupported npy file: expected row-major order, found column-major",
        ));
    }
    let dtype = DType::ALL
        .into_iter()
        .find(|dtype| descr(*dtype) == Some(array.descr));
    let dtype = dtype.ok_or_else(|| {
        let known = DType::ALL
            .into_iter()
            .filter_map(descr)
            .collect::<Vec<_>>()
            .join(", ");
        Error::wire(format!(
            "unsupported npy dtype: expected one of {known}, found {:?}",
            array.descr
        ))
    })?;
    let shape = Shape::from_metadata(dtype, array.shape, header)?;
    shape.into_sample(Buffer::from(body.split_off(start)), limits)
}

/// The text of the header, and the offset of the elements.
fn split_header(body: &[u8]) -> Result<(&str, usize)> {
    let truncated = || {
        Error::wire(format!(
            "truncated npy file: {} bytes end within the header",
            body.len()
        ))
    };
    let rest = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| Error::wire("invalid npy file: its first bytes are not those of npy"))?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(truncated)?;
    let (length, rest) = match version {
        [1, 0] => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
            (u32::from(u16::from_le_bytes(*length)), rest)
        }
        [2 | 3, 0] => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
            (u32::from_le_bytes(*length), rest)
        }
        [major, minor] => {
            return Err(Error::wire(format!(
                "unsupported npy version: expected 1.0, 2.0 or 3.0, found {major}.{minor}"
            )));
        }
    };
    let literal = rest.get(..length as usize).ok_or_else(truncated)?;
    let start = body.len() - rest.len() + literal.len();
    let literal = str::from_utf8(literal).map_err(|_| Error::wire("invalid npy header: not UTF-8 text"))?;
    Ok((literal, start))
}

/// The name of an element type in NumPy.
const fn descr(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::U8 => Some("|u1"),
        DType::I8 => Some("|i1"),
        DType::I32 => Some("<i4"),
        DType::I64 => Some("<i8"),
        DType::F16 => Some("<f2"),
        DType::F32 => Some("<f4"),
        DType::Bf16 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushdown_core::Layout;

    fn shape(dtype: DType, extents: &[usize]) -> Shape {
        Shape {
            dtype,
            layout: Layout::Flat,
            extents: extents.to_vec(),
            scale: None,
            image: false,
        }
    }

    /// Written by `numpy.save` of NumPy 2.4.
    #[test]
    fn headers_equal_those_of_numpy() {
        for (dtype, extents, text) in [
            (
                DType::F32,
                &[3, 224, 224][..],
                "'<f4', 'fortran_order': False, 'shape': (3, 224, 224), }",
            ),
            (
                DType::I64,
                &[5],
                "'<i8', 'fortran_order': False, 'shape': (5,), }",
            ),
            (DType::F16, &[], "'<f2', 'fortran_order': False, 'shape': (), }"),
            (
                DType::U8,
                &[224, 224, 3],
                "'|u1', 'fortran_order': False, 'shape': (224, 224, 3), }",
            ),
        ] {
            let mut expected = b"\x93NUMPY\x01\x00v\x00{'descr': ".to_vec();
            expected.extend(text.bytes());
            expected.resize(127, b' ');
            expected.push(b'\n');
            assert_eq!(head(&shape(dtype, extents)).unwrap(), expected, "{text}");
        }
        // The space for growth needs another 64 bytes.
        let long = head(&shape(DType::I8, &[1; 32])).unwrap();
        assert_eq!((long.len(), &long[6..10]), (192, b"\x01\x00\xb6\x00".as_slice()));
    }

    #[test]
    fn other_versions_and_files_without_http_headers_decode() {
        let literal = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}\n";
        let length = u32::try_from(literal.len()).unwrap().to_le_bytes();
        let elements = [1, 0, 0, 0, 2, 0, 0, 0];
        for version in [[2, 0], [3, 0]] {
            let file = [MAGIC.as_slice(), &version, &length, literal, &elements].concat();
            let Sample::Tensor(tensor) = decode(|_| None, file.into(), &Limits::default()).unwrap() else {
                panic!("expected a tensor")
            };
            assert_eq!(
                (tensor.dtype(), tensor.layout(), tensor.shape()),
                (DType::I32, Layout::Flat, &[2][..])
            );
            assert_eq!(tensor.data().as_slice(), elements);
        }
    }

    #[test]
    fn unsupported_files_are_errors() {
        let file = |version: [u8; 2], literal: &str| {
            let length = u16::try_from(literal.len()).unwrap().to_le_bytes();
            Bytes::from([MAGIC.as_slice(), &version, &length, literal.as_bytes()].concat())
        };
        for (file, expected) in [
            (Bytes::from_static(b"PK\x03\x04"), "first bytes"),
            (file([4, 0], ""), "found 4.0"),
            (
                file([1, 0], "{'descr': '>f4', 'fortran_order': False, 'shape': (0,)}"),
                "expected one of |u1, |i1, <i4, <i8, <f2, <f4, found \">f4\"",
            ),
            (
                file([1, 0], "{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}"),
                "\"<f8\"",
            ),
            (
                file([1, 0], "{'descr': '<f4', 'fortran_order': True, 'shape': (0,)}"),
                "column-major",
            ),
            (
                file([1, 0], "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"),
                "expected 4 bytes, found 0",
            ),
            (file([2, 0], "{'descr': "), "end within the header"),
        ] {
            let error = decode(|_| None, file, &Limits::default()).unwrap_err();
            assert!(
                error.to_string().contains(expected),
                "expected {expected}, found {error}"
            );
        }
    }
}
