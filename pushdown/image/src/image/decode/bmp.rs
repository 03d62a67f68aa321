//! Windows and OS/2 bitmaps, as Pillow reads them.
//!
//! The `image` crate differs from Pillow: it rounds 16-bit pixels to nearest instead of truncating them, and takes a missing
//! data offset for the start of the file.

use pushdown_core::{
    Error, Image, Result,
    media::bmp::{BmpHeader, BmpPalette, BmpPixels},
};

/// Decodes `bytes` to RGB. The caller has checked the size against the limits.
pub(super) fn decode(bytes: &[u8]) -> Result<Image> {
    let header = BmpHeader::read(bytes).map_err(|fault| Error::undecodable(format!("bmp: {fault}")))?;
    let data = bytes.get(header.offset..).unwrap_or_default();
    let pixels = match &header.pixels {
        BmpPixels::Indexed { bits, palette } => indexed(data, &header, *bits, &colours(bytes, palette))?,
        BmpPixels::RunLength { is_4_bit, palette } => {
            let indices = run_length(bytes, &header, *is_4_bit)?;
            let colours = colours(bytes, palette);
            let mut pixels = RgbRows::new(&header);
            let width = header.width as usize;
            for (row, indices) in indices.chunks_exact(width).enumerate() {
                pixels.write_row(row, indices.iter().map(|index| colours[usize::from(*index)]));
            }
            pixels.bytes
        }
        BmpPixels::Masked { bytes, masks } => masked(data, &header, usize::from(*bytes), *masks)?,
    };
    Image::new(header.width, header.height, pixels)
}

/// 256 colours: those of the file, followed by black, as in Pillow.
fn colours(bytes: &[u8], palette: &BmpPalette) -> [[u8; 3]; 256] {
    let mut colours = [[0; 3]; 256];
    let end = palette.bytes.end.min(bytes.len());
    let stored = bytes.get(palette.bytes.start..end).unwrap_or_default();
    for (entry, colour) in stored.chunks_exact(palette.entry_bytes).zip(&mut colours) {
        *colour = [entry[2], entry[1], entry[0]];
    }
    colours
}

/// RGB rows, written in the order of the file.
struct RgbRows {
    bytes: Vec<u8>,
    stride: usize,
    height: usize,
    is_top_down: bool,
}

impl RgbRows {
    fn new(header: &BmpHeader) -> Self {
        let (stride, height) = (header.width as usize * 3, header.height as usize);
        Self {
            bytes: vec![0; stride * height],
            stride,
            height,
            is_top_down: header.is_top_down,
        }
    }

    fn write_row(&mut self, row: usize, colours: impl Iterator<Item = [u8; 3]>) {
        let row = if self.is_top_down {
            row
        } else {
            self.height - 1 - row
        };
        let target = &mut self.bytes[row * self.stride..][..self.stride];
        for (pixel, colour) in target.as_chunks_mut().0.iter_mut().zip(colours) {
            *pixel = colour;
        }
    }
}

/// Rows of `bits` bits per pixel, padded to a multiple of 4 bytes. The last row may lack its padding.
fn rows<'a>(data: &'a [u8], header: &BmpHeader, bits: usize) -> Result<impl Iterator<Item = &'a [u8]>> {
    let (width, height) = (header.width as usize, header.height as usize);
    let row = (width * bits).div_ceil(8);
    let stride = row.next_multiple_of(4);
    let expected = stride * (height - 1) + row;
    if data.len() < expected {
        return Err(truncated(expected, data.len()));
    }
    Ok(data.chunks(stride).take(height))
}

fn truncated(expected: usize, found: usize) -> Error {
    Error::undecodable(format!(
        "bmp: the pixels are truncated: expected {expected} bytes, found {found}"
    ))
}

