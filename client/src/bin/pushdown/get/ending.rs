//! The form of a value by the ending of the file that it goes to: no file gets a name that says something else.

use std::path::Path;

use pushdown::{Kind, MediaType, wire::Form};

use super::{accept::Accept, rows::Format};
use crate::fault::Usage;

/// What the ending of a file's name says of what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Npy,
    Safetensors,
    Arrow,
    Raw,
    Parquet,
    Csv,
    Ndjson,
    /// An encoded image; `None` for formats that are not read here either.
    Image(Option<MediaType>),
    /// Nothing that is known here.
    Other,
}

impl Ending {
    fn of(file: &Path) -> Self {
        let ending = file.extension().and_then(|ending| ending.to_str());
        match ending.unwrap_or_default().to_ascii_lowercase().as_str() {
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

    const fn array(self) -> Option<Accept> {
        match self {
            Self::Npy => Some(Accept::Npy),
            Self::Safetensors => Some(Accept::Safetensors),
            Self::Arrow => Some(Accept::Arrow),
            Self::Raw => Some(Accept::Raw),
            _ => None,
        }
    }

    const fn table(self) -> Option<Format> {
        match self {
            Self::Arrow => Some(Format::Arrow),
            Self::Parquet => Some(Format::Parquet),
            Self::Csv => Some(Format::Csv),
            Self::Ndjson => Some(Format::Ndjson),
            _ => None,
        }
    }
}

/// A file's name in which a value of a kind is to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    file: &'a Path,
    ending: Ending,
}

/// How a value is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written<F> {
    /// `None` for the default form of its kind.
    pub(super) form: Option<F>,
    /// What the caller could not know by the file's name.
    pub(super) note: Option<String>,
}

impl<'a> Named<'a> {
    pub(super) fn of(file: &'a Path) -> Self {
        Self {
            file,
            ending: Ending::of(file),
        }
    }

    /// The form that the ending names for an array, whatever turns out to be written.
    pub(super) const fn array(self) -> Option<Accept> {
        self.ending.array()
    }

    /// How a value of `kind`, after `stage` steps, is written; `accept` is what the caller asked for.
    ///
    /// # Errors
    /// When the ending is that of another form.
    pub(super) fn value(
        self,
        stage: usize,
        kind: &Kind,
        accept: Option<Accept>,
    ) -> Result<Written<Accept>, Usage> {
        let file = self.file.display();
        let written = |form, note| Ok(Written { form, note });
        if stage == 0 {
            let note = format!("{file} is the object as it is stored (stage 0)");
            return written(accept, Some(note));
        }
        let named = match (kind, self.ending) {
            (_, Ending::Other) => {
                let form = accept.map_or_else(|| default_name(kind), |accept| accept.name().to_owned());
                let note = format!("{file} is written as {form}: its name has no ending that is known");
                return written(accept, accept.is_none().then_some(note));
            }
            (Kind::Bytes(bytes), Ending::Image(media)) if media.is_some() && media == bytes.media => {
                return written(accept, None);
            }
            (Kind::Bytes(_), Ending::Raw) => return written(accept, None),
            (Kind::Bytes(_), _) => None,
            (kind, ending) => ending
                .array()
                .filter(|form| Form::offered(kind).contains(&form.form())),
        };
        match (named, accept) {
            (Some(named), Some(accept)) if named != accept => {
                let asked = format!("--accept {}", accept.name());
                Err(self.other_than(&format!(".{}", accept.name()), &asked, None))
            }
            (Some(named), _) => written(Some(named), None),
            (None, _) => Err(self.other_than(&endings(kind), &described(kind), self.encoding(kind))),
        }
    }

    /// How rows are written; `format` is what the caller asked for.
    ///
    /// # Errors
    /// When the ending is that of another form.
    pub(super) fn rows(self, format: Option<Format>) -> Result<Written<Format>, Usage> {
        let written = |form, note| Ok(Written { form, note });
        match (self.ending, self.ending.table(), format) {
            (Ending::Other, _, Some(_)) => written(format, None),
            (Ending::Other, ..) => {
                let file = self.file.display();
                let note = format!("{file} is written as arrow: its name has no ending that is known");
                written(Some(Format::Arrow), Some(note))
            }
            (_, Some(named), Some(format)) if named != format => {
                let asked = format!("--format {}", format.name());
                Err(self.other_than(&format!(".{}", format.name()), &asked, None))
            }
            (_, Some(named), _) => written(Some(named), None),
            (_, None, _) => {
                Err(self.other_than(".arrow, .parquet, .csv, .ndjson or .jsonl", "a table", None))
            }
        }
    }

    fn other_than(self, expected: &str, what: &str, remedy: Option<String>) -> Usage {
        let (file, ending) = (self.file.display(), self.file.extension().unwrap_or_default());
        let remedy = remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
        Usage(format!(
            "-o {file}: expected {expected} for {what}, found .{}{remedy}",
            ending.display()
        ))
    }

    /// What to do for a file of encoded pixels.
    fn encoding(self, kind: &Kind) -> Option<String> {
        let Ending::Image(Some(media @ (MediaType::Jpeg | MediaType::Png | MediaType::Webp))) = self.ending
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

/// The endings of the forms that a kind has, for people.
fn endings(kind: &Kind) -> String {
    let ending = |form: &Form| match form {
        Form::Npy => Some(".npy"),
        Form::ArrowStream => Some(".arrow"),
        Form::Safetensors => Some(".safetensors"),
        // That is for those who know what they ask for.
        Form::Raw => None,
        Form::Encoded => Some(match kind {
            Kind::Bytes(bytes) => bytes.media.map_or("no ending", first_ending),
            _ => "no ending",
        }),
    };
    let endings: Vec<_> = Form::offered(kind).iter().filter_map(ending).collect();
    match endings.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    }
}

const fn first_ending(media: MediaType) -> &'static str {
    match media {
        MediaType::Jpeg => ".jpg",
        MediaType::Png => ".png",
        MediaType::Webp => ".webp",
        MediaType::Gif => ".gif",
        MediaType::Bmp => ".bmp",
        MediaType::Tiff => ".tiff",
    }
}

/// The name of the form that a kind has by default.
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

/// A kind as people call it, with what is known of its shape.
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
