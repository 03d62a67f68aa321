//! The canvas of a GIF's first frame.

use std::io::{Chain, Read as _};

use gif::{DecodeOptions, Decoder, DecodingError};

/// The end of a frame's data and of a file, appended since Pillow does not require them.
const END: &[u8] = b"\0;";

/// The content of the blocks before the pixels.
#[expect(missing_debug_implementations, reason = "the decoder has none")]
pub struct GifHeader<'a> {
    /// Width of the canvas: the screen, enlarged to hold the first frame.
    pub width: u32,
    /// Height of the canvas.
    pub height: u32,
    /// A decoder that is positioned before the pixels of the first frame.
    pub decoder: Decoder<Chain<&'a [u8], &'a [u8]>>,
}

impl<'a> GifHeader<'a> {
    /// Reads the blocks before the pixels of the first frame. As in Pillow, the canvas grows to hold that frame.
    ///
    /// # Errors
    /// For a file without a frame, and for truncated blocks.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodingError> {
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
