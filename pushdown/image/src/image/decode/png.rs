//! PNG, as Pillow reads it.
//!
//! The `image` crate reads every file to its end. Pillow stops after the last row and ignores what follows: checksums, chunks
//! or other bytes.

use std::io::Cursor;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Limits, Reader, Transformations};

use super::max_decoder_bytes;
use pushdown_core::{
    Error, Image, ImageHeader, Result,
    media::png::{PngChunk, PngChunks},
};

/// Decodes `bytes` to RGB. The caller has checked `header` against the limits.
pub(super) fn decode(bytes: &[u8], header: &ImageHeader) -> Result<Image> {
    check_chunks(bytes)?;
    let mut rows = PngRows::open(bytes, header)?;
    let stride = header.width as usize * 3;
    let mut pixels = vec![0; stride * header.height as usize];
    if rows.reader.info().interlaced {
        read_passes(&mut rows, &mut pixels, stride)?;
    } else {
        for row in pixels.chunks_exact_mut(stride) {
            rows.read(row)?;
        }
    }
    Image::new(header.width, header.height, pixels)
}

/// Checks the chunks as Pillow does: checksums before the pixels, and that no chunk after them is truncated.
fn check_chunks(bytes: &[u8]) -> Result<()> {
    let mut chunks = PngChunks::new(bytes);
    for chunk in chunks.by_ref().take_while(|chunk| chunk.kind != *b"IDAT") {
        if !chunk.is_intact() {
            let kind = chunk.kind.escape_ascii();
            return Err(Error::undecodable(format!(
                "png: the checksum of the chunk `{kind}` is wrong"
            )));
        }
    }
    let truncated = chunks
        .skip_while(|chunk| chunk.kind == *b"IDAT")
        .take_while(|chunk| chunk.kind != *b"IEND")
        .find(PngChunk::is_truncated);
    truncated.map_or(Ok(()), |chunk| {
        let kind = chunk.kind.escape_ascii();
        Err(Error::undecodable(format!(
            "png: the file ends within the chunk `{kind}`: it is truncated"
        )))
    })
}

/// Reads the rows of the image, or of its passes, as RGB.
struct PngRows<'a> {
    reader: Reader<Cursor<&'a [u8]>>,
    row: Vec<u8>,
    to_rgb: ToRgb,
}

impl<'a> PngRows<'a> {
    fn open(bytes: &'a [u8], header: &ImageHeader) -> Result<Self> {
        let mut options = DecodeOptions::default();
        // Pillow checks the checksum of the pixel stream, not those of its chunks.
        options.set_ignore_crc(true);
        options.set_ignore_adler32(false);
        options.set_ignore_text_chunk(true);
        options.set_ignore_iccp_chunk(true);
        let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
        decoder.set_limits(Limits {
            bytes: usize::try_from(max_decoder_bytes(header)).unwrap_or(usize::MAX),
        });
        decoder.set_transformations(Transformations::EXPAND);
        let reader = decoder.read_info().map_err(|error| undecodable(&error))?;
        let size = (header.width, header.height);
        let frame = reader.info().frame_control();
        if reader.info().size() != size || frame.is_some_and(|frame| (frame.width, frame.height) != size) {
            return Err(Error::undecodable(
                "png: the default image has another size than the header states",
            ));
        }
        let (colour, depth) = reader.output_color_type();
        let row_bytes = reader
            .output_line_size(header.width)
            .ok_or_else(|| Error::undecodable("png: a row is too long"))?;
        Ok(Self {
            reader,
            row: vec![0; row_bytes],
            to_rgb: to_rgb(colour, depth)?,
        })
    }

    /// Writes the next row into `rgb`. The slice may be longer than the row of a pass.
    fn read(&mut self, rgb: &mut [u8]) -> Result<()> {
        let row = self
            .reader
            .read_row(&mut self.row)
            .map_err(|error| undecodable(&error))?;
        if row.is_none() {
            return Err(Error::undecodable("png: the pixels end before the last row"));
        }
        (self.to_rgb)(&self.row, rgb);
        Ok(())
    }
}

fn undecodable(error: &DecodingError) -> Error {
    Error::undecodable(format!("png: {error}"))
}

