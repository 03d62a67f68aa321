//! Decodes `aws-chunked` framing. A state machine over pieces: any cut of the bytes has the same result.

use bytes::Bytes;

use super::StreamError;
use super::chunk_line::{ChunkLine, Line, MAX_CHUNK_LINE_BYTES};
use super::declared::Declared;
use super::signature_chain::SignatureChain;
use super::trailers::Trailers;

/// A decoder of one body.
#[derive(Debug)]
pub(super) struct Decoder {
    state: State,
    line: Line,
    /// Declared bytes that no chunk has announced yet.
    unannounced_bytes: u64,
    trailers: Trailers,
    /// `None` in unsigned framing.
    chain: Option<SignatureChain>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    ChunkLine,
    Data { left_bytes: u64 },
    DataEnd,
    Trailers,
    End,
}

/// A part of a body before its final chunk.
#[derive(Debug)]
pub(super) enum Event {
    /// The line before a chunk.
    ChunkLine,
    /// Bytes of a chunk.
    Data(Bytes),
    /// The CRLF after a chunk.
    ChunkEnd,
}

impl Decoder {
    /// Expects signed framing if `chain` is set, and signed trailers if `has_signed_trailers`.
    pub(super) fn new(declared: Declared, chain: Option<SignatureChain>, has_signed_trailers: bool) -> Self {
        Self {
            state: State::ChunkLine,
            line: Line::default(),
            unannounced_bytes: declared.decoded_bytes,
            trailers: Trailers::new(declared.trailers, has_signed_trailers),
            chain,
        }
    }

    /// Decodes the next event, and takes its bytes from `piece`. `None` if all of `piece` has been taken.
    ///
    /// The signature of a chunk is verified with its last byte. After an error the decoder must not be used.
    pub(super) fn decode(&mut self, piece: &mut Bytes) -> Result<Option<Event>, StreamError> {
        while !piece.is_empty() {
            let event = match self.state {
                State::ChunkLine => self.chunk_line(piece)?,
                State::Data { left_bytes } => Some(self.data(left_bytes, piece)?),
                State::DataEnd => self.data_end(piece)?,
                State::Trailers => {
                    self.trailer(piece)?;
                    None
                }
                State::End => {
                    return Err(StreamError::IncompleteBody(
                        "expected nothing after the final chunk",
                    ));
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// The trailers of the whole body. An error if the body has ended too early.
    pub(super) fn finish(&self) -> Result<&Trailers, StreamError> {
        match self.state {
            State::End => Ok(&self.trailers),
            _ => Err(StreamError::IncompleteBody("it ends before its final chunk")),
        }
    }

    fn chunk_line(&mut self, piece: &mut Bytes) -> Result<Option<Event>, StreamError> {
        let is_complete = self.line.read(piece, MAX_CHUNK_LINE_BYTES);
        if !is_complete.ok_or(StreamError::IncompleteBody("the line of a chunk is too long"))? {
            return Ok(None);
        }
        let line = ChunkLine::parse(self.line.bytes(), self.chain.is_some())
            .ok_or(StreamError::IncompleteBody("the line of a chunk is malformed"))?;
        self.line.clear();
        if let (Some(chain), Some(signature)) = (&mut self.chain, line.signature) {
            chain.begin_chunk(signature);
        }
        if line.bytes > 0 {
            self.unannounced_bytes =
                self.unannounced_bytes
                    .checked_sub(line.bytes)
                    .ok_or(StreamError::IncompleteBody(
                        "it has more bytes than x-amz-decoded-content-length",
                    ))?;
            self.state = State::Data {
                left_bytes: line.bytes,
            };
            return Ok(Some(Event::ChunkLine));
        }
        if self.unannounced_bytes > 0 {
            return Err(StreamError::IncompleteBody(
                "it has fewer bytes than x-amz-decoded-content-length",
            ));
        }
        if let Some(chain) = &mut self.chain {
            chain.verify_chunk()?;
        }
        self.state = State::Trailers;
        Ok(None)
    }

    fn data(&mut self, left_bytes: u64, piece: &mut Bytes) -> Result<Event, StreamError> {
        let length = usize::try_from(left_bytes).map_or(piece.len(), |left| left.min(piece.len()));
        let data = piece.split_to(length);
        if let Some(chain) = &mut self.chain {
            chain.update(&data);
        }
        let left_bytes = left_bytes - data.len() as u64;
        if left_bytes > 0 {
            self.state = State::Data { left_bytes };
            return Ok(Event::Data(data));
        }
        if let Some(chain) = &mut self.chain {
            chain.verify_chunk()?;
        }
        self.state = State::DataEnd;
        Ok(Event::Data(data))
    }

    fn data_end(&mut self, piece: &mut Bytes) -> Result<Option<Event>, StreamError> {
        let is_complete = self.line.read(piece, b"\r\n".len());
        if !is_complete.ok_or(StreamError::IncompleteBody("expected CRLF after a chunk"))? {
            return Ok(None);
        }
        self.line.clear();
        self.state = State::ChunkLine;
        Ok(Some(Event::ChunkEnd))
    }

    fn trailer(&mut self, piece: &mut Bytes) -> Result<(), StreamError> {
        let is_complete = self.line.read(piece, self.trailers.max_line_bytes());
        if !is_complete.ok_or(StreamError::MalformedTrailer("the trailers are too long"))? {
            return Ok(());
        }
        let is_last = self.trailers.push(self.line.bytes())?;
        self.line.clear();
        if !is_last {
            return Ok(());
        }
        if let (Some(chain), Some(signature)) = (&mut self.chain, self.trailers.signature()) {
            chain.verify_trailers(&self.trailers.canonical(), &signature)?;
        }
        self.state = State::End;
        Ok(())
    }
}
