//! Parts that this host makes, for those without a gateway: the same bytes, but every object crosses the link twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Instant,
};

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture, stream};
use http::{HeaderMap, HeaderValue, header};
use md5::{Digest as _, Md5};
use pushdown::{
    Context, Engine, Limits, Sample, available_engine,
    part::{PartNote, PartRow, PartWriter},
    wire::{PartAction, PartError, RefusedPart, RowError, WrittenPart, is_changed_object, is_content_error},
};

use super::{
    data_set::{CurrentSample, DataSet},
    maker::{Made, PartJob, Values},
    target::Target,
};
use crate::{
    cpu::CpuPool,
    error::{Error, Result},
    sample_name::draw_id,
    store::{Failure, Store},
};

/// Objects in flight for each thread that computes.
const OBJECTS_PER_THREAD: usize = 4;

/// Makes parts on this host.
#[derive(Debug)]
pub(super) struct LocalMaker {
    store: Store,
    target: Target,
    data_set: DataSet,
    values: Arc<Values>,
    engine: Engine,
    cpu: CpuPool,
    limits: Limits,
}

/// A value, the further columns of its sample, and the time that its steps took in seconds.
type Computed = (Sample, Vec<Option<Bytes>>, f64);

impl LocalMaker {
    pub(super) fn new(store: Store, target: Target, data_set: DataSet, values: Values, cpu: CpuPool) -> Self {
        Self {
            engine: available_engine(values.pipeline.steps()),
            store,
            target,
            data_set,
            values: Arc::new(values),
            cpu,
            limits: Limits::default(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a small number of threads")]
    pub(super) fn cores(&self) -> f64 {
        self.cpu.threads() as f64
    }

    /// Makes a part, and writes it.
    pub(super) async fn make(
        &self,
        job: &PartJob<'_>,
        progress: &(dyn Fn(u32) + Sync),
    ) -> Result<(Made, String)> {
        let engine = self.engine.to_string();
        if let Some(expected) = job.engine.filter(|expected| *expected != engine) {
            return Err(Error::config(format!(
                "this host computes other values: expected the engine `{expected}` of the target, found `{engine}`"
            )));
        }
        let made = self.written(job, progress).await?;
        Ok((made, engine))
    }

    async fn written(&self, job: &PartJob<'_>, progress: &(dyn Fn(u32) + Sync)) -> Result<Made> {
        let names: Vec<String> = job
            .samples
            .iter()
            .map(|sample| self.data_set.name_in_part(sample.index))
            .collect();
        let mut writer = PartWriter::new(self.values.spec.clone(), names.iter().map(String::as_str))?;
        let (mut seconds, mut samples) = (0.0, 0);
        let (mut errors, mut changed) = (Vec::new(), Vec::new());
        let done = AtomicU32::new(0);
        let (done, samples_of_part) = (&done, job.samples);
        let value = |index: usize| -> BoxFuture<'_, _> {
            Box::pin(async move {
                let value = self.value(&samples_of_part[index]).await;
                progress(done.fetch_add(1, Relaxed) + 1);
                value
            })
        };
        let values: Vec<_> = (0..job.samples.len()).map(value).collect();
        let in_flight = OBJECTS_PER_THREAD * self.cpu.threads();
        let mut values = Box::pin(stream::iter(values).buffered(in_flight).enumerate());
        while let Some((index, value)) = values.next().await {
            match value? {
                Ok((value, columns, time)) => {
                    seconds += time;
                    samples += 1;
                    let label = self.data_set.label(job.samples[index].index);
                    writer.push(&PartRow {
                        index,
                        label: label.as_ref(),
                        columns,
                        value: &value,
                    })?;
                }
                Err(RowError { code, message }) => {
                    let row = u32::try_from(index).unwrap_or(u32::MAX);
                    let error = PartError { row, code, message };
                    if is_content_error(&error.code) {
                        errors.push(error);
                    } else if is_changed_object(&error.code) {
                        changed.push(error);
                    } else {
                        return Ok(Made::Refused(RefusedPart {
                            action: PartAction::Read,
                            code: error.code.clone(),
                            message: error.message.clone(),
                            errors: vec![error],
                        }));
                    }
                }
            }
        }
        drop(values);
        if !changed.is_empty() {
            return Ok(Made::Changed(changed));
        }
        let content = writer.finish(&PartNote::of_errors(&errors, &names))?;
        if let Some(name) = job.name {
            self.target.write(name, &content).await?;
        }
        Ok(Made::Written(WrittenPart {
            bytes: content.len() as u64,
            md5: hex::encode(Md5::digest(&content)),
            samples,
            seconds,
            errors,
        }))
    }

    /// The value of a sample, or its error.
    async fn value(&self, sample: &CurrentSample<'_>) -> Result<Result<Computed, RowError>> {
        let (object, columns) = match self.stored(sample).await {
            Ok(stored) => stored,
            Err(failure) => return failure.into_row_error().map(Err),
        };
        let id = draw_id(sample.object).into_owned();
        let (values, limits) = (Arc::clone(&self.values), self.limits);
        let run = move || {
            let start = Instant::now();
            let context = Context {
                seed: values.seed,
                epoch: Some(values.epoch),
                limits,
                ..Context::new(&id)
            };
            let steps = 0..values.pipeline.len();
            let value = values.pipeline.run(steps, Sample::Bytes(object), &context);
            value.map(|value| (value, columns, start.elapsed().as_secs_f64()))
        };
        let value = self.cpu.run(run).await?;
        Ok(value.map_err(|error| RowError::from(&error)))
    }

    /// What the store has of a sample, in its version: the object, or its member of a shard, and its further columns.
    async fn stored(&self, sample: &CurrentSample<'_>) -> Result<(Bytes, Vec<Option<Bytes>>), Failure> {
        let (objects, shard) = (&self.data_set.objects, sample.object);
        let Some(member) = shard.member else {
            return Ok((self.object(sample).await?, Vec::new()));
        };
        let read = |member| {
            self.store
                .read_member(objects.bucket(), shard, member, &self.limits)
        };
        let value = read(member).await?;
        let mut columns = Vec::with_capacity(objects.columns().len());
        for column in 0..objects.columns().len() {
            let member = objects.column_member(sample.index as usize, column);
            columns.push(match member {
                Some(member) => Some(read(member).await?),
                None => None,
            });
        }
        Ok((value, columns))
    }

    /// The object in its version.
    async fn object(&self, sample: &CurrentSample<'_>) -> Result<Bytes, Failure> {
        let (bucket, key) = (self.data_set.objects.bucket(), sample.object.key);
        let condition = HeaderValue::from_str(&sample.etag)
            .map_err(|error| Error::internal("an ETag is no header value").with_source(error))?;
        let limit = self.limits.max_object_bytes;
        let mut attempt = || {
            let headers = HeaderMap::from_iter([(header::IF_MATCH, condition.clone())]);
            async {
                let read = async {
                    let answer = self.store.open(bucket, key, headers).await?;
                    // A store may ignore the condition.
                    if answer.headers.get(header::ETAG) != Some(&condition) {
                        return Err(replaced());
                    }
                    answer.collect(limit).await?.ok_or(Failure::TooLarge(limit))
                };
                read.await.map_err(|failure| failure.named(key.to_owned()))
            }
        };
        let read = self.store.retries().complete(&mut attempt).await;
        read.map_err(|named| named.failure)
    }
}

fn replaced() -> Failure {
    let message = "the object was replaced after it was listed: list it again";
    Failure::Unusable(RowError::new("PreconditionFailed", message))
}
