//! Extensions of the files of samples.

use bytes::Bytes;
use pushdown_core::{BytesKind, DType, ImageHeader, Kind, MediaType};
use pushdown_wire::Form;

/// Extension of bytes of which nothing is known.
pub(crate) const BINARY: &str = "bin";
/// Most bytes of the extension of a key that the file in a part gets, too.
const MAX_OWN_BYTES: usize = 16;

/// The extension of files in an image format.
pub(crate) const fn of_media(media: MediaType) -> &'static str {
    match media {
        MediaType::Jpeg => "jpg",
        MediaType::Png => "png",
        MediaType::Webp => "webp",
        MediaType::Gif => "gif",
        MediaType::Bmp => "bmp",
        MediaType::Tiff => "tiff",
    }
}

/// The form of arrays of this kind in a file of their own, and its extension. NumPy's has neither bf16 nor a scale.
pub(crate) fn of_array(kind: &Kind) -> (Form, &'static str) {
    match kind {
        Kind::Tensor(tensor) if tensor.quantized || tensor.dtype == DType::Bf16 => {
            (Form::Safetensors, "safetensors")
        }
        _ => (Form::Npy, "npy"),
    }
}

/// The extension of bytes: by their signature if they are an image, or else that of the sample's name in lower case, or else `bin`.
pub(crate) fn of_bytes(kind: &BytesKind, bytes: &Bytes, name: &str) -> String {
    match (kind.media.or_else(|| media(bytes)), split(name)) {
        (Some(media), _) => of_media(media).to_owned(),
        (None, (_, Some(own))) => own.to_ascii_lowercase(),
        (None, (_, None)) => BINARY.to_owned(),
    }
}

fn media(bytes: &Bytes) -> Option<MediaType> {
    MediaType::sniff(bytes).filter(|media| match media {
        // Its signature is `BM`: texts may begin with that.
        MediaType::Bmp => ImageHeader::read(bytes).is_some(),
        _ => true,
    })
}

/// Splits a name before its extension: what follows the last dot of the file name, if that is short and alphanumeric.
pub(crate) fn split(name: &str) -> (&str, Option<&str>) {
    let file = name.rfind('/').map_or(0, |slash| slash + 1);
    match name.rsplit_once('.') {
        Some((stem, own))
            if stem.len() > file
                && (1..=MAX_OWN_BYTES).contains(&own.len())
                && own.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            (stem, Some(own))
        }
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_before_their_extension() {
        for (name, stem, own) in [
            ("a.jpg", "a", Some("jpg")),
            ("a.b/c.tar.GZ", "a.b/c.tar", Some("GZ")),
            ("a", "a", None),
            ("a.b/c", "a.b/c", None),
            (".jpg", ".jpg", None),
            ("a/.jpg", "a/.jpg", None),
            ("a.", "a.", None),
            ("a.b c", "a.b c", None),
            ("a.ä", "a.ä", None),
            ("a.12345678901234567", "a.12345678901234567", None),
            ("", "", None),
        ] {
            assert_eq!(split(name), (stem, own), "{name}");
        }
    }

    #[test]
    fn the_content_determines_the_extension_before_the_name() {
        let any = BytesKind::default();
        let png = BytesKind {
            media: Some(MediaType::Png),
            ..any
        };
        let gif = Bytes::from_static(b"GIF89a\x02\0\x01\0\0\0\0");
        let text =
            Bytes::from_static(b"BMW is a text, and no bitmap of Windows, for all that it begins like one");
        assert_eq!(of_bytes(&any, &gif, "a.JPG"), "gif");
        assert_eq!(of_bytes(&any, &text, "a.TXT"), "txt");
        assert_eq!(of_bytes(&any, &text, "a"), "bin");
        assert_eq!(of_bytes(&png, &text, "a.jpg"), "png");
    }
}
