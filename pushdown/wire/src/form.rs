//! The forms of an encoded value, and their negotiation by `Accept`.

use pushdown_core::{DType, Kind};

/// The encoding of a value as a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The file format of NumPy, without bf16.
    Npy,
    /// An Arrow IPC stream: the rows of a table, or an array as one record batch with one row and one column, `value`.
    ArrowStream,
    /// safetensors, with one tensor, `value`.
    Safetensors,
    /// Raw little-endian elements, described by headers, or bytes as `application/octet-stream`.
    Raw,
    /// Bytes with the content type of their image format.
    Encoded,
}

impl Form {
    /// The forms that support this kind, with the default first.
    pub const fn offered(kind: &Kind) -> &'static [Self] {
        match kind {
            Kind::Bytes(_) => &[Self::Encoded, Self::Raw],
            Kind::Tensor(tensor) if matches!(tensor.dtype, DType::Bf16) => {
                &[Self::Safetensors, Self::ArrowStream, Self::Raw]
            }
            Kind::Table(_) => &[Self::ArrowStream],
            Kind::Image(_) | Kind::Tensor(_) => &[Self::Npy, Self::ArrowStream, Self::Safetensors, Self::Raw],
        }
    }

    /// The `Content-Type` of a value of kind `kind` in this form.
    pub const fn content_type(self, kind: &Kind) -> &'static str {
        match (self, kind) {
            (Self::Npy, _) => "application/x-npy",
            (Self::ArrowStream, _) => "application/vnd.apache.arrow.stream",
            (Self::Safetensors, _) => "application/vnd.safetensors",
            (Self::Encoded, Kind::Bytes(bytes)) => match bytes.media {
                Some(media) => media.content_type(),
                None => "application/octet-stream",
            },
            (Self::Raw | Self::Encoded, _) => "application/octet-stream",
        }
    }

    /// The preferred form of a caller with this `Accept` header; `None` if it accepts none.
    ///
    /// Join several `Accept` headers with commas. Without the header, all forms are accepted. Among forms of equal quality,
    /// the order of [`offered`](Self::offered) decides. Invalid elements of the header are ignored.
    pub fn negotiate(accept: Option<&str>, kind: &Kind) -> Option<Self> {
        choose(accept, Self::offered(kind), |form, ranges| {
            form.quality(kind, ranges)
        })
    }

    /// The quality of this form in thousandths, from the most specific matching range.
    fn quality(self, kind: &Kind, ranges: &[MediaRange<'_>]) -> u16 {
        // Until the object is read, bytes may be an image of any format.
        let any_image = matches!((self, kind), (Self::Encoded, Kind::Bytes(bytes)) if bytes.media.is_none());
        quality(self.content_type(kind), any_image, ranges)
    }
}

/// The preferred one of `offered` for this `Accept` header, by content type only.
pub(super) fn negotiate<F: Copy>(
    accept: Option<&str>,
    offered: &[F],
    content_type: impl Fn(F) -> &'static str,
) -> Option<F> {
    choose(accept, offered, |form, ranges| {
        quality(content_type(form), false, ranges)
    })
}

/// Whether an `Accept` header has this content type with a parameter of this value.
pub(super) fn has_parameter(accept: &str, content_type: &str, parameter: &str, value: &str) -> bool {
    accept.split(',').any(|element| {
        let mut parts = element.split(';').map(str::trim);
        let is = |part: &str| {
            let (name, found) = part.split_once('=').unwrap_or_default();
            name.trim_end().eq_ignore_ascii_case(parameter) && found.trim_start().eq_ignore_ascii_case(value)
        };
        parts
            .next()
            .is_some_and(|found| found.eq_ignore_ascii_case(content_type))
            && parts.any(is)
    })
}

/// The form of the highest quality; the first one among equals.
fn choose<F: Copy>(
    accept: Option<&str>,
    offered: &[F],
    quality: impl Fn(F, &[MediaRange<'_>]) -> u16,
) -> Option<F> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return offered.first().copied();
    };
    let ranges: Vec<MediaRange<'_>> = accept.split(',').filter_map(MediaRange::parse).collect();
    let mut best = None;
    for form in offered {
        let quality = quality(*form, &ranges);
        if quality > best.map_or(0, |(quality, _)| quality) {
            best = Some((quality, *form));
        }
    }
    best.map(|(_, form)| form)
}

/// The quality of a content type in thousandths, from the most specific matching range.
fn quality(content_type: &str, any_image: bool, ranges: &[MediaRange<'_>]) -> u16 {
    let (main, sub) = content_type.split_once('/').unwrap_or_default();
    let specificity = |range: &MediaRange<'_>| match (range.main, range.sub) {
        ("*", "*") => Some(0),
        (range_main, "*") if range_main.eq_ignore_ascii_case(main) => Some(1),
        (range_main, range_sub)
            if range_main.eq_ignore_ascii_case(main) && range_sub.eq_ignore_ascii_case(sub) =>
        {
            Some(2)
        }
        (range_main, _) if any_image && range_main.eq_ignore_ascii_case("image") => Some(1),
        _ => None,
    };
    let rated = ranges
        .iter()
        .filter_map(|range| Some((specificity(range)?, range.quality)));
    rated.max().map_or(0, |(_, quality)| quality)
}

