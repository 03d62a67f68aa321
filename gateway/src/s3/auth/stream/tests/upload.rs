//! Requests with bodies of all payload modes, and a plain reading of them.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use pushdown_testkit::{ChunkedBody, Keys, Trailers};
use sha2::{Digest as _, Sha256};

use super::pieces::{Outcome, Pieces, code, read};
use crate::s3::auth::stream::{StreamError, VerifyingBody};
use crate::s3::auth::{ChunkSeed, PayloadMode};

/// Signature of the head in the example of AWS.
pub(super) const SEED: &str = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

/// The payload modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Hash,
    Unsigned,
    UnsignedTrailer,
    SignedChunks,
    SignedChunksTrailer,
}

/// A request with a body.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) mode: Mode,
    pub(super) hash: [u8; 32],
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Mode {
    pub(super) const ALL: [Self; 5] = [
        Self::Hash,
        Self::Unsigned,
        Self::UnsignedTrailer,
        Self::SignedChunks,
        Self::SignedChunksTrailer,
    ];

    pub(super) fn has_trailers(self) -> bool {
        matches!(self, Self::UnsignedTrailer | Self::SignedChunksTrailer)
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(self, Self::SignedChunks | Self::SignedChunksTrailer)
    }
}

impl Upload {
    /// A correct request with these chunks.
    pub(super) fn new(mode: Mode, chunks: &[&[u8]]) -> Self {
        let data = chunks.concat();
        let mut headers = HeaderMap::new();
        set(
            &mut headers,
            "x-amz-decoded-content-length",
            &data.len().to_string(),
        );
        let mut trailers = Trailers::new();
        if mode.has_trailers() {
            set(
                &mut headers,
                "x-amz-trailer",
                "x-amz-checksum-crc32,x-amz-checksum-sha1",
            );
            trailers.push(("x-amz-checksum-sha1".to_owned(), "a".repeat(28)));
            trailers.push(("x-amz-checksum-crc32".to_owned(), "AAAAAA==".to_owned()));
        }
        let chunked = ChunkedBody::unsigned(chunks, trailers);
        let body = match mode {
            Mode::Hash | Mode::Unsigned => data.clone(),
            Mode::UnsignedTrailer => chunked.encode(),
            Mode::SignedChunks | Mode::SignedChunksTrailer => {
                keys().sign_chunks(chunked, SEED).unwrap().encode()
            }
        };
        Self {
            mode,
            hash: Sha256::digest(&data).into(),
            headers,
            body,
        }
    }

    /// What the store gets of an accepted body, by a plain reading of the whole. `None` if the body must be refused.
    pub(super) fn expected(&self) -> Option<Vec<u8>> {
        if self.mode == Mode::Hash {
            return (self.hash[..] == Sha256::digest(&self.body)[..]).then(|| self.body.clone());
        }
        if self.mode == Mode::Unsigned {
            return Some(self.body.clone());
        }
        let parsed = ChunkedBody::parse(&self.body, self.mode.is_signed())?;
        let data = parsed.data();
        let declared: &[&str] = if self.mode.has_trailers() {
            &["x-amz-checksum-crc32", "x-amz-checksum-sha1"]
        } else {
            &[]
        };
        let is_signed = !self.mode.is_signed() || keys().sign_chunks(parsed.clone(), SEED).unwrap() == parsed;
        if !is_signed || !parsed.matches(self.decoded_bytes(), declared) {
            return None;
        }
        match self.mode {
            Mode::UnsignedTrailer => Some(self.body.clone()),
            Mode::SignedChunksTrailer => {
                let chunks: Vec<_> = data.chunks(64 << 10).collect();
                Some(ChunkedBody::unsigned(&chunks, parsed.trailers).encode())
            }
            _ => Some(data),
        }
    }

    pub(super) fn decoded_bytes(&self) -> u64 {
        let declared = self.headers["x-amz-decoded-content-length"].to_str();
        declared.unwrap().parse().unwrap()
    }

    /// Whether the store could take what left for a whole body.
    pub(super) fn is_committed(&self, output: &[u8]) -> bool {
        match self.mode {
            Mode::Unsigned => true,
            Mode::Hash => output.len() >= self.body.len() && !output.is_empty(),
            Mode::SignedChunks => output.len() as u64 >= self.decoded_bytes() && !output.is_empty(),
            Mode::UnsignedTrailer | Mode::SignedChunksTrailer => ChunkedBody::parse(output, false).is_some(),
        }
    }

    /// Sends the body in pieces that begin at `cuts`.
    pub(super) fn send(&self, cuts: &[usize], has_content_length: bool) -> Outcome {
        let mut rest = Bytes::copy_from_slice(&self.body);
        let mut cuts = cuts.to_vec();
        cuts.sort_unstable();
        let mut pieces = VecDeque::new();
        let mut start = 0;
        for cut in cuts {
            pieces.push_back(rest.split_to(cut - start));
            start = cut;
        }
        pieces.push_back(rest);
        let pieces = Pieces {
            left: pieces,
            content_length: has_content_length.then_some(self.body.len() as u64),
            has_ended: false,
        };
        match self.verify(pieces) {
            Ok(body) => read(body),
            Err(error) => (Vec::new(), Err(code(&error))),
        }
    }

    pub(super) fn verify(&self, pieces: Pieces) -> Result<VerifyingBody<Pieces>, StreamError> {
        let mode = match self.mode {
            Mode::Hash => PayloadMode::Hash(self.hash),
            Mode::Unsigned => PayloadMode::Unsigned,
            Mode::UnsignedTrailer => PayloadMode::UnsignedTrailer,
            Mode::SignedChunks => PayloadMode::SignedChunks,
            Mode::SignedChunksTrailer => PayloadMode::SignedChunksTrailer,
        };
        VerifyingBody::new(
            pieces,
            mode,
            self.mode.is_signed().then(|| seed(SEED)),
            &self.headers,
        )
    }
}

/// The keys of the examples of AWS.
pub(super) fn keys() -> Keys {
    Keys::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        .with_time(SystemTime::UNIX_EPOCH + Duration::from_hours(380_376))
}

pub(super) fn seed(signature: &str) -> ChunkSeed {
    let mut bytes = [0; 32];
    hex::decode_to_slice(signature, &mut bytes).unwrap();
    ChunkSeed::new(
        keys().signing_key().unwrap(),
        "20130524/us-east-1/s3/aws4_request".to_owned(),
        "20130524T000000Z".to_owned(),
        bytes,
    )
}

pub(super) fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    let value = HeaderValue::from_str(value).unwrap();
    headers.insert(HeaderName::from_static(name), value);
}
