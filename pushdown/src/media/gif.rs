//! The canvas of a GIF's first frame.

use std::io::{Chain, Read as _};

use gif::{DecodeOptions, Decoder, DecodingError};

/// The end of a frame's data, and of a file: Pillow misses neither.
const END: &[u8] = b"\0;";

/// What the blocks before the pixels say.
pub(crate) struct GifHeader<'a> {
    /// Width of the canvas: of the screen, or as far as the first frame reaches.
    pub(crate) width: u32,
    /// Height of the canvas.
    pub(crate) height: u32,
    /// A decoder before the pixels of the first frame.
    pub(crate) decoder: Decoder<Chain<&'a [u8], &'a [u8]>>,
}

impl<'a> GifHeader<'a> {
    /// Reads up to the first frame. As in Pillow, the canvas grows to hold it.
    ///
    /// # Errors
    /// For a file without a frame or with blocks that are cut short.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, DecodingError> {
        let mut decoder = DecodeOptions::new().read_info(bytes.chain(END))?;
        let (width, height) = (decoder.width(), decoder.height());
        let frame = decoder
            .next_frame_info()?
            .ok_or_else(|| DecodingError::Io(std::io::ErrorKind::UnexpectedEof.into()))?;
        Ok(Self {
            width: u32::from(width).max(u32::from(frame.left) + u32::from(frame.width)),
            height: u32::from(height).max(u32::from(frame.top) + u32::from(frame.height)),
            decoder,
        })
    }
}
