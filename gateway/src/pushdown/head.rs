//! The first bytes of an object, which tell what lies ahead.

use bytes::{Bytes, BytesMut};
use pushdown::{ImageHeader, limits::HEADER_BYTES};

use crate::{body::Body, error::Result, origin::next};

/// One piece as it came, which is mostly all it takes, or several joined.
#[derive(Debug)]
pub(super) enum Head {
    Whole(Bytes),
    Joined(BytesMut),
}

impl Head {
    /// Reads from `body` until the header of an image is whole, or so much is read that there will be none.
    pub(super) async fn read(body: &mut Body) -> Result<(Self, Option<ImageHeader>)> {
        let mut head = Self::Whole(Bytes::new());
        loop {
            let Some(data) = next(body).await? else {
                return Ok((head, None));
            };
            head.push(data);
            let header = ImageHeader::read(head.bytes());
            if header.is_some() || head.bytes().len() >= HEADER_BYTES {
                return Ok((head, header));
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Joined(bytes) => bytes,
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Joined(bytes) => bytes.freeze(),
        }
    }

    fn push(&mut self, data: Bytes) {
        match self {
            Self::Whole(first) if first.is_empty() => *first = data,
            Self::Whole(first) => {
                let mut joined = BytesMut::from(&**first);
                joined.extend_from_slice(&data);
                *self = Self::Joined(joined);
            }
            Self::Joined(joined) => joined.extend_from_slice(&data),
        }
    }
}
