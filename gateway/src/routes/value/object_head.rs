//! The first bytes of an object, with the header of an image.

use bytes::{Bytes, BytesMut};
use pushdown::{ImageHeader, limits::HEADER_BYTES};

use crate::{body::Body, error::Result, origin::next_bytes};

/// The first bytes: usually a single piece, else several pieces joined.
#[derive(Debug)]
pub(in crate::routes) enum ObjectHead {
    Single(Bytes),
    Joined(BytesMut),
}

impl ObjectHead {
    /// Reads from `body` until the header of an image is complete, or [`HEADER_BYTES`] are read without one.
    pub(in crate::routes) async fn read(body: &mut Body) -> Result<(Self, Option<ImageHeader>)> {
        let mut head = Self::Single(Bytes::new());
        loop {
            let Some(data) = next_bytes(body).await? else {
                return Ok((head, None));
            };
            head.push(data);
            let header = ImageHeader::read(head.bytes());
            if header.is_some() || head.bytes().len() >= HEADER_BYTES {
                return Ok((head, header));
            }
        }
    }

    pub(in crate::routes) fn bytes(&self) -> &[u8] {
        match self {
            Self::Single(bytes) => bytes,
            Self::Joined(bytes) => bytes,
        }
    }

    pub(in crate::routes) fn into_bytes(self) -> Bytes {
        match self {
            Self::Single(bytes) => bytes,
            Self::Joined(bytes) => bytes.freeze(),
        }
    }

    fn push(&mut self, data: Bytes) {
        match self {
            Self::Single(first) if first.is_empty() => *first = data,
            Self::Single(first) => {
                let mut joined = BytesMut::from(&**first);
                joined.extend_from_slice(&data);
                *self = Self::Joined(joined);
            }
            Self::Joined(joined) => joined.extend_from_slice(&data),
        }
    }
}
