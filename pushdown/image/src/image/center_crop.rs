//! `center_crop`: the center of an image.

use super::{Geometry, Rectangle, Window};
use pushdown_core::{
    Family, Image, ImageKind, Result,
    language::{Args, Param, Side, Value},
    step::{Operator, Scope},
};

/// `center_crop`, with the rounding and the zero padding of torchvision's `CenterCrop`.
#[derive(Debug, Clone, PartialEq)]
pub struct CenterCrop {
    width: u32,
    height: u32,
}

impl Operator for CenterCrop {
    type Input = Image;
    type Output = Image;

    const NAME: &'static str = "center_crop";
    const SUMMARY: &'static str = "the center of the image, padded with zeros if the image is smaller";
    const FAMILIES: &'static [Family] = &[Family::Resample];
    const PARAMS: &'static [Param] = &[
        Param::positional("w", "pixels", "width"),
        Param::positional("h", "pixels = w", "height"),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let Side(width) = args.required("w")?;
        let Side(height) = args.optional("h")?.unwrap_or(Side(width));
        Ok(Self { width, height })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let height = (self.height != self.width).then(|| ("h", Value::Int(self.height.into())));
        std::iter::once(("w", Value::Int(self.width.into())))
            .chain(height)
            .collect()
    }

    fn output(&self, _: &ImageKind) -> Result<ImageKind, String> {
        Ok(ImageKind {
            width: Some(self.width),
            height: Some(self.height),
        })
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Image> {
        let geometry = Geometry::crop(self.rectangle(input.width(), input.height()));
        Ok(geometry.apply(&Window::whole(input)))
    }
}

impl CenterCrop {
    /// The rectangle of an image of `width` x `height`.
    pub fn rectangle(&self, width: u32, height: u32) -> Rectangle {
        Rectangle {
            x: offset(width, self.width),
            y: offset(height, self.height),
            width: self.width,
            height: self.height,
        }
    }
}

/// Half of the difference. Torchvision rounds half to even when it crops, and toward 0 when it pads.
fn offset(input: u32, output: u32) -> i64 {
    let excess = i64::from(input) - i64::from(output);
    let half = excess.div_euclid(2);
    match excess {
        ..0 => -(-excess / 2),
        _ if excess % 2 == 1 && half % 2 == 1 => half + 1,
        _ => half,
    }
}
