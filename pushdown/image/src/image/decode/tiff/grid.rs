//! The positions of strips and tiles in the image and in the file.

use pushdown_core::{
    Error, Result,
    media::tiff::{TagValues, TiffDirectory, tag},
};

/// Strips or tiles (chunks) of equal size. Those at the right and the lower edge may extend beyond the image.
pub(super) struct Grid<'a> {
    /// Width of the image.
    pub(super) width: u32,
    /// Height of the image.
    pub(super) height: u32,
    /// Width of a tile. A strip is as wide as the image.
    pub(super) chunk_width: u32,
    pub(super) chunk_height: u32,
    pub(super) is_tiled: bool,
    offsets: TagValues<'a>,
    lengths: Option<TagValues<'a>>,
}

/// The part of a strip or tile that is within the image.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkArea {
    /// Index of the chunk in its plane.
    pub(super) index: usize,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl<'a> Grid<'a> {
    /// Maximum number of chunks. With more, the overhead per chunk exceeds the time to decode.
    const MAX_CHUNKS: u64 = 1 << 20;

    /// `planes` is the number of copies of the grid in the file, one after the other.
    pub(super) fn read(
        directory: &TiffDirectory<'a>,
        width: u32,
        height: u32,
        planes: usize,
    ) -> Result<Self> {
        let tile_size = (
            directory.integer(tag::TILE_WIDTH)?,
            directory.integer(tag::TILE_LENGTH)?,
        );
        let (is_tiled, chunk_width, chunk_height) = match tile_size {
            (Some(width), Some(height)) => (true, width, height),
            // A strip with more rows than the image has all its rows. Some writers use 0 for that.
            _ => match directory.integer(tag::ROWS_PER_STRIP)? {
                None | Some(0) => (false, width.into(), height.into()),
                Some(rows) => (false, width.into(), rows.min(height.into())),
            },
        };
        let side = |side: u64| u32::try_from(side).ok().filter(|side| *side > 0);
        let (Some(chunk_width), Some(chunk_height)) = (side(chunk_width), side(chunk_height)) else {
            return Err(Error::undecodable(format!(
                "the TIFF has tiles of {chunk_width} x {chunk_height} pixels: expected 1 to {} a side",
                u32::MAX
            )));
        };
        // As in libtiff, either tag is accepted: they have the same meaning.
        let either = |first, second| match directory.find(first)? {
            Some(values) => Ok(Some(values)),
            None => directory.find(second),
        };
        let (offsets, lengths) = if is_tiled {
            (
                either(tag::TILE_OFFSETS, tag::STRIP_OFFSETS)?,
                either(tag::TILE_BYTE_COUNTS, tag::STRIP_BYTE_COUNTS)?,
            )
        } else {
            (
                either(tag::STRIP_OFFSETS, tag::TILE_OFFSETS)?,
                either(tag::STRIP_BYTE_COUNTS, tag::TILE_BYTE_COUNTS)?,
            )
        };
        let offsets = offsets.ok_or_else(|| {
            Error::undecodable(format!(
                "the TIFF has no pixels: expected tag {} (StripOffsets) or {} (TileOffsets)",
                tag::STRIP_OFFSETS,
                tag::TILE_OFFSETS
            ))
        })?;
        let grid = Self {
            width,
            height,
            chunk_width,
            chunk_height,
            is_tiled,
            offsets,
            lengths,
        };
        let expected = u64::from(grid.columns()) * u64::from(grid.rows());
        let expected = expected.saturating_mul(planes as u64);
        let name = grid.name();
        if expected > Self::MAX_CHUNKS {
            return Err(Error::undecodable(format!(
                "the TIFF has {expected} {name}s: expected at most {}",
                Self::MAX_CHUNKS
            )));
        }
        if (offsets.len() as u64) < expected {
            return Err(Error::undecodable(format!(
                "the TIFF has the offsets of {} {name}s: expected {expected}",
                offsets.len()
            )));
        }
        Ok(grid)
    }

    /// `strip` or `tile`.
    pub(super) const fn name(&self) -> &'static str {
        if self.is_tiled { "tile" } else { "strip" }
    }

    const fn columns(&self) -> u32 {
        self.width.div_ceil(self.chunk_width)
    }

    const fn rows(&self) -> u32 {
        self.height.div_ceil(self.chunk_height)
    }

    /// The areas of the chunks of one plane, row by row.
    pub(super) fn areas(&self) -> impl Iterator<Item = ChunkArea> {
        let rows = (0..self.height).step_by(self.chunk_height as usize);
        let positions = move |y: u32| {
            let columns = (0..self.width).step_by(self.chunk_width as usize);
            columns.map(move |x| (x, y))
        };
        rows.flat_map(positions)
            .enumerate()
            .map(|(index, (x, y))| ChunkArea {
                index,
                x,
                y,
                width: self.chunk_width.min(self.width - x),
                height: self.chunk_height.min(self.height - y),
            })
    }

    /// The number of a chunk in the file, where planes are stored one after the other.
    pub(super) const fn number(&self, plane: usize, area: ChunkArea) -> usize {
        plane * self.columns() as usize * self.rows() as usize + area.index
    }

    /// The stored bytes of the chunk `number`. They extend to the end of `file` if their length is missing, 0 or too long.
    ///
    /// # Errors
    /// `Undecodable` for a chunk that is not stored, and for an offset beyond the end of the file.
    pub(super) fn stored<'b>(&self, file: &'b [u8], number: usize) -> Result<&'b [u8]> {
        let offset = self.offsets.integer(number)?;
        // GDAL writes sparse files, and may store the value of missing pixels in a private tag.
        if offset == 0 {
            return Err(Error::undecodable(format!(
                "the TIFF is sparse: expected all of its {}s, found none for number {number}",
                self.name()
            )));
        }
        let length = match &self.lengths {
            Some(lengths) if number < lengths.len() => lengths.integer(number)?,
            _ => 0,
        };
        let rest = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let rest = rest.ok_or_else(|| {
            Error::undecodable(format!(
                "the TIFF's {} {number} is at byte {offset}: expected it within the {} bytes of the file",
                self.name(),
                file.len()
            ))
        })?;
        let length = usize::try_from(length).ok().filter(|length| *length > 0);
        Ok(length.and_then(|length| rest.get(..length)).unwrap_or(rest))
    }
}
