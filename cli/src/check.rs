//! `pushdown check`: the kinds of all stages of a pipeline, without an object.

use std::{
    io::{self, Write},
    str::FromStr,
};

use clap::Args;
use indicatif::HumanBytes;
use pushdown::{BytesKind, Engine, ImageHeader, Kind, Pipeline, Step};
use serde_json::json;

use crate::{Exit, connection::Connection, errors::PipelineError, print::Format, terminal::write_line};

/// Check a pipeline and show kind, shape and bytes after each step, for an image or a table
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The pipeline, as text or as a JSON array
    pipeline: String,
    /// Width and height of a JPEG in pixels
    #[arg(long, value_name = "WxH")]
    size: Option<Size>,
    /// Bytes of the stored object
    #[arg(long, value_name = "N")]
    bytes: Option<u64>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Width and height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |side: &str| side.parse().ok().filter(|side| *side > 0);
        let size = text.split_once('x').and_then(|(width, height)| {
            Some(Self {
                width: side(width)?,
                height: side(height)?,
            })
        });
        size.ok_or_else(|| "expected width and height such as 500x375".to_owned())
    }
}

impl Check {
    pub(crate) async fn run(&self) -> anyhow::Result<Exit> {
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        let object = self.object();
        let stages = Stages::new(&pipeline, &object)
            .map_err(|error| PipelineError::wrap(&self.pipeline, error.into()))?;
        for warning in pipeline.warnings() {
            write_line(format_args!("warning: {warning}"))?;
        }
        self.format.print(|| stages.as_json(), |out| stages.table(out))?;
        Ok(Exit::Success)
    }

    /// The properties of the object given by the options.
    fn object(&self) -> BytesKind {
        jpeg(
            self.size.map(|Size { width, height }| (width, height)),
            self.bytes,
        )
    }
}

/// A JPEG of this width and height and of this many bytes, as far as they are known.
pub fn jpeg(size: Option<(u32, u32)>, bytes: Option<u64>) -> BytesKind {
    let header = size.map(|(width, height)| ImageHeader::upright_jpeg(width, height));
    BytesKind {
        length: bytes,
        media: header.map(|header| header.media),
        header,
    }
}

/// Kind, shape and bytes of the stages of a pipeline.
#[derive(Debug)]
pub struct Stages<'a> {
    pipeline: &'a Pipeline,
    kinds: Vec<Kind>,
    /// The stage with the fewest bytes, if size and bytes of the object are known.
    smallest: Option<usize>,
}

impl<'a> Stages<'a> {
    /// The stages for an object.
    ///
    /// # Errors
    /// If a step does not apply to the object.
    pub fn new(pipeline: &'a Pipeline, object: &BytesKind) -> pushdown::Result<Self> {
        let kinds = pipeline.kinds_for(&Kind::Bytes(*object))?;
        let is_known = object.header.is_some() && object.length.is_some();
        Ok(Self {
            pipeline,
            kinds,
            smallest: is_known.then(|| pipeline.smallest_stage(object)),
        })
    }
}

impl Stages<'_> {
    fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            pipeline,
            kinds,
            smallest,
        } = self;
        let steps: Vec<String> = pipeline.steps().iter().map(ToString::to_string).collect();
        let shown: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        let step_width = steps
            .iter()
            .map(|step| step.chars().count())
            .max()
            .unwrap_or_default()
            .max("(object)".len());
        let kind_width = shown.iter().map(String::len).max().unwrap_or_default();
        writeln!(
            out,
            "stage  {:step_width$}  {:kind_width$}  bytes",
            "step", "kind"
        )?;
        for (stage, (kind, shown)) in kinds.iter().zip(&shown).enumerate() {
            let step = stage.checked_sub(1).map_or("(object)", |index| &steps[index]);
            let bytes = kind.bytes().map_or_else(
                || "?".to_owned(),
                |bytes| format!("{bytes} ({})", HumanBytes(bytes)),
            );
            let mark = if *smallest == Some(stage) {
                "  <- smallest"
            } else {
                ""
            };
            writeln!(
                out,
                "{stage:>5}  {step:step_width$}  {shown:kind_width$}  {bytes}{mark}"
            )?;
        }
        if pipeline.is_random(pipeline.len()) {
            writeln!(out, "random: needs a seed and an epoch")?;
        }
        Ok(())
    }

    /// The stages as JSON.
    pub fn as_json(&self) -> serde_json::Value {
        let Self {
            pipeline,
            kinds,
            smallest,
        } = self;
        let stage = |(stage, kind): (usize, &Kind)| {
            let step = stage.checked_sub(1).map(|index| &pipeline.steps()[index]);
            let (dtype, shape) = match kind {
                Kind::Bytes(_) | Kind::Table(_) => (None, None),
                Kind::Image(image) => (Some("u8"), Some(json!([image.height, image.width, 3]))),
                Kind::Tensor(tensor) => (Some(tensor.dtype.name()), Some(json!(tensor.shape))),
            };
            json!({
                "stage": stage, "step": step.map(ToString::to_string), "kind": kind.name(), "dtype": dtype,
                "shape": shape, "bytes": kind.bytes(),
                "random": step.is_some_and(Step::is_random),
            })
        };
        let stages: Vec<_> = kinds.iter().enumerate().map(stage).collect();
        // Without the model runtime: a check loads no library.
        let engine = Engine::new(pipeline.steps().iter().flat_map(Step::families), None);
        json!({
            "pipeline": pipeline.to_string(), "digest": pipeline.digest().to_string(), "engine": engine.to_string(),
            "stages": stages, "smallest": smallest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_positive_numbers() {
        assert_eq!(
            "500x375".parse(),
            Ok(Size {
                width: 500,
                height: 375
            })
        );
        for text in ["500", "500x", "x375", "0x1", "-1x1", "500X375", "1x2x3"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
