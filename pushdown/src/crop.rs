//! Cropped JPEGs: what a pipeline reads of a JPEG, sent in place of the object.
//!
//! Exactly for the sequences of steps for which a fused decode reads a region, by the code of the fusion.

use bytes::Bytes;

use crate::{
    BytesKind, Context, CroppedJpeg, ImageHeader, Kind, Limits, MediaType, Pipeline, Result, Subsampling,
    fuse::{RegionDecode, region_decode},
    step::Scope,
};

/// Bytes per pixel of the coefficients of a JPEG: three components of 16 bits each.
const COEFFICIENT_BYTES: u64 = 6;

/// Maximum side of a block of all components (MCU) in pixels. Coefficients are stored for whole blocks.
const MAX_BLOCK: u64 = 32;

/// Seed of the draws for the expected share of blocks.
const SHARE_SEED: u64 = 0;

impl Pipeline {
    /// Number of steps at the start that fix the region that is read of a JPEG: `decode` and the transform after it. What they
    /// depend on, a cropped JPEG depends on: the families of the steps, their canonical text, the seed and the epoch.
    ///
    /// `None` if the pipeline reads every object as a whole.
    pub fn crop_steps(&self) -> Option<usize> {
        region_decode(self.steps()).map(|(steps, _)| steps)
    }

    /// The file of only the blocks of `object` that the pipeline reads; `None` if the object has to be sent as a whole: one that
    /// is no JPEG or a faulty one, a coding whose parts have no file of their own, and a part that is hardly smaller.
    ///
    /// [`run`](Self::run) accepts it in place of the object.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a random step without seed or epoch; those of
    /// [`Cancellation::check`](crate::Cancellation::check).
    pub fn crop_jpeg(&self, object: &Bytes, context: &Context<'_>) -> Result<Option<CroppedJpeg>> {
        let Some((steps, fused)) = region_decode(self.steps()) else {
            return Ok(None);
        };
        let scope = self.scope(steps - 1, context)?;
        context.cancellation.check()?;
        let kind = Kind::of_object(Some(object.len() as u64), object);
        if self.check(0..steps, &kind, &context.limits).is_err() {
            // Whoever runs the steps on the whole reports that.
            return Ok(None);
        }
        let header = ImageHeader::read(object).filter(|header| header.media == MediaType::Jpeg);
        match header.and_then(|header| fused.region(&header, &scope)) {
            Some(region) => fused.decode.crop(object, &scope, region),
            None => Ok(None),
        }
    }

    /// Upper bound of the memory of [`crop_jpeg`](Self::crop_jpeg) in bytes, without the object. `None` if it returns `None` for an object
    /// of which this is known.
    pub fn crop_memory(&self, object: &BytesKind, limits: &Limits) -> Option<u64> {
        let header = object.header.filter(|header| header.media == MediaType::Jpeg)?;
        if header.pixels() > limits.max_pixels {
            return None;
        }
        let steps = self.crop_steps()?;
        self.check(0..steps, &Kind::Bytes(*object), limits).ok()?;
        let side = |side: u32| u64::from(side).next_multiple_of(MAX_BLOCK);
        let coefficients = side(header.width) * side(header.height) * COEFFICIENT_BYTES;
        Some(coefficients.saturating_add(object.length?))
    }

    /// The share of the blocks that [`crop_jpeg`](Self::crop_jpeg) keeps of a JPEG of `size`, width and height; 1 if it is sent
    /// as a whole for its size. `None` if every object is sent as a whole, or if a random step has no seed or epoch.
    pub fn crop_share(
        &self,
        size: (u32, u32),
        subsampling: Subsampling,
        context: &Context<'_>,
    ) -> Option<f64> {
        let (steps, fused) = region_decode(self.steps())?;
        let scope = self.scope(steps - 1, context).ok()?;
        Some(share(&fused, size, subsampling, &scope))
    }

    /// The mean of [`crop_share`](Self::crop_share) over `draws` samples; over one if no step that fixes the region is random.
    pub fn expected_crop_share(&self, size: (u32, u32), subsampling: Subsampling, draws: u32) -> Option<f64> {
        let draws = if self.is_random(self.crop_steps()?) {
            draws.max(1)
        } else {
            1
        };
        let shares = (0..draws).map(|draw| {
            let id = draw.to_le_bytes();
            let context = Context::new(&id).with_randomness(SHARE_SEED, 0);
            self.crop_share(size, subsampling, &context)
        });
        Some(shares.sum::<Option<f64>>()? / f64::from(draws))
    }

    /// Whether the steps up to `stage` decode no more than the part of an object that a cropped JPEG has.
    pub(crate) fn decodes_a_region(&self, stage: usize) -> bool {
        self.crop_steps().is_some_and(|steps| steps <= stage)
    }
}

fn share(
    fused: &RegionDecode<'_>,
    (width, height): (u32, u32),
    subsampling: Subsampling,
    scope: &Scope<'_>,
) -> f64 {
    let header = ImageHeader::upright_jpeg(width, height);
    fused.region(&header, scope).map_or(1.0, |region| {
        fused.decode.crop_share(&header, subsampling, region)
    })
}
