//! The compression of strips and tiles (TIFF 6.0 sections 7 to 11 and 13; supplements for deflate and zstd).

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use weezl::{BitOrder, LzwStatus};

use super::{fax, page::unsupported, samples::SampleFormat};
use pushdown_core::{
    Error, Result,
    media::tiff::{TiffDirectory, tag},
};

/// How chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression<'a> {
    None,
    PackBits,
    Lzw,
    Deflate,
    Zstd,
    Fax(fax::FaxCoding),
    /// With the tables that all chunks share.
    Jpeg(Option<&'a [u8]>),
}

/// The window of zstd's levels up to 19, which decoders should support (RFC 8878, 3.1.1.1.2).
const ZSTD_WINDOW_LOG: u32 = 23;

impl<'a> Compression<'a> {
    pub(super) fn read(directory: &TiffDirectory<'a>) -> Result<Self> {
        const EXPECTED: &str = "1 (none), 2 to 4 or 32771 (CCITT fax), 5 (LZW), 7 (JPEG), 8 or 32946 (deflate), \
                                32773 (PackBits) or 50000 (zstd)";
        let compression = directory.integer(tag::COMPRESSION)?.unwrap_or(1);
        let name = match compression {
            1 => return Ok(Self::None),
            2 => return Ok(Self::Fax(fax::FaxCoding::Rows { alignment_bytes: 1 })),
            3 => {
                // Bit 0: rows may refer to the previous row. Bit 1: uncompressed pixels.
                let options = directory.integer(tag::T4_OPTIONS)?.unwrap_or(0);
                return Ok(Self::Fax(fax::FaxCoding::Group3 {
                    is_two_dimensional: options & 1 == 1,
                }));
            }
            4 => return Ok(Self::Fax(fax::FaxCoding::Group4)),
            5 => return Ok(Self::Lzw),
            7 => {
                let tables = directory.find(tag::JPEG_TABLES)?;
                return Ok(Self::Jpeg(tables.map(|tables| tables.bytes())));
            }
            8 | 32946 => return Ok(Self::Deflate),
            32771 => return Ok(Self::Fax(fax::FaxCoding::Rows { alignment_bytes: 2 })),
            32773 => return Ok(Self::PackBits),
            50000 => return Ok(Self::Zstd),
            6 => "old-style JPEG",
            9 | 10 | 34661 => "JBIG",
            32766 => "NeXT",
            32809 => "ThunderScan",
            32908 => "Pixar film",
            32909 => "Pixar log",
            33003 | 33004 | 33005 | 34712 => "JPEG 2000",
            34676 | 34677 => "SGI log",
            34887 => "LERC",
            34892 => "lossy JPEG",
            34925 => "LZMA",
            34933 => "PNG",
            34934 | 22610 => "JPEG XR",
            50001 | 34927 => "WebP",
            50002 | 52546 => "JPEG XL",
            _ => return Err(unsupported("compression", compression, EXPECTED)),
        };
        Err(Error::undecodable(format!(
            "TIFF with compression {compression} ({name}): expected {EXPECTED}"
        )))
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::PackBits => "PackBits",
            Self::Lzw => "LZW",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
            Self::Fax(_) => "CCITT fax",
            Self::Jpeg(_) => "JPEG",
        }
    }

    /// Whether rows may contain differences.
    pub(super) const fn has_predictor(&self) -> bool {
        matches!(self, Self::Lzw | Self::Deflate | Self::Zstd)
    }

    pub(super) const fn is_jpeg(&self) -> bool {
        matches!(self, Self::Jpeg(_))
    }

    /// Checks that the compression supports these samples. Unless `is_planar`, the samples of a pixel are adjacent.
    pub(super) fn check(&self, format: SampleFormat, samples: u64, is_planar: bool) -> Result<()> {
        let bits = format.bits();
        let samples = if is_planar { 1 } else { samples };
        let expected = match self {
            Self::Fax(_) if format != SampleFormat::Unsigned(1) || samples != 1 => "1 sample of 1 bit",
            Self::Jpeg(_) if format != SampleFormat::Unsigned(8) => "8 bits",
            Self::Jpeg(_) if !matches!(samples, 1..=4) => "1 to 4 samples",
            _ => return Ok(()),
        };
        Err(Error::undecodable(format!(
            "TIFF with {} of {samples} samples of {bits} bits: expected {expected}",
            self.name()
        )))
    }

    /// Decompresses `reader` into `out`, rows of `width` pixels and `row_bytes` bytes.
    ///
    /// # Errors
    /// `Undecodable` for broken data, and for data that end before `out` is full.
    pub(super) fn decompress(
        &self,
        mut reader: ChunkReader<'_>,
        width: u32,
        row_bytes: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let result = match self {
            Self::None => reader.read_exact(out),
            Self::PackBits => packbits(reader, out),
            Self::Lzw => lzw(reader, out),
            Self::Deflate => ZlibDecoder::new(reader).read_exact(out),
            Self::Zstd => zstd::stream::read::Decoder::new(reader).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                decoder.read_exact(out)
            }),
            Self::Fax(coding) => coding.decode(reader, width, row_bytes, out),
            Self::Jpeg(_) => return Err(Error::internal("a JPEG was decompressed as rows of samples")),
        };
        result.map_err(|error| {
            Error::undecodable(format!(
                "{} data are broken or end early ({error}): expected {} bytes of samples",
                self.name(),
                out.len()
            ))
        })
    }
}

