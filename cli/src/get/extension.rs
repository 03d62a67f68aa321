//! The form of a value from the extension of its file, so that no file has a misleading name.

use std::path::Path;

use pushdown::{Kind, MediaType, wire::Form};

use super::{accept::Accept, rows::TableFormat};
use crate::errors::Usage;

/// The content that a file's extension announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    Npy,
    Safetensors,
    Arrow,
    Raw,
    Parquet,
    Csv,
    Ndjson,
    /// An encoded image; `None` for formats that `decode` does not read.
    Image(Option<MediaType>),
    /// An unknown extension, or none.
    Other,
}

impl Extension {
    fn from_path(file: &Path) -> Self {
        let extension = file.extension().and_then(|extension| extension.to_str());
        match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
            "npy" => Self::Npy,
            "safetensors" => Self::Safetensors,
            "arrow" | "arrows" => Self::Arrow,
            "raw" => Self::Raw,
            "parquet" => Self::Parquet,
            "csv" => Self::Csv,
            "ndjson" | "jsonl" => Self::Ndjson,
            "jpg" | "jpeg" | "jpe" | "jfif" => Self::Image(Some(MediaType::Jpeg)),
            "png" => Self::Image(Some(MediaType::Png)),
            "webp" => Self::Image(Some(MediaType::Webp)),
            "gif" => Self::Image(Some(MediaType::Gif)),
            "bmp" => Self::Image(Some(MediaType::Bmp)),
            "tif" | "tiff" => Self::Image(Some(MediaType::Tiff)),
            "avif" | "heic" | "heif" | "jp2" | "jxl" | "ico" => Self::Image(None),
            _ => Self::Other,
        }
    }

    const fn array_form(self) -> Option<Accept> {
        match self {
            Self::Npy => Some(Accept::Npy),
            Self::Safetensors => Some(Accept::Safetensors),
            Self::Arrow => Some(Accept::Arrow),
            Self::Raw => Some(Accept::Raw),
            _ => None,
        }
    }

    const fn table_format(self) -> Option<TableFormat> {
        match self {
            Self::Arrow => Some(TableFormat::Arrow),
            Self::Parquet => Some(TableFormat::Parquet),
            Self::Csv => Some(TableFormat::Csv),
            Self::Ndjson => Some(TableFormat::Ndjson),
            _ => None,
        }
    }
}

/// A file to which a value is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputFile<'a> {
    path: &'a Path,
    extension: Extension,
}

/// The form in which a value is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputForm<F> {
    /// `None` for the default form of its kind.
    pub(super) form: Option<F>,
    /// Set if the file's name does not determine the form.
    pub(super) note: Option<String>,
}

impl<'a> OutputFile<'a> {
    pub(super) fn new(path: &'a Path) -> Self {
        Self {
            path,
            extension: Extension::from_path(path),
        }
    }

    /// The array form of the extension, for any value.
    pub(super) const fn array_form(self) -> Option<Accept> {
        self.extension.array_form()
    }

    /// The form of a value of `kind` after `stage` steps; `accept` is the option of the command line.
    ///
    /// # Errors
    /// If the extension is that of another form.
    pub(super) fn value(
        self,
        stage: usize,
        kind: &Kind,
        accept: Option<Accept>,
    ) -> Result<OutputForm<Accept>, Usage> {
        let file = self.path.display();
        let written = |form, note| Ok(OutputForm { form, note });
        if stage == 0 {
            let note = format!("{file} is the object as stored (stage 0)");
            return written(accept, Some(note));
        }
        let named = match (kind, self.extension) {
            (_, Extension::Other) => {
                let form = accept.map_or_else(|| default_name(kind), |accept| accept.name().to_owned());
                let note = format!("{file} is written as {form}: its name has no known extension");
                return written(accept, accept.is_none().then_some(note));
            }
            (Kind::Bytes(bytes), Extension::Image(media)) if media.is_some() && media == bytes.media => {
                return written(accept, None);
            }
            (Kind::Bytes(_), Extension::Raw) => return written(accept, None),
            (Kind::Bytes(_), _) => None,
            (kind, extension) => extension
                .array_form()
                .filter(|form| Form::offered(kind).contains(&form.form())),
        };
        match (named, accept) {
            (Some(named), Some(accept)) if named != accept => {
                let requested = format!("--accept {}", accept.name());
                Err(self.mismatch(&format!(".{}", accept.name()), &requested, None))
            }
            (Some(named), _) => written(Some(named), None),
            (None, _) => Err(self.mismatch(&extensions(kind), &described(kind), self.encode_hint(kind))),
        }
    }

