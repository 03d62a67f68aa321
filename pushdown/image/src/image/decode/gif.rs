//! The first frame of a GIF, as Pillow reads it. The `image` crate supports neither frames beyond the screen nor Pillow's
//! background colour.

use pushdown_core::{Error, Image, Result, media::gif::GifHeader};

/// Decodes the first frame to RGB. The caller has checked the size against the limits.
pub(super) fn decode(bytes: &[u8]) -> Result<Image> {
    let undecodable = |error| Error::undecodable(format!("gif: {error}"));
    let GifHeader {
        width,
        height,
        mut decoder,
    } = GifHeader::read(bytes).map_err(undecodable)?;
    let mut indices = vec![0; decoder.buffer_size()];
    decoder.read_into_buffer(&mut indices).map_err(undecodable)?;
    let colours = colours(decoder.palette().map_err(undecodable)?);
    let Some(frame) = decoder.current_frame_info() else {
        return Err(Error::undecodable(
            "gif: expected a frame, found the end of the file",
        ));
    };
    // The colour of pixels that the frame does not cover.
    let background = colours[usize::from(frame.transparent.unwrap_or(0))];
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let mut pixels = background.repeat(width as usize * height as usize);
    let stride = width as usize * 3;
    if frame.width > 0 {
        let rows = indices.chunks_exact(usize::from(frame.width));
        for (target, row) in pixels.chunks_exact_mut(stride).skip(top).zip(rows) {
            let target = target[left * 3..].as_chunks_mut().0;
            for (pixel, index) in target.iter_mut().zip(row) {
                *pixel = colours[usize::from(*index)];
            }
        }
    }
    Image::new(width, height, pixels)
}

/// 256 colours: those of the file, followed by black, as in Pillow.
fn colours(palette: &[u8]) -> [[u8; 3]; 256] {
    let mut colours = [[0; 3]; 256];
    for (stored, colour) in palette.as_chunks().0.iter().zip(&mut colours) {
        *colour = *stored;
    }
    colours
}
