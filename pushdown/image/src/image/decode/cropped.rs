//! Cropped JPEGs in the place of objects that `decode` reads.

use super::{
    Decode, Region, Window, check_pixels,
    jpeg::{self, BlockGrid},
};
use pushdown_core::{CroppedJpeg, ImageHeader, MediaType, Result, media::Subsampling, step::Scope};

impl Decode {
    /// A file of only the blocks that decoding `region` reads; `None` if the object has to be sent as a whole: a coding whose
    /// parts have no file of their own, a faulty file, and a part that is hardly smaller than the whole.
    ///
    /// `region` requires an image for which [`size_for_regions`](Self::size_for_regions) returns a size.
    ///
    /// # Errors
    /// Those of [`Cancellation::check`](pushdown_core::Cancellation::check).
    pub fn crop(&self, input: &[u8], scope: &Scope<'_>, region: Region) -> Result<Option<CroppedJpeg>> {
        let header = ImageHeader::read(input).filter(|header| header.media == MediaType::Jpeg);
        match header {
            Some(header) if header.pixels() <= scope.limits.max_pixels => {
                let divisor = self.scaling.divisor(&header);
                jpeg::crop(input, &header, divisor, region, scope.cancellation)
            }
            _ => Ok(None),
        }
    }

    /// Decodes at least `region` of the whole image from the file that [`crop`](Self::crop) makes for it. The pixels are those of
    /// the whole.
    ///
    /// # Errors
    /// `Undecodable` for any other file, and for a whole past the limit on pixels; those of
    /// [`Cancellation::check`](pushdown_core::Cancellation::check).
    pub fn decode_crop(&self, crop: &CroppedJpeg, scope: &Scope<'_>, region: Region) -> Result<Window> {
        let header = crop.header();
        check_pixels(&header, scope.limits)?;
        jpeg::decode_crop(crop, self.scaling.divisor(&header), region, scope.cancellation)
    }

    /// The share of the blocks of a JPEG that a file of `region` has, 1 if the whole is sent for it. `region` is in pixels of the
    /// decoded image, whose stored size is that of `header`.
    pub fn crop_share(&self, header: &ImageHeader, subsampling: Subsampling, region: Region) -> f64 {
        let grid = BlockGrid {
            width: header.width,
            height: header.height,
            subsampling,
            divisor: self.scaling.divisor(header),
        };
        let crop = grid.crop(region);
        if grid.is_worthwhile(crop) {
            grid.share(crop)
        } else {
            1.0
        }
    }
}
