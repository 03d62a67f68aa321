//! What is verified of a body and what is sent of it, by payload mode.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::StreamError;
use super::declared::Declared;
use super::decoder::{Decoder, Event};
use super::last_byte::LastByte;
use super::pass_through::PassThrough;
use super::signature_chain::SignatureChain;
use super::unsigned_framing::{UnsignedFraming, framed_bytes};
use crate::s3::auth::{ChunkSeed, PayloadMode};

/// Verifies a body piece by piece.
#[derive(Debug)]
pub(super) enum Check {
    Hash {
        hasher: Sha256,
        expected: [u8; 32],
        last_byte: LastByte,
    },
    Unsigned,
    UnsignedTrailer(PassThrough),
    SignedChunks {
        decoder: Decoder,
        last_byte: LastByte,
    },
    SignedChunksTrailer {
        decoder: Decoder,
        framing: UnsignedFraming,
    },
}

impl Check {
    /// A check for a body of `received_bytes`, if its length is known. Also returns the length of what will be sent, if it is known.
    pub(super) fn new(
        mode: PayloadMode,
        seed: Option<ChunkSeed>,
        headers: &HeaderMap,
        received_bytes: Option<u64>,
    ) -> Result<(Self, Option<u64>), StreamError> {
        let chain = || {
            seed.map(SignatureChain::new)
                .ok_or(StreamError::SignatureMismatch)
        };
        let check = match mode {
            PayloadMode::Hash(expected) => {
                let check = Self::Hash {
                    hasher: Sha256::new(),
                    expected,
                    last_byte: LastByte::new(received_bytes),
                };
                (check, received_bytes)
            }
            PayloadMode::Unsigned => (Self::Unsigned, received_bytes),
            PayloadMode::UnsignedTrailer => {
                let decoder = Decoder::new(Declared::from_headers(headers)?, None, false);
                (Self::UnsignedTrailer(PassThrough::new(decoder)), received_bytes)
            }
            PayloadMode::SignedChunks => {
                let declared = Declared::from_headers(headers)?;
                if !declared.trailers.is_empty() {
                    return Err(StreamError::MalformedTrailer(
                        "x-amz-trailer requires a payload with trailers",
                    ));
                }
                let decoded_bytes = Some(declared.decoded_bytes);
                let check = Self::SignedChunks {
                    decoder: Decoder::new(declared, Some(chain()?), false),
                    last_byte: LastByte::new(decoded_bytes),
                };
                (check, decoded_bytes)
            }
            PayloadMode::SignedChunksTrailer => {
                let declared = Declared::from_headers(headers)?;
                let sent_bytes = framed_bytes(&declared);
                let framing = UnsignedFraming::new(declared.decoded_bytes);
                let decoder = Decoder::new(declared, Some(chain()?), true);
                (Self::SignedChunksTrailer { decoder, framing }, sent_bytes)
            }
        };
        Ok(check)
    }

    /// Verifies the next piece, and adds to `output` what can be sent.
    pub(super) fn push(&mut self, mut piece: Bytes, output: &mut VecDeque<Bytes>) -> Result<(), StreamError> {
        match self {
            Self::Hash {
                hasher, last_byte, ..
            } => {
                hasher.update(&piece);
                last_byte.push(piece, output);
            }
            Self::Unsigned => output.push_back(piece),
            Self::UnsignedTrailer(pass_through) => pass_through.push(piece, output)?,
            Self::SignedChunks { decoder, last_byte } => {
                while let Some(event) = decoder.decode(&mut piece)? {
                    if let Event::Data(data) = event {
                        last_byte.push(data, output);
                    }
                }
            }
            Self::SignedChunksTrailer { decoder, framing } => {
                while let Some(event) = decoder.decode(&mut piece)? {
                    if let Event::Data(data) = event {
                        framing.push(data, output);
                    }
                }
            }
        }
        Ok(())
    }

    /// Verifies that the body is whole, and adds what was held back to `output`.
    pub(super) fn finish(&mut self, output: &mut VecDeque<Bytes>) -> Result<(), StreamError> {
        match self {
            Self::Hash {
                hasher,
                expected,
                last_byte,
            } => {
                let hash: [u8; 32] = std::mem::take(hasher).finalize().into();
                if hash != *expected {
                    return Err(StreamError::HashMismatch);
                }
                last_byte.release(output);
            }
            Self::Unsigned => {}
            Self::UnsignedTrailer(pass_through) => pass_through.finish(output)?,
            Self::SignedChunks { decoder, last_byte } => {
                decoder.finish()?;
                last_byte.release(output);
            }
            Self::SignedChunksTrailer { decoder, framing } => framing.finish(decoder.finish()?, output),
        }
        Ok(())
    }
}
