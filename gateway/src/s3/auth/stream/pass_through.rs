//! Passes unsigned `aws-chunked` framing on as it is, and holds back the final chunk.

use std::collections::VecDeque;

use bytes::Bytes;

use super::StreamError;
use super::decoder::Decoder;

/// Checks framing without changing it.
#[derive(Debug)]
pub(super) struct PassThrough {
    decoder: Decoder,
    /// The bytes since the last event: an incomplete line, or the final chunk.
    held: Vec<u8>,
}

impl PassThrough {
    /// Passes on what `decoder` accepts.
    pub(super) fn new(decoder: Decoder) -> Self {
        Self {
            decoder,
            held: Vec::new(),
        }
    }

    /// Passes on `piece`, except an incomplete line and the final chunk.
    pub(super) fn push(&mut self, mut piece: Bytes, output: &mut VecDeque<Bytes>) -> Result<(), StreamError> {
        let received = piece.clone();
        let mut accepted = 0;
        while self.decoder.decode(&mut piece)?.is_some() {
            accepted = received.len() - piece.len();
        }
        if accepted > 0 {
            if !self.held.is_empty() {
                output.push_back(std::mem::take(&mut self.held).into());
            }
            output.push_back(received.slice(..accepted));
        }
        self.held.extend_from_slice(&received[accepted..]);
        Ok(())
    }

    /// Passes on the final chunk.
    pub(super) fn finish(&mut self, output: &mut VecDeque<Bytes>) -> Result<(), StreamError> {
        self.decoder.finish()?;
        output.push_back(std::mem::take(&mut self.held).into());
        Ok(())
    }
}