fn indexed(data: &[u8], header: &BmpHeader, bits: u16, colours: &[[u8; 3]; 256]) -> Result<Vec<u8>> {
    let bits = usize::from(bits);
    let mask = u8::MAX >> (8 - bits);
    let rows = rows(data, header, bits)?;
    let mut pixels = RgbRows::new(header);
    for (row, stored) in rows.enumerate() {
        // The first pixel has the highest bits.
        let indices = stored.iter().flat_map(|byte| {
            (0..8 / bits)
                .rev()
                .map(move |position| byte >> (position * bits) & mask)
        });
        pixels.write_row(row, indices.map(|index| colours[usize::from(index)]));
    }
    Ok(pixels.bytes)
}

fn masked(data: &[u8], header: &BmpHeader, bytes: usize, masks: [u32; 3]) -> Result<Vec<u8>> {
    let channels = masks.map(MaskedChannel::new);
    let rows = rows(data, header, bytes * 8)?;
    let mut pixels = RgbRows::new(header);
    for (row, stored) in rows.enumerate() {
        let words = stored.chunks_exact(bytes).map(|stored| {
            let mut word = [0; 4];
            word[..bytes].copy_from_slice(stored);
            u32::from_le_bytes(word)
        });
        pixels.write_row(
            row,
            words.map(|word| channels.each_ref().map(|channel| channel.level(word))),
        );
    }
    Ok(pixels.bytes)
}

/// The bits of a channel in a word.
struct MaskedChannel {
    mask: u32,
    shift: u32,
    /// The largest value, at least 1.
    max: u64,
}

impl MaskedChannel {
    fn new(mask: u32) -> Self {
        let shift = mask.trailing_zeros() % 32;
        Self {
            mask,
            shift,
            max: u64::from(mask >> shift).max(1),
        }
    }

    /// The channel in 8 bits, truncated as in Pillow: `value * 255 / max`.
    fn level(&self, word: u32) -> u8 {
        let value = u64::from((word & self.mask) >> self.shift);
        u8::try_from(value * 255 / self.max).unwrap_or(u8::MAX)
    }
}

/// The indices of a run-length encoded image in the order of the file, by the algorithm of Pillow's `BmpRleDecoder`.
fn run_length(file: &[u8], header: &BmpHeader, is_4_bit: bool) -> Result<Vec<u8>> {
    let width = header.width as usize;
    let length = width * header.height as usize;
    let mut indices: Vec<u8> = Vec::with_capacity(length);
    // The position in the row. Runs are clipped at the end of the row.
    let mut x = 0;
    let mut offset = header.offset;
    while indices.len() < length {
        let Some(&[count, value]) = file.get(offset..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        offset += 2;
        let missing = length - indices.len();
        match (count, value) {
            (0, 0) => {
                let end = indices.len().next_multiple_of(width);
                indices.resize(end, 0);
                x = 0;
            }
            (0, 1) => break,
            (0, 2) => {
                let Some(&[right, up]) = file.get(offset..).and_then(<[u8]>::first_chunk) else {
                    break;
                };
                offset += 2;
                let skipped = usize::from(right) + usize::from(up) * width;
                indices.resize(indices.len() + skipped.min(missing), 0);
                x = indices.len() % width;
            }
            (0, count) => {
                let pixels = usize::from(count).min(missing);
                let stored = if is_4_bit { pixels.div_ceil(2) } else { pixels };
                let Some(run) = file.get(offset..offset + stored) else {
                    break;
                };
                if is_4_bit {
                    indices.extend(run.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).take(pixels));
                } else {
                    indices.extend_from_slice(run);
                }
                x += usize::from(count);
                // Runs are padded to even offsets in the file.
                offset = (offset + stored).next_multiple_of(2);
            }
            (count, value) => {
                let pixels = usize::from(count).min(width.saturating_sub(x));
                let pair = if is_4_bit {
                    [value >> 4, value & 0xf]
                } else {
                    [value; 2]
                };
                indices.extend(pair.iter().cycle().take(pixels));
                x += pixels;
            }
        }
    }
    if indices.len() < length {
        return Err(Error::undecodable(format!(
            "bmp: the pixels are truncated: expected {length} pixels, found {}",
            indices.len()
        )));
    }
    indices.truncate(length);
    Ok(indices)
}
