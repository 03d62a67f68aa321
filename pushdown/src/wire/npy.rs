//! numpy's file format: version 1.0 written byte for byte as numpy writes it, 1.0 to 3.0 read.
//!
//! It has dtype and shape only. Layout, scale and whether it is an image stand in headers; without them (a file
//! from disk) the value is a tensor with layout `flat`.

mod literal;

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::shape::Shape;
use crate::{DType, Error, Limits, Result, Sample};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The elements start at a multiple of this.
const ALIGNMENT: usize = 64;
/// numpy leaves room for the first extent to grow to so many digits in place.
const GROWTH_DIGITS: usize = 21;

/// What stands before the elements.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for bf16.
pub(super) fn head(shape: &Shape) -> Result<Bytes> {
    let descr = descr(shape.dtype)
        .ok_or_else(|| Error::wire("npy has no bf16: ask for another form, or cast to f16 or f32"))?;
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
    // At least one byte more, for the line break.
    let length = (preamble + literal.len() + 1).next_multiple_of(ALIGNMENT) - preamble;
    let announced = u16::try_from(length).map_err(|_| Error::wire("the shape is too long for npy"))?;

    let mut header = Vec::with_capacity(preamble + length);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&announced.to_le_bytes());
    header.extend_from_slice(format!("{literal:<width$}\n", width = length - 1).as_bytes());
    Ok(header.into())
}

/// Reads an array.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for what is no npy file of a known dtype in row-major order with
/// as many bytes as its shape says; [`TooLarge`](crate::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    mut body: Bytes,
    limits: &Limits,
) -> Result<Sample> {
    let (literal, start) = split(&body)?;
    let array = literal::parse(literal)?;
    if array.fortran_order {
        return Err(Error::wire(
            "found an npy file in column-major order, expected row-major",
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
            "found npy elements of type {:?}, expected one of {known}",
            array.descr
        ))
    })?;
    let shape = Shape::described(dtype, array.shape, header)?;
    shape.give(Buffer::from(body.split_off(start)), limits)
}

/// The header's text, and where the elements start.
fn split(body: &[u8]) -> Result<(&str, usize)> {
    let truncated = || Error::wire(format!("an npy file of {} bytes ends in its header", body.len()));
    let rest = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| Error::wire("found no npy file: its first bytes are missing"))?;
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
                "found npy version {major}.{minor}, expected 1.0, 2.0 or 3.0"
            )));
        }
    };
    let literal = rest.get(..length as usize).ok_or_else(truncated)?;
    let start = body.len() - rest.len() + literal.len();
    let literal = str::from_utf8(literal).map_err(|_| Error::wire("found an npy header that is not text"))?;
    Ok((literal, start))
}

/// numpy's name of an element type.
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
    use crate::Layout;

    fn shape(dtype: DType, extents: &[usize]) -> Shape {
        Shape {
            dtype,
            layout: Layout::Flat,
            extents: extents.to_vec(),
            scale: None,
            image: false,
        }
    }

    /// As `numpy.save` of numpy 2.4 writes them.
    #[test]
    fn headers_are_numpys_byte_for_byte() {
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
        // Here the room for growth takes another 64 bytes.
        let long = head(&shape(DType::I8, &[1; 32])).unwrap();
        assert_eq!((long.len(), &long[6..10]), (192, b"\x01\x00\xb6\x00".as_slice()));
    }

    #[test]
    fn reads_other_versions_and_files_without_headers() {
        let literal = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}\n";
        let length = u32::try_from(literal.len()).unwrap().to_le_bytes();
        let elements = [1, 0, 0, 0, 2, 0, 0, 0];
        for version in [[2, 0], [3, 0]] {
            let file = [MAGIC.as_slice(), &version, &length, literal, &elements].concat();
            let Sample::Tensor(tensor) = decode(|_| None, file.into(), &Limits::default()).unwrap() else {
                panic!("no tensor")
            };
            assert_eq!(
                (tensor.dtype(), tensor.layout(), tensor.shape()),
                (DType::I32, Layout::Flat, &[2][..])
            );
            assert_eq!(tensor.data().as_slice(), elements);
        }
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        let file = |version: [u8; 2], literal: &str| {
            let length = u16::try_from(literal.len()).unwrap().to_le_bytes();
            Bytes::from([MAGIC.as_slice(), &version, &length, literal.as_bytes()].concat())
        };
        for (file, expected) in [
            (Bytes::from_static(b"PK\x03\x04"), "first bytes"),
            (file([4, 0], ""), "version 4.0"),
            (
                file([1, 0], "{'descr': '>f4', 'fortran_order': False, 'shape': (0,)}"),
                "\">f4\", expected one of |u1",
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
                "has 4 bytes, found 0",
            ),
            (file([2, 0], "{'descr': "), "ends in its header"),
        ] {
            let error = decode(|_| None, file, &Limits::default()).unwrap_err();
            assert!(
                error.to_string().contains(expected),
                "{error}; expected {expected}"
            );
        }
    }
}
