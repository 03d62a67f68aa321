//! Where strips and tiles lie in the image, and in the file.

use crate::{
    Error, Result,
    media::tiff::{Directory, Values, tag},
};

/// Strips or tiles of one size; those at the right and the lower edge may reach beyond the image.
pub(super) struct Grid<'a> {
    /// Of the image.
    pub(super) width: u32,
    pub(super) height: u32,
    /// Of a tile; a strip is as wide as the image.
    pub(super) chunk_width: u32,
    pub(super) chunk_height: u32,
    pub(super) tiled: bool,
    offsets: Values<'a>,
    lengths: Option<Values<'a>>,
}

/// One strip or tile, and what of it lies within the image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its number, in the first plane.
    pub(super) index: usize,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl<'a> Grid<'a> {
    /// More than so many chunks take longer to begin with than to decode.
    const MOST_CHUNKS: u64 = 1 << 20;

    /// `planes` is how many times the grid stands in the file, one after another.
    pub(super) fn read(directory: &Directory<'a>, width: u32, height: u32, planes: usize) -> Result<Self> {
        let tile = (
            directory.integer(tag::TILE_WIDTH)?,
            directory.integer(tag::TILE_LENGTH)?,
        );
        let (tiled, wide, high) = match tile {
            (Some(wide), Some(high)) => (true, wide, high),
            // A strip of more rows than the image has is one of all its rows; 0 is what some writers have for that.
            _ => match directory.integer(tag::ROWS_PER_STRIP)? {
                None | Some(0) => (false, width.into(), height.into()),
                Some(rows) => (false, width.into(), rows.min(height.into())),
            },
        };
        let side = |side: u64| u32::try_from(side).ok().filter(|side| *side > 0);
        let (Some(chunk_width), Some(chunk_height)) = (side(wide), side(high)) else {
            return Err(Error::undecodable(format!(
                "the TIFF has tiles of {wide} x {high} pixels: expected 1 to {} a side",
                u32::MAX
            )));
        };
        // libtiff takes the one for the other: they have the same meaning.
        let either = |first, second| match directory.find(first)? {
            Some(values) => Ok(Some(values)),
            None => directory.find(second),
        };
        let (offsets, lengths) = if tiled {
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
            tiled,
            offsets,
            lengths,
        };
        let expected = u64::from(grid.across()) * u64::from(grid.down());
        let expected = expected.saturating_mul(planes as u64);
        let what = grid.name();
        if expected > Self::MOST_CHUNKS {
            return Err(Error::undecodable(format!(
                "the TIFF has {expected} {what}s: expected at most {}",
                Self::MOST_CHUNKS
            )));
        }
        if (offsets.len() as u64) < expected {
            return Err(Error::undecodable(format!(
                "the TIFF says where {} {what}s are: expected {expected}",
                offsets.len()
            )));
        }
        Ok(grid)
    }

    /// `strip` or `tile`.
    pub(super) const fn name(&self) -> &'static str {
        if self.tiled { "tile" } else { "strip" }
    }

    const fn across(&self) -> u32 {
        self.width.div_ceil(self.chunk_width)
    }

    const fn down(&self) -> u32 {
        self.height.div_ceil(self.chunk_height)
    }

    /// All of one plane, row by row.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let rows = (0..self.height).step_by(self.chunk_height as usize);
        let place = move |y: u32| {
            let columns = (0..self.width).step_by(self.chunk_width as usize);
            columns.map(move |x| (x, y))
        };
        rows.flat_map(place).enumerate().map(|(index, (x, y))| Place {
            index,
            x,
            y,
            width: self.chunk_width.min(self.width - x),
            height: self.chunk_height.min(self.height - y),
        })
    }

    /// The chunk's number in the file, planes one after another.
    pub(super) const fn number(&self, plane: usize, place: Place) -> usize {
        plane * self.across() as usize * self.down() as usize + place.index
    }

    /// The bytes of the chunk `number`: to the end of `file` where their length is missing, or 0, or too long.
    ///
    /// # Errors
    /// `Undecodable` where they begin beyond the end of the file, or are not there.
    pub(super) fn stored<'b>(&self, file: &'b [u8], number: usize) -> Result<&'b [u8]> {
        let offset = self.offsets.integer(number)?;
        // Sparse files of GDAL: what pixels that were never written are, a tag of its own may tell.
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