    /// The form of rows; `format` is the option of the command line.
    ///
    /// # Errors
    /// If the extension is that of another form.
    pub(super) fn rows(self, format: Option<TableFormat>) -> Result<OutputForm<TableFormat>, Usage> {
        let written = |form, note| Ok(OutputForm { form, note });
        match (self.extension, self.extension.table_format(), format) {
            (Extension::Other, _, Some(_)) => written(format, None),
            (Extension::Other, ..) => {
                let file = self.path.display();
                let note = format!("{file} is written as arrow: its name has no known extension");
                written(Some(TableFormat::Arrow), Some(note))
            }
            (_, Some(named), Some(format)) if named != format => {
                let requested = format!("--format {}", format.name());
                Err(self.mismatch(&format!(".{}", format.name()), &requested, None))
            }
            (_, Some(named), _) => written(Some(named), None),
            (_, None, _) => Err(self.mismatch(".arrow, .parquet, .csv, .ndjson or .jsonl", "a table", None)),
        }
    }

    fn mismatch(self, expected: &str, content: &str, hint: Option<String>) -> Usage {
        let (file, extension) = (self.path.display(), self.path.extension().unwrap_or_default());
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        Usage(format!(
            "-o {file}: expected {expected} for {content}, found .{}{hint}",
            extension.display()
        ))
    }

    /// How to get a file of encoded pixels, if the extension is that of one.
    fn encode_hint(self, kind: &Kind) -> Option<String> {
        let Extension::Image(Some(media @ (MediaType::Jpeg | MediaType::Png | MediaType::Webp))) =
            self.extension
        else {
            return None;
        };
        match kind {
            Kind::Image(_) => Some(format!("append encode({media}) to the pipeline")),
            Kind::Bytes(_) => Some(format!("end the pipeline with encode({media})")),
            Kind::Tensor(_) | Kind::Table(_) => None,
        }
    }
}

/// The extensions of the forms of a kind, for people.
fn extensions(kind: &Kind) -> String {
    let extension = |form: &Form| match form {
        Form::Npy => Some(".npy"),
        Form::ArrowStream => Some(".arrow"),
        Form::Safetensors => Some(".safetensors"),
        // Not suggested: raw bytes have no shape.
        Form::Raw => None,
        Form::Encoded => Some(match kind {
            Kind::Bytes(bytes) => bytes.media.map_or("no extension", default_extension),
            _ => "no extension",
        }),
    };
    let extensions: Vec<_> = Form::offered(kind).iter().filter_map(extension).collect();
    match extensions.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    }
}

const fn default_extension(media: MediaType) -> &'static str {
    match media {
        MediaType::Jpeg => ".jpg",
        MediaType::Png => ".png",
        MediaType::Webp => ".webp",
        MediaType::Gif => ".gif",
        MediaType::Bmp => ".bmp",
        MediaType::Tiff => ".tiff",
    }
}

/// The name of the default form of a kind.
fn default_name(kind: &Kind) -> String {
    match (kind, Form::offered(kind).first()) {
        (Kind::Bytes(bytes), _) => bytes
            .media
            .map_or_else(|| "bytes".to_owned(), |media| media.to_string()),
        (_, Some(Form::Safetensors)) => "safetensors".to_owned(),
        (_, Some(Form::ArrowStream)) => "arrow".to_owned(),
        _ => "npy".to_owned(),
    }
}

/// A kind for people, with its known shape.
fn described(kind: &Kind) -> String {
    fn array<E: ToString>(dtype: &str, shape: impl IntoIterator<Item = Option<E>>) -> String {
        let article = if dtype.starts_with(['f', 'i']) { "an" } else { "a" };
        let extents = shape
            .into_iter()
            .map(|extent| extent.map_or_else(|| "?".to_owned(), |extent| extent.to_string()));
        format!(
            "{article} {dtype} array [{}]",
            extents.collect::<Vec<_>>().join(", ")
        )
    }
    match kind {
        Kind::Bytes(bytes) => bytes
            .media
            .map_or_else(|| "bytes".to_owned(), |media| format!("an image in {media}")),
        Kind::Image(image) => array("u8", [image.height, image.width, Some(3)]),
        Kind::Tensor(tensor) => array(tensor.dtype.name(), tensor.shape.iter().copied()),
        Kind::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests;
