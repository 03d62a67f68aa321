//! `pushdown get`: what a pipeline makes of one object, or of many tables.

mod accept;
mod ending;
mod out;
mod rows;
mod several;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use pushdown::{
    BytesKind, Context, Kind, Limits, Pipeline, Sample,
    wire::{self, Form, Split},
};
use pushdown_client::GetValue;

use crate::{
    connection::{Connection, Randomness},
    fault::{PipelineFault, Usage},
    location::Location,
};
use accept::Accept;
use ending::{Named, Written};

/// Get what a pipeline makes of one object, or of all tables under a prefix
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The object; a key that ends in `/` stands for all objects under it, whose rows become one table
    #[arg(value_name = "s3://BUCKET/KEY")]
    object: Location,
    /// What to make of it; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Where to stop: full, smallest or a number of steps
    #[arg(long, default_value_t = Split::Full)]
    split: Split,
    /// Form of the value [default: by the file's ending; npy, safetensors for bf16; encoded images as they are]
    #[arg(long, value_enum)]
    accept: Option<Accept>,
    /// Form of a table [default: by the file's ending; csv on a terminal, else arrow]
    #[arg(long, value_enum, conflicts_with = "accept")]
    format: Option<rows::Format>,
    /// Of tables: put a column `key` in front, with the key of the object that a row is of
    #[arg(long)]
    key_column: bool,
    /// Of many tables: what their columns have to have in common
    #[arg(long, value_enum, default_value_t = several::Schema::Same)]
    schema: several::Schema,
    #[command(flatten)]
    randomness: Randomness,
    /// File to write, `-` for stdout
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Read the object itself and run the pipeline here; of a table, as with --split 0, only the parts that it takes
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Get {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        if pipeline.is_scan(&(0..pipeline.len())) {
            self.rows(&pipeline).await?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.is_prefix() {
            return Err(Usage(format!(
                "{} is no object, expected s3://bucket/key: only tables are made of all objects under a prefix",
                self.object
            ))
            .into());
        }
        if self.format.is_some() {
            return Err(Usage("--format is for tables, found a pipeline that makes none".to_owned()).into());
        }
        let to_stdout = self.to_stdout();
        if to_stdout && io::stdout().is_terminal() {
            return Err(binary().into());
        }
        let parts = if self.plain {
            self.here(&pipeline).await?
        } else {
            self.at_the_gateway(&pipeline).await?
        };
        if to_stdout {
            let mut out = io::stdout().lock();
            parts.iter().try_for_each(|part| out.write_all(part))?;
            out.flush()?;
        } else {
            write(&self.output, &parts)
                .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", self.output.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    async fn at_the_gateway(&self, pipeline: &Pipeline) -> anyhow::Result<Vec<bytes::Bytes>> {
        // The smallest stage depends on the object, which only the gateway sees.
        let accept = if self.split == Split::Smallest {
            self.accept_any()
        } else {
            let stage = self.stage(pipeline, &BytesKind::default())?;
            let accept = self.form(pipeline, stage)?;
            accept.map(|accept| accept.content_type().to_owned())
        };
        let store = self
            .connection
            .store()
            .build()
            .await
            .map_err(|error| self.fault(error))?;
        let what = self.what(pipeline, accept.as_deref());
        let Location { bucket, key } = &self.object;
        let value = store
            .get_value(bucket, key, &what, &Limits::default())
            .await
            .map_err(|error| self.fault(error))?;
        let dtype = value
            .headers
            .get(wire::header::DTYPE)
            .and_then(|value| value.to_str().ok());
        let shape = value
            .headers
            .get(wire::header::SHAPE)
            .and_then(|value| value.to_str().ok());
        tracing::info!(
            stage = value.stage,
            bytes = value.body.len(),
            dtype,
            shape,
            form = value.content_type,
            "got"
        );
        if self.split == Split::Smallest {
            self.form(pipeline, value.stage)?;
        }
        Ok(vec![value.body])
    }

    /// How the value at a stage is written. What its file's name does not say is said.
    ///
    /// # Errors
    /// When the file's ending is that of another form.
    fn form(&self, pipeline: &Pipeline, stage: usize) -> anyhow::Result<Option<Accept>> {
        if self.to_stdout() {
            return Ok(self.accept);
        }
        let Some(kind) = pipeline.kinds().get(stage) else {
            anyhow::bail!("found stage {stage}, expected 0 to {}", pipeline.len());
        };
        let Written { form, note } = Named::of(&self.output).value(stage, kind, self.accept)?;
        if let Some(note) = note {
            writeln!(io::stderr(), "note: {note}")?;
        }
        Ok(form)
    }

    /// What is accepted where the stage is not known: the form that was asked for, or the one that the file's ending names if
    /// the value has it.
    fn accept_any(&self) -> Option<String> {
        let asked = self.accept.map(|accept| accept.content_type().to_owned());
        asked.or_else(|| {
            let named = Named::of(&self.output).array()?;
            Some(format!("{}, */*;q=0.1", named.content_type()))
        })
    }

    /// What is asked of the gateway.
    const fn what<'a>(&self, pipeline: &'a Pipeline, accept: Option<&'a str>) -> GetValue<'a> {
        GetValue {
            pipeline,
            split: self.split,
            seed: self.randomness.seed,
            epoch: Some(self.randomness.epoch),
            accept,
        }
    }

    async fn here(&self, pipeline: &Pipeline) -> anyhow::Result<Vec<bytes::Bytes>> {
        // A wrong name is refused before the object is read. The smallest stage depends on the object.
        let named = if self.split == Split::Smallest {
            None
        } else {
            let stage = self.stage(pipeline, &BytesKind::default())?;
            Some(self.form(pipeline, stage)?)
        };
        let store = self
            .connection
            .store()
            .build()
            .await
            .map_err(|error| self.fault(error))?;
        let limits = Limits::default();
        let Location { bucket, key } = &self.object;
        let object = store
            .get(bucket, key, &limits)
            .await
            .map_err(|error| self.fault(error))?;
        let known = match Kind::of_object(Some(object.len() as u64), &object) {
            Kind::Bytes(known) => known,
            _ => BytesKind::default(),
        };
        let stage = self.stage(pipeline, &known)?;
        let accept = match named {
            Some(accept) => accept,
            None => self.form(pipeline, stage)?,
        };
        let context = Context {
            seed: self.randomness.seed,
            epoch: Some(self.randomness.epoch),
            limits,
            ..Context::new(key.as_bytes())
        };
        // Weights may have to be fetched on the way.
        let sample = tokio::task::block_in_place(|| pipeline.run(0..stage, Sample::Bytes(object), &context))
            .map_err(|error| anyhow::anyhow!("{}: {}: {error}", self.object, error.kind().code()))?;
        let kind = Kind::from(&sample);
        let form = Form::negotiate(accept.map(Accept::content_type), &kind)
            .ok_or_else(|| Usage(format!("{kind} cannot be written in that form")))?;
        Ok(wire::encode(sample, form, &kind)?.parts)
    }

    /// The stage to stop at, for an object of which something is known.
    fn stage(&self, pipeline: &Pipeline, object: &BytesKind) -> anyhow::Result<usize> {
        let Randomness { seed, epoch } = self.randomness;
        let stage = self
            .split
            .resolve(pipeline, object)
            .map_err(|error| Usage(error.to_string()))?;
        pipeline
            .check_randomness(stage, seed, Some(epoch))
            .map_err(|error| self.fault(error.into()))?;
        Ok(stage)
    }

    fn fault(&self, error: pushdown_client::Error) -> anyhow::Error {
        PipelineFault::of(&self.pipeline, error)
    }
}

fn binary() -> Usage {
    Usage("the value is binary: give a file with -o, or send stdout to one".to_owned())
}

fn write(path: &Path, parts: &[bytes::Bytes]) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}
