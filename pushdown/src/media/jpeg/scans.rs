//! The number of scans of a JPEG, and how many it may have.
//!
//! libjpeg passes over all blocks of the image for each scan, however few bytes the scan has: without a limit, a file of
//! 300 KB costs 18 seconds.

use super::{EOI, SOS, Segments, is_frame};
use crate::limits::{MAX_SCAN_PIXELS, MAX_SCANS};

/// The scans of a JPEG up to its end-of-image marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scans {
    coding: Coding,
    count: u64,
    is_one_pass: bool,
}

/// What the cost of a scan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// Huffman codes of DCT coefficients: the JPEG of every camera and every program.
    Huffman,
    /// Huffman codes of samples.
    Lossless,
    /// Arithmetic coding. Its decoder goes on at full cost after the data has ended.
    Arithmetic,
}

impl Scans {
    /// Counts the scans of `bytes` by their markers, in one pass; `None` where no frame header comes before a scan.
    pub(crate) fn count(bytes: &[u8]) -> Option<Self> {
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
                        // The whole image: libjpeg refuses whatever scan follows.
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
            coding: Coding::of_frame(marker),
            count,
            is_one_pass,
        })
    }

    /// Whether libjpeg gives rows as it reads the file: of a sequential image by Huffman codes whose only scan has all
    /// components.
    pub(crate) const fn is_one_pass(self) -> bool {
        self.is_one_pass
    }

    /// The most scans that decoding an image of `width` x `height` pixels may take.
    ///
    /// # Errors
    /// Expected and found, where the file has more.
    pub(crate) fn limit(self, width: u32, height: u32) -> Result<u32, String> {
        let pixels = u64::from(width) * u64::from(height) * self.coding.cost();
        let most = (MAX_SCAN_PIXELS / pixels.max(1)).min(MAX_SCANS.into());
        if self.count > most {
            return Err(format!(
                "JPEG: expected at most {most} {} for {width} x {height} pixels, found {}",
                self.coding.name(),
                self.count
            ));
        }
        Ok(u32::try_from(most).unwrap_or(MAX_SCANS))
    }
}

impl Coding {
    const fn of_frame(marker: u8) -> Self {
        match marker {
            0xc9..=0xcf => Self::Arithmetic,
            _ if marker & 0b11 == 0b11 => Self::Lossless,
            _ => Self::Huffman,
        }
    }

    /// What a scan costs at worst, in scans by Huffman codes (0.5 ns a pixel).
    const fn cost(self) -> u64 {
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