/// A pass of Adam7 interlacing: its first pixel, and the distances between its columns and between its rows.
struct InterlacePass {
    x: usize,
    y: usize,
    columns: usize,
    rows: usize,
}

/// PNG specification, 8.2.
const PASSES: [InterlacePass; 7] = [
    InterlacePass::new((0, 0), (8, 8)),
    InterlacePass::new((4, 0), (8, 8)),
    InterlacePass::new((0, 4), (4, 8)),
    InterlacePass::new((2, 0), (4, 4)),
    InterlacePass::new((0, 2), (2, 4)),
    InterlacePass::new((1, 0), (2, 2)),
    InterlacePass::new((0, 1), (1, 2)),
];

impl InterlacePass {
    const fn new((x, y): (usize, usize), (columns, rows): (usize, usize)) -> Self {
        Self { x, y, columns, rows }
    }
}

fn read_passes(rows: &mut PngRows<'_>, pixels: &mut [u8], stride: usize) -> Result<()> {
    let mut rgb = vec![0; stride];
    // A pass without columns has no rows.
    for pass in PASSES.into_iter().filter(|pass| pass.x * 3 < stride) {
        for target in pixels.chunks_exact_mut(stride).skip(pass.y).step_by(pass.rows) {
            rows.read(&mut rgb)?;
            let target = target.as_chunks_mut::<3>().0.iter_mut();
            for (target, pixel) in target.skip(pass.x).step_by(pass.columns).zip(rgb.as_chunks().0) {
                *target = *pixel;
            }
        }
    }
    Ok(())
}

type ToRgb = fn(&[u8], &mut [u8]);

/// The function that converts a row of these samples to RGB. It drops alpha.
fn to_rgb(colour: ColorType, depth: BitDepth) -> Result<ToRgb> {
    Ok(match (colour, depth) {
        (ColorType::Grayscale, BitDepth::Eight) => grey::<1>,
        (ColorType::GrayscaleAlpha, BitDepth::Eight) => grey::<2>,
        (ColorType::Rgb, BitDepth::Eight) => colours::<3>,
        (ColorType::Rgba, BitDepth::Eight) => colours::<4>,
        (ColorType::Grayscale, BitDepth::Sixteen) => deep_grey::<2>,
        (ColorType::GrayscaleAlpha, BitDepth::Sixteen) => deep_grey::<4>,
        (ColorType::Rgb, BitDepth::Sixteen) => deep_colours::<6>,
        (ColorType::Rgba, BitDepth::Sixteen) => deep_colours::<8>,
        (colour, depth) => {
            return Err(Error::undecodable(format!(
                "png: {colour:?} of {depth:?} bits is not supported"
            )));
        }
    })
}

fn convert_pixels<const N: usize>(row: &[u8], rgb: &mut [u8], convert: impl Fn(&[u8; N]) -> [u8; 3]) {
    for (pixel, samples) in rgb.as_chunks_mut().0.iter_mut().zip(row.as_chunks().0) {
        *pixel = convert(samples);
    }
}

fn grey<const N: usize>(row: &[u8], rgb: &mut [u8]) {
    convert_pixels::<N>(row, rgb, |samples| [samples[0]; 3]);
}

fn colours<const N: usize>(row: &[u8], rgb: &mut [u8]) {
    convert_pixels::<N>(row, rgb, |samples| [samples[0], samples[1], samples[2]]);
}

fn deep_grey<const N: usize>(row: &[u8], rgb: &mut [u8]) {
    convert_pixels::<N>(row, rgb, |samples| [rounded([samples[0], samples[1]]); 3]);
}

fn deep_colours<const N: usize>(row: &[u8], rgb: &mut [u8]) {
    convert_pixels::<N>(row, rgb, |samples| {
        [0, 2, 4].map(|start| rounded([samples[start], samples[start + 1]]))
    });
}

/// Converts 16 bits to 8, rounded to nearest.
fn rounded(sample: [u8; 2]) -> u8 {
    u8::try_from((u32::from(u16::from_be_bytes(sample)) + 128) / 257).unwrap_or(u8::MAX)
}
