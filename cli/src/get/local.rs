//! The value of one object, computed on this host.

use pushdown::{
    BytesKind, Context, Kind, Limits, Pipeline, Sample,
    wire::{self, Form, Split},
};
use pushdown_client::internal::draw_id;

use super::{Get, accept::Accept};
use crate::errors::Usage;

impl Get {
    /// Reads the object or the member itself, and runs the pipeline.
    pub(super) async fn run_locally(&self, pipeline: &Pipeline) -> anyhow::Result<Vec<bytes::Bytes>> {
        // A wrong file name is refused before the object is read, unless the stage depends on the object.
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
            .map_err(|error| self.wrap_error(error))?;
        let limits = Limits::default();
        let found = self.find_sample(&store).await?;
        let object = found.object(0);
        let stored = store
            .get_sample(found.bucket(), object, &limits)
            .await
            .map_err(|error| self.wrap_error(error))?;
        let known = match Kind::of_object(Some(stored.len() as u64), &stored) {
            Kind::Bytes(known) => known,
            _ => BytesKind::default(),
        };
        let stage = self.stage(pipeline, &known)?;
        let accept = match named {
            Some(accept) => accept,
            None => self.form(pipeline, stage)?,
        };
        let id = draw_id(object);
        let context = Context {
            seed: self.randomness.seed,
            epoch: Some(self.randomness.epoch),
            limits,
            ..Context::new(&id)
        };
        // A download of weights may block.
        let sample = tokio::task::block_in_place(|| pipeline.run(0..stage, Sample::Bytes(stored), &context))
            .map_err(|error| anyhow::anyhow!("{}: {}: {error}", self.object, error.kind().code()))?;
        let kind = Kind::from(&sample);
        let form = Form::negotiate(accept.map(Accept::content_type), &kind)
            .ok_or_else(|| Usage(format!("{kind} cannot be written in the requested form")))?;
        Ok(wire::encode(sample, form, &kind)?.parts)
    }
}
