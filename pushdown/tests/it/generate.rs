//! Strategies that generate pipelines and images for property tests.

use std::io::Cursor;

use bytes::Bytes;
use image::{DynamicImage, ImageFormat, RgbImage};
use proptest::{prelude::*, sample::select};
use pushdown::Pipeline;
use turbojpeg::Subsamp;

/// A valid pipeline: `decode`, image steps, and possibly tensor steps.
pub(crate) fn pipeline() -> BoxedStrategy<Pipeline> {
    let images = prop::collection::vec(image_step(), 0..5);
    let ending = prop_oneof![
        1 => Just(vec![]),
        1 => encode().prop_map(|step| vec![step]),
        6 => (select(&["to_float", "to_tensor", "grayscale"]), prop::collection::vec(tensor_step(), 0..5))
            .prop_map(|(first, steps)| std::iter::once(first.to_owned()).chain(steps).collect()),
    ];
    (decode(), images, ending)
        .prop_map(|(decode, images, ending)| well_typed(decode, images.into_iter().chain(ending)))
        .boxed()
}

/// A pipeline of `first` and those of `steps` that accept the output before them.
fn well_typed(first: String, steps: impl Iterator<Item = String>) -> Pipeline {
    let text = steps.fold(first, |text, step| {
        let longer = format!("{text} | {step}");
        if Pipeline::parse(&longer).is_ok() {
            longer
        } else {
            text
        }
    });
    Pipeline::parse(&text).expect("every prefix is valid")
}

fn decode() -> BoxedStrategy<String> {
    let scaling = prop_oneof![
        4 => Just(String::new()),
        1 => (1_u32..40).prop_map(|side| format!("min_short={side}")),
        1 => (1_u32..40).prop_map(|side| format!("min_long={side}")),
    ];
    (select(&["", "orient=exif"]), scaling)
        .prop_map(|(orient, scaling)| {
            let arguments: Vec<&str> = [orient, &scaling]
                .into_iter()
                .filter(|argument| !argument.is_empty())
                .collect();
            if arguments.is_empty() {
                "decode".to_owned()
            } else {
                format!("decode({})", arguments.join(", "))
            }
        })
        .boxed()
}

fn encode() -> BoxedStrategy<String> {
    prop_oneof![
        (1_u32..=100).prop_map(|quality| format!("encode(jpeg, quality={quality})")),
        select(&["encode(png)", "encode(webp)", "encode(jpeg)"]).prop_map(str::to_owned),
    ]
    .boxed()
}

fn side() -> BoxedStrategy<u32> {
    prop_oneof![3 => 1_u32..80, 1 => 80_u32..300].boxed()
}

fn image_step() -> BoxedStrategy<String> {
    let size = prop_oneof![
        (side(), side()).prop_map(|(w, h)| format!("{w}, {h}")),
        side().prop_map(|side| format!("short={side}")),
        side().prop_map(|side| format!("long={side}")),
    ];
    let filter = select(&["bilinear", "bicubic", "lanczos", "nearest"]);
    let interpolated = select(&["bilinear", "bicubic"]);
    prop_oneof![
        6 => (size.clone(), filter.clone()).prop_map(|(size, filter)| format!("resize({size}, filter={filter})")),
        1 => (size, interpolated).prop_map(|(size, filter)| format!("resize({size}, filter={filter}, antialias=false)")),
        3 => (0_u32..50, 0_u32..50, side(), side()).prop_map(|(x, y, w, h)| format!("crop({x}, {y}, {w}, {h})")),
        4 => (side(), side()).prop_map(|(w, h)| format!("center_crop({w}, {h})")),
        1 => (encode(), decode()).prop_map(|(encode, decode)| format!("{encode} | {decode}")),
        6 => random_step(filter),
    ]
    .boxed()
}

fn random_step(filter: impl Strategy<Value = &'static str> + 'static) -> BoxedStrategy<String> {
    let seed = prop_oneof![
        Just(String::new()),
        (0..i64::MAX).prop_map(|seed| format!(", seed={seed}"))
    ];
    let part = (0.01..1.0_f64, 0.0..1.0_f64, side(), side(), filter).prop_map(|(low, more, w, h, filter)| {
        format!(
            "random_resized_crop({w}, {h}, scale=[{low}, {}], filter={filter}",
            low + more
        )
    });
    let crop = (1_u32..40, 1_u32..40, 0_u32..60, any::<bool>()).prop_map(|(w, h, padding, pad)| {
        format!("random_crop({w}, {h}, padding={padding}, pad_if_needed={pad}")
    });
    let jitter = (0.0..1.0_f64, 0.0..1.0_f64, 0.0..1.0_f64, 0.0..0.5_f64).prop_map(
        |(brightness, contrast, saturation, hue)| {
            format!("color_jitter({brightness}, contrast={contrast}, saturation={saturation}, hue={hue}")
        },
    );
    let flip = (0.0..=1.0_f64).prop_map(|p| format!("flip_h({p}"));
    (prop_oneof![part, crop, jitter, flip], seed)
        .prop_map(|(step, seed)| format!("{step}{seed})"))
        .boxed()
}

