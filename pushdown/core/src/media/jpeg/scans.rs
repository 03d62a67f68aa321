//! The number of scans of a JPEG, and its limit.
//!
//! libjpeg processes all blocks of the image for each scan, however few bytes the scan has, and cannot be interrupted. Without
//! a limit, a file of 300 KB takes 18 seconds.

use super::{EOI, SOS, Segments, is_frame};
use crate::limits::{MAX_SCAN_PIXELS, MAX_SCANS};

/// The scans of a JPEG up to its end-of-image marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scans {
    coding: Coding,
    count: u64,
    is_one_pass: bool,
}

/// The coding of scans. It determines their cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Huffman codes of DCT coefficients: the JPEG of cameras and usual programs.
    Huffman,
    /// Huffman codes of samples.
    Lossless,
    /// Arithmetic coding. Its decoder continues at full cost after the end of the data.
    Arithmetic,
}

impl Scans {
    /// Counts the scans of `bytes` by their markers, in one pass; `None` without a frame header before the first scan.
    pub fn count(bytes: &[u8]) -> Option<Self> {
        let mut frame = None;
        let mut count = 0;
        let mut is_one_pass = false;
        for segment in Segments::new(bytes)? {
            match segment.marker {
                marker if is_frame(marker) && frame.is_none() => {
                    frame = Some((marker, segment.body.get(5).copied().unwrap_or_default()));
                }
                SOS => {
                    let (marker, components) = frame?;
                    count += 1;
                    let is_sequential = matches!(marker, 0xc0 | 0xc1);
                    if is_sequential && segment.body.first().is_some_and(|in_scan| *in_scan >= components) {
                        // This scan has the whole image: libjpeg refuses any further one.
                        is_one_pass = count == 1;
                        break;
                    }
                }
                EOI => break,
                _ => {}
            }
        }
        let (marker, _) = frame?;
        Some(Self {
            coding: Coding::from_frame(marker),
            count,
            is_one_pass,
        })
    }

    /// Whether libjpeg outputs rows while it reads the file: for a sequential image with Huffman codes and a single scan of all
    /// components.
    pub const fn is_one_pass(self) -> bool {
        self.is_one_pass
    }

    /// The maximum number of scans of an image of `width` x `height` pixels.
    ///
    /// # Errors
    /// If the file has more, with the expected and the found number.
    pub fn limit(self, width: u32, height: u32) -> Result<u32, String> {
        let pixels = u64::from(width) * u64::from(height) * self.coding.relative_cost();
        let max = (MAX_SCAN_PIXELS / pixels.max(1)).min(MAX_SCANS.into());
        if self.count > max {
            return Err(format!(
                "JPEG: expected at most {max} {} for {width} x {height} pixels, found {}",
                self.coding.name(),
                self.count
            ));
        }
        Ok(u32::try_from(max).unwrap_or(MAX_SCANS))
    }
}

impl Coding {
    const fn from_frame(marker: u8) -> Self {
        match marker {
            0xc9..=0xcf => Self::Arithmetic,
            _ if marker & 0b11 == 0b11 => Self::Lossless,
            _ => Self::Huffman,
        }
    }

    /// Worst-case cost of a scan relative to one with Huffman codes (0.5 ns per pixel).
    const fn relative_cost(self) -> u64 {
        match self {
            Self::Huffman => 1,
            Self::Lossless => 8,
            Self::Arithmetic => 250,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Huffman => "scans",
            Self::Lossless => "lossless scans",
            Self::Arithmetic => "arithmetic-coded scans",
        }
    }
}