/// An element of an `Accept` header.
#[derive(Debug, Clone, Copy)]
struct MediaRange<'a> {
    main: &'a str,
    sub: &'a str,
    /// Thousandths.
    quality: u16,
}

impl<'a> MediaRange<'a> {
    fn parse(element: &'a str) -> Option<Self> {
        let mut parts = element.split(';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let quality = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        Some(Self {
            main,
            sub,
            quality: quality.map_or(Some(1000), thousandths)?,
        })
    }
}

/// A quality value: `0`, `1`, or with up to three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() != 1 || decimals.len() > 3 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let value = format!("{whole}{decimals:0<3}").parse().ok()?;
    (value <= 1000).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushdown_core::{BytesKind, ImageKind, Layout, MediaType, TensorKind};

    fn tensor(dtype: DType) -> Kind {
        Kind::Tensor(TensorKind {
            dtype,
            layout: Layout::Chw,
            shape: vec![Some(3)],
            quantized: false,
        })
    }

    fn bytes(media: Option<MediaType>) -> Kind {
        Kind::Bytes(BytesKind {
            media,
            ..BytesKind::default()
        })
    }

    #[test]
    fn negotiation_uses_quality_then_specificity_then_default() {
        let f32s = tensor(DType::F32);
        for (accept, expected) in [
            (None, Some(Form::Npy)),
            (Some(""), Some(Form::Npy)),
            (Some("*/*"), Some(Form::Npy)),
            (Some("application/*"), Some(Form::Npy)),
            (Some("APPLICATION/Vnd.Safetensors"), Some(Form::Safetensors)),
            (Some("application/octet-stream"), Some(Form::Raw)),
            (
                Some("text/html, application/vnd.apache.arrow.stream;q=0.5"),
                Some(Form::ArrowStream),
            ),
            (
                Some("application/x-npy;q=0.1, application/octet-stream; q=0.2"),
                Some(Form::Raw),
            ),
            (Some("application/x-npy;q=0, */*;q=0.1"), Some(Form::ArrowStream)),
            (
                Some("*/*;q=0.9, application/octet-stream;q=1.000"),
                Some(Form::Raw),
            ),
            (
                Some("application/vnd.safetensors;v=1;Q=1, */*;q=0.1"),
                Some(Form::Safetensors),
            ),
            (Some("text/html"), None),
            (Some("image/*"), None),
            (Some("*/*;q=0"), None),
            (Some("application/x-npy;q=2"), None),
            (Some("nonsense"), None),
        ] {
            assert_eq!(Form::negotiate(accept, &f32s), expected, "{accept:?}");
        }
    }

    #[test]
    fn bf16_is_never_npy() {
        let kind = tensor(DType::Bf16);
        assert_eq!(Form::negotiate(None, &kind), Some(Form::Safetensors));
        assert_eq!(Form::negotiate(Some("application/x-npy"), &kind), None);
        assert_eq!(
            Form::negotiate(Some("application/x-npy, */*;q=0.1"), &kind),
            Some(Form::Safetensors)
        );
    }

    #[test]
    fn encoded_images_have_their_own_content_type() {
        let jpeg = bytes(Some(MediaType::Jpeg));
        for accept in [None, Some("image/*"), Some("image/jpeg"), Some("*/*")] {
            assert_eq!(Form::negotiate(accept, &jpeg), Some(Form::Encoded), "{accept:?}");
        }
        assert_eq!(Form::Encoded.content_type(&jpeg), "image/jpeg");
        assert_eq!(
            Form::negotiate(Some("application/octet-stream"), &jpeg),
            Some(Form::Raw)
        );
        assert_eq!(Form::Raw.content_type(&jpeg), "application/octet-stream");
        assert_eq!(Form::negotiate(Some("image/png"), &jpeg), None);
        assert_eq!(
            Form::negotiate(Some("image/png"), &bytes(None)),
            Some(Form::Encoded),
            "the object has not been read yet"
        );
        assert_eq!(
            Form::Encoded.content_type(&bytes(None)),
            "application/octet-stream"
        );
    }

    #[test]
    fn pixels_are_tensors_on_the_wire() {
        assert_eq!(
            Form::negotiate(None, &Kind::Image(ImageKind::default())),
            Some(Form::Npy)
        );
    }

    #[test]
    fn quality_values() {
        for (text, expected) in [
            ("1", Some(1000)),
            ("0.5", Some(500)),
            ("0.001", Some(1)),
            ("1.", Some(1000)),
            ("0", Some(0)),
        ] {
            assert_eq!(thousandths(text), expected, "{text}");
        }
        for text in ["", ".5", "1.001", "0.0001", "-1", "+1", "0,5", "NaN"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }
}