fn tensor_step() -> BoxedStrategy<String> {
    let numbers = || prop::collection::vec(-2.0..2.0_f32, 3);
    prop_oneof![
        Just("normalize(imagenet)".to_owned()),
        (-1.0..1.0_f32, 0.01..2.0_f32).prop_map(|(mean, std)| format!("normalize(mean={mean}, std={std})")),
        numbers().prop_map(|mean| format!("normalize(mean={mean:?}, std=[0.5, 0.25, 0.1])")),
        select(&["layout(chw)", "layout(hwc)"]).prop_map(str::to_owned),
        select(&["u8", "i8", "i32", "i64", "f16", "bf16", "f32"]).prop_map(|dtype| format!("cast({dtype})")),
        Just("quantize(int8)".to_owned()),
        (0.001..1.0_f32).prop_map(|scale| format!("quantize(int8, scale={scale})")),
        Just("dequantize".to_owned()),
        Just("to_float".to_owned()),
    ]
    .boxed()
}

/// An object: an image in one of the formats, sometimes truncated.
pub(crate) fn object() -> BoxedStrategy<Bytes> {
    let size = prop_oneof![6 => (1_u32..64, 1_u32..64), 1 => (100_u32..400, 100_u32..300)];
    let whole = (size, any::<u64>(), any::<bool>(), select(&ObjectFormat::ALL)).prop_map(
        |((width, height), seed, noise, format)| format.encode(&picture(width, height, seed, noise)),
    );
    (
        whole,
        prop_oneof![9 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)],
    )
        .prop_map(|(bytes, cut)| {
            let end = cut.map_or(bytes.len(), |cut| cut.index(bytes.len()));
            bytes.slice(..end)
        })
        .boxed()
}

/// Noise, or a gradient with a little noise.
pub(crate) fn picture(width: u32, height: u32, seed: u64, noise: bool) -> RgbImage {
    let mut state = seed | 1;
    let mut byte = move || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes()[0]
    };
    RgbImage::from_fn(width, height, |x, y| {
        let ramp = [
            x * 255 / width,
            y * 255 / height,
            (x + y) * 255 / (width + height),
        ];
        image::Rgb(ramp.map(|level| {
            let level = u8::try_from(level).unwrap_or(u8::MAX);
            if noise {
                byte()
            } else {
                level.saturating_add(byte() % 4)
            }
        }))
    })
}

/// The encoding of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectFormat {
    /// JPEGs with different chroma subsampling.
    Jpeg,
    Jpeg422,
    Jpeg420,
    Jpeg411,
    GreyJpeg,
    Png,
    Png16,
    GreyPng,
    AlphaPng,
    Webp,
    Gif,
    Bmp,
    Tiff,
}

impl ObjectFormat {
    pub(crate) const ALL: [Self; 13] = [
        Self::Jpeg,
        Self::Jpeg422,
        Self::Jpeg420,
        Self::Jpeg411,
        Self::GreyJpeg,
        Self::Png,
        Self::Png16,
        Self::GreyPng,
        Self::AlphaPng,
        Self::Webp,
        Self::Gif,
        Self::Bmp,
        Self::Tiff,
    ];

    pub(crate) fn encode(self, picture: &RgbImage) -> Bytes {
        let dynamic = DynamicImage::ImageRgb8(picture.clone());
        match self {
            Self::Jpeg => jpeg(picture, Subsamp::None),
            Self::Jpeg422 => jpeg(picture, Subsamp::Sub2x1),
            Self::Jpeg420 => jpeg(picture, Subsamp::Sub2x2),
            Self::Jpeg411 => jpeg(picture, Subsamp::Sub4x1),
            Self::GreyJpeg => jpeg(picture, Subsamp::Gray),
            Self::Png => encoded(&dynamic, ImageFormat::Png),
            Self::Png16 => encoded(&dynamic.into_rgb16().into(), ImageFormat::Png),
            Self::GreyPng => encoded(&dynamic.into_luma8().into(), ImageFormat::Png),
            Self::AlphaPng => encoded(&dynamic.into_rgba8().into(), ImageFormat::Png),
            Self::Webp => encoded(&dynamic, ImageFormat::WebP),
            Self::Gif => encoded(&dynamic.into_rgba8().into(), ImageFormat::Gif),
            Self::Bmp => encoded(&dynamic, ImageFormat::Bmp),
            Self::Tiff => tiff(picture),
        }
    }
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Bytes {
    let mut out = Cursor::new(Vec::new());
    image
        .write_to(&mut out, format)
        .expect("the encoder accepts any image of this size");
    out.into_inner().into()
}

/// A TIFF with one uncompressed strip. The `image` crate is built without its TIFF codec.
fn tiff(picture: &RgbImage) -> Bytes {
    const ENTRIES: u32 = 6;
    let start = 8 + 2 + 12 * ENTRIES + 4;
    // ImageWidth, ImageLength, BitsPerSample, PhotometricInterpretation, StripOffsets and SamplesPerPixel.
    let tags: [(u16, u32); ENTRIES as usize] = [
        (256, picture.width()),
        (257, picture.height()),
        (258, 8),
        (262, 2),
        (273, start),
        (277, 3),
    ];
    let mut file = b"II*\0\x08\0\0\0\x06\0".to_vec();
    for (tag, value) in tags {
        file.extend_from_slice(&tag.to_le_bytes());
        file.extend_from_slice(b"\x04\0\x01\0\0\0");
        file.extend_from_slice(&value.to_le_bytes());
    }
    file.extend_from_slice(&[0; 4]);
    file.extend_from_slice(picture.as_raw());
    file.into()
}

fn jpeg(picture: &RgbImage, subsampling: Subsamp) -> Bytes {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let image = turbojpeg::Image {
        pixels: picture.as_raw().as_slice(),
        width,
        pitch: width * 3,
        height,
        format: turbojpeg::PixelFormat::RGB,
    };
    let jpeg = turbojpeg::compress(image, 85, subsampling).expect("an image of this size");
    Bytes::copy_from_slice(&jpeg)
}
