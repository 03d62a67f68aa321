//! `pushdown get`: the value of one object, or the rows of many tables.

mod accept;
mod extension;
mod local;
mod member;
mod output;
mod rows;
mod tables;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use pushdown::{
    BytesKind, Limits, Pipeline,
    wire::{self, Split},
};
use pushdown_client::{internal::Draft, store::ValueRequest};

use crate::{
    Exit,
    connection::{Connection, Randomness},
    errors::{PipelineError, Usage},
    location::Location,
    terminal::write_line,
};
use accept::Accept;
use extension::{OutputFile, OutputForm};
use member::MemberOptions;

/// Get the value that a pipeline computes from one object, or from all tables under a prefix
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The object; a key that ends in `/` means all objects under it, whose rows become one table
    #[arg(value_name = "s3://BUCKET/KEY")]
    object: Location,
    /// Pipeline; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    #[command(flatten)]
    member: MemberOptions,
    /// Where to stop: full, smallest or a number of steps
    #[arg(long, default_value_t = Split::Full)]
    split: Split,
    /// Form of the value [default: by the file's extension; npy, safetensors for bf16; encoded images unchanged]
    #[arg(long, value_enum)]
    accept: Option<Accept>,
    /// Form of a table [default: by the file's extension; csv on a terminal, otherwise arrow]
    #[arg(long, value_enum, conflicts_with = "accept")]
    format: Option<rows::TableFormat>,
    /// For tables: add a first column `key` with the key of each row's object
    #[arg(long)]
    key_column: bool,
    /// For many tables: how their columns must match
    #[arg(long, value_enum, default_value_t = tables::Schema::Same)]
    schema: tables::Schema,
    #[command(flatten)]
    randomness: Randomness,
    /// File to write, `-` for stdout. A file that exists is replaced once the whole value has arrived
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Read the object itself and run the pipeline on this host; for a table, as with --split 0, only the needed ranges
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Get {
    pub(crate) async fn run(self) -> anyhow::Result<Exit> {
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        if pipeline.is_scan(&(0..pipeline.len())) {
            self.member.check_table()?;
            self.rows(&pipeline).await?;
            return Ok(Exit::Success);
        }
        if self.is_prefix() {
            return Err(Usage(format!(
                "found the prefix {}, expected s3://bucket/key: only tables can be read from all objects under a prefix",
                self.object
            ))
            .into());
        }
        if self.format.is_some() {
            return Err(Usage("--format is only for tables: the result is not a table".to_owned()).into());
        }
        let to_stdout = self.to_stdout();
        if to_stdout && io::stdout().is_terminal() {
            return Err(binary().into());
        }
        let parts = if self.plain {
            self.run_locally(&pipeline).await?
        } else {
            self.request_from_gateway(&pipeline).await?
        };
        if to_stdout {
            let mut out = io::stdout().lock();
            parts.iter().try_for_each(|part| out.write_all(part))?;
            out.flush()?;
        } else {
            write(&self.output, &parts)
                .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", self.output.display()))?;
        }
        Ok(Exit::Success)
    }

    fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    async fn request_from_gateway(&self, pipeline: &Pipeline) -> anyhow::Result<Vec<bytes::Bytes>> {
        // The smallest stage depends on the object, and only the gateway reads it.
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
            .map_err(|error| self.wrap_error(error))?;
        let request = self.request(pipeline, accept.as_deref());
        let found = self.find_sample(&store).await?;
        let value = store
            .get_sample_value(found.bucket(), found.object(0), &request, &Limits::default())
            .await
            .map_err(|error| self.wrap_error(error))?;
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

    /// The form in which the value at a stage is written. Prints a note if the file's name does not determine it.
    ///
    /// # Errors
    /// If the file's extension is that of another form.
    fn form(&self, pipeline: &Pipeline, stage: usize) -> anyhow::Result<Option<Accept>> {
        if self.to_stdout() {
            return Ok(self.accept);
        }
        let Some(kind) = pipeline.kinds().get(stage) else {
            anyhow::bail!("found stage {stage}, expected 0 to {}", pipeline.len());
        };
        let OutputForm { form, note } = OutputFile::new(&self.output).value(stage, kind, self.accept)?;
        if let Some(note) = note {
            write_line(format_args!("note: {note}"))?;
        }
        Ok(form)
    }

    /// The `Accept` header if the stage is not known: the form set by option, or the form of the file's extension if the
    /// value has it.
    fn accept_any(&self) -> Option<String> {
        let requested = self.accept.map(|accept| accept.content_type().to_owned());
        requested.or_else(|| {
            let named = OutputFile::new(&self.output).array_form()?;
            Some(format!("{}, */*;q=0.1", named.content_type()))
        })
    }

    /// The request to the gateway.
    const fn request<'a>(&self, pipeline: &'a Pipeline, accept: Option<&'a str>) -> ValueRequest<'a> {
        ValueRequest {
            pipeline,
            split: self.split,
            seed: self.randomness.seed,
            epoch: Some(self.randomness.epoch),
            accept,
        }
    }

    /// The stage to stop at, given what is known of the object.
    fn stage(&self, pipeline: &Pipeline, object: &BytesKind) -> anyhow::Result<usize> {
        let Randomness { seed, epoch } = self.randomness;
        let stage = pipeline
            .stage_of(self.split, object)
            .map_err(|error| Usage(error.to_string()))?;
        pipeline
            .check_randomness(stage, seed, Some(epoch))
            .map_err(|error| self.wrap_error(error.into()))?;
        Ok(stage)
    }

    fn wrap_error(&self, error: pushdown_client::Error) -> anyhow::Error {
        PipelineError::wrap(&self.pipeline, error)
    }
}

fn binary() -> Usage {
    Usage("the value is binary: set a file with -o, or redirect stdout to one".to_owned())
}

fn write(path: &Path, parts: &[bytes::Bytes]) -> io::Result<()> {
    let mut draft = Draft::create(path)?;
    parts.iter().try_for_each(|part| draft.write_all(part))?;
    draft.finish()
}