/// Reads the stored bytes of a chunk, with reversed bits if the page says so.
#[derive(Clone)]
pub(super) struct ChunkReader<'a> {
    rest: &'a [u8],
    is_bit_reversed: bool,
}

impl<'a> ChunkReader<'a> {
    pub(super) const fn new(rest: &'a [u8], is_bit_reversed: bool) -> Self {
        Self {
            rest,
            is_bit_reversed,
        }
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(if self.is_bit_reversed {
            byte.reverse_bits()
        } else {
            *byte
        })
    }
}

impl Read for ChunkReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.rest.read(out)?;
        if self.is_bit_reversed {
            for byte in &mut out[..length] {
                *byte = byte.reverse_bits();
            }
        }
        Ok(length)
    }
}

fn unexpected_end() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// TIFF 6.0, section 9.
fn packbits(mut reader: ChunkReader<'_>, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        let code = reader.byte().ok_or_else(unexpected_end)?;
        let length = match code {
            0..=127 => usize::from(code) + 1,
            128 => continue,
            129.. => 257 - usize::from(code),
        };
        let (run, rest) = out.split_at_mut(length.min(out.len()));
        out = rest;
        if code < 128 {
            reader.read_exact(run)?;
        } else {
            run.fill(reader.byte().ok_or_else(unexpected_end)?);
        }
    }
    Ok(())
}

fn lzw(mut reader: ChunkReader<'_>, out: &mut [u8]) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let mut input = 0..reader.read(&mut buffer)?;
    // Writers before TIFF 6.0 start codes in the lowest bit, and widen them one code later. As in libtiff, the first code, which
    // clears the table, shows which variant the file has.
    let is_old_style = input.len() > 1 && buffer[0] == 0 && buffer[1] & 1 == 1;
    let configuration = if is_old_style {
        weezl::decode::Configuration::new(BitOrder::Lsb, 8)
    } else {
        weezl::decode::Configuration::with_tiff_size_switch(BitOrder::Msb, 8)
    };
    let mut decoder = configuration.with_yield_on_full_buffer(true).build();
    let mut filled = 0;
    while filled < out.len() {
        if input.is_empty() {
            input = 0..reader.read(&mut buffer)?;
        }
        let result = decoder.decode_bytes(&buffer[input.clone()], &mut out[filled..]);
        input.start += result.consumed_in;
        filled += result.consumed_out;
        match result.status {
            _ if filled == out.len() => break,
            Ok(LzwStatus::Ok) if result.consumed_in > 0 || result.consumed_out > 0 => {}
            Ok(_) => return Err(unexpected_end()),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
    Ok(())
}
