//! The cost of an object as a cropped JPEG.

use pushdown::{
    Context, Limits, Pipeline, Sample,
    plan::{Candidate, Stage},
    wire::{Features, ObjectForm, Split},
};

use super::{ProfileRequest, run, run_on_thread};
use crate::{
    error::Result,
    measure::{ServerTiming, float},
    objects::Objects,
    sample_name::draw_id,
    store::{Store, ValueRequest, value::form_header},
};

impl Store {
    /// The number of first steps that fix the region of cropped JPEGs; `None` if the gateway or the pipeline has none.
    pub(super) fn crop_steps(&self, pipeline: &Pipeline) -> Option<usize> {
        let has_crops = self.features().has(Features::CROPPED_JPEG);
        pipeline.crop_steps().filter(|_| has_crops)
    }

    /// Requests an object as a cropped JPEG, and runs the steps that read it on this host. `candidates` are those of the other stages.
    pub(super) async fn measure_cropped(
        &self,
        objects: &Objects,
        index: usize,
        request: &ProfileRequest<'_>,
        candidates: &[Candidate],
        crop_steps: usize,
    ) -> Result<Option<Candidate>> {
        let Some((object, values)) = candidates.split_first() else {
            return Ok(None);
        };
        let Some(after) = values.iter().find(|value| value.stage.steps() >= crop_steps) else {
            return Ok(None);
        };
        let limits = Limits::default();
        let &ProfileRequest {
            pipeline,
            seed,
            epoch,
            ..
        } = request;
        let value = ValueRequest {
            pipeline,
            split: Split::At(0),
            seed,
            epoch: Some(epoch),
            accept: None,
        };
        let (bucket, sample) = (objects.bucket(), objects.object(index));
        let form = form_header(ObjectForm::CroppedJpeg)?;
        let answer = self.get_sample_value_with(bucket, sample, &value, &limits, form);
        let answer = match answer.await {
            Ok(answer) => answer,
            Err(error) => {
                // All other candidates of the sample are known.
                tracing::info!(%error, "no cropped JPEG was measured");
                return Ok(None);
            }
        };
        let timing = ServerTiming::from_headers(&answer.headers);
        let mut phases = timing.phases();
        let gateway_seconds = phases
            .find(|(name, _)| *name == ObjectForm::CroppedJpeg.name())
            .map_or(0.0, |(_, seconds)| seconds);
        let arrived = answer.decode(&limits)?;
        let saved_seconds = if matches!(arrived, Sample::CroppedJpeg(_)) {
            let until = after.stage.steps();
            let (steps, id) = (pipeline.clone(), draw_id(sample).into_owned());
            let host_run = run_on_thread(move || {
                let context = Context {
                    seed,
                    epoch: Some(epoch),
                    limits,
                    ..Context::new(&id)
                };
                run(&steps, until, arrived, &context)
            });
            let of_crop: f64 = host_run.await??.iter().map(|group| group.seconds).sum();
            object.host_seconds - after.host_seconds - of_crop
        } else {
            0.0
        };
        Ok(Some(Candidate {
            stage: Stage::CroppedJpeg,
            bytes: float(answer.body.len() as u64),
            gateway_seconds,
            host_seconds: (object.host_seconds - saved_seconds).max(0.0),
            ..*object
        }))
    }
}
