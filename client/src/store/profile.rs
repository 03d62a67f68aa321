//! The costs of a pipeline at the gateway and on this host, measured on a few samples: the planner's input.

mod classes;
mod cropped;
mod link_sampler;
mod step_costs;

use std::{num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, header::CACHE_CONTROL};
use pushdown::{
    Context, Kind, Limits, Pipeline, Sample, available_engine,
    pipeline::NamedModel,
    plan::Candidate,
    wire::{Split, header},
};
use tokio::sync::oneshot;

use super::{ReplicaReport, Store, ValueRequest};
use crate::{
    engine::check_engine,
    error::{Error, ErrorKind, Result},
    measure::{host_cpus, number},
    objects::Objects,
    sample_name::{SampleName, draw_id},
    weights::models_of,
};
use link_sampler::{LinkSampler, MAX_CONCURRENT_READS};
use step_costs::{candidates, gateway_groups, run};

/// The most places in which models are cut.
const MAX_CUTS: usize = 12;

/// The costs of a pipeline on samples of a bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// URL of the store endpoint.
    pub endpoint: String,
    /// URL of a gateway beside the store.
    pub gateway_url: Option<String>,
    /// The measured pipeline. Its models are cut where a split may be worthwhile.
    pub pipeline: Pipeline,
    /// The samples that were measured.
    pub samples: Vec<SampleProfile>,
    /// Names of the samples that failed, each with the reason.
    pub failed: Vec<(String, String)>,
    /// Bytes per second of concurrent object reads: the link, or with a gateway beside the store the path from the store, is at least
    /// this fast. `None` if too few bytes were read.
    pub link_bytes_per_second: Option<f64>,
    /// Cores of the gateway, or of each of its replicas, if they state them.
    pub gateway_cores: Option<f64>,
    /// The replicas of the gateway; one if it has one address.
    pub replicas: Vec<ReplicaReport>,
    /// Whether the gateway and this process use the same CPUs, all of them on both, so that their work adds up.
    pub has_shared_cpus: bool,
    /// Why values of the gateway do not agree with those of this host. A reader then pushes only the steps before, even if
    /// its plan pushes more.
    pub engine_mismatch: Option<String>,
}

/// What to measure.
#[derive(Debug)]
pub(crate) struct ProfileRequest<'a> {
    /// Its models are cut where a split may be worthwhile.
    pub(crate) pipeline: &'a Pipeline,
    /// The number of steps that also run on this host. Later steps are assumed to differ from the gateway's by the same
    /// factor.
    pub(crate) host_steps: usize,
    pub(crate) seed: Option<u64>,
    pub(crate) epoch: u32,
}

/// The costs of one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleProfile {
    /// Name of the sample: the key of its object, or `key member NAME` for a member of a shard.
    pub key: String,
    /// One candidate split for each stage that can be planned: the object first, and after it the cropped JPEG if there are any.
    pub candidates: Vec<Candidate>,
}

/// One sample, and what its answer states about the gateway.
#[derive(Debug)]
struct MeasuredSample {
    sample: SampleProfile,
    gateway_cores: Option<f64>,
    /// Identifies the gateway's CPUs, if stated.
    gateway_cpus: Option<String>,
    engine_mismatch: Option<String>,
}

/// The outcome of measuring one sample.
#[derive(Debug)]
enum Measurement {
    Done(MeasuredSample),
    Failed(Error),
}

impl Store {
    /// Runs a pipeline on these objects, at the gateway and on this host, and measures both.
    ///
    /// # Errors
    /// If no gateway can be reached. Objects that it refuses are listed in the profile.
    pub async fn profile(
        &self,
        objects: &Objects,
        pipeline: &Pipeline,
        seed: Option<u64>,
        epoch: u32,
    ) -> Result<Profile> {
        let request = ProfileRequest {
            pipeline: &refined(pipeline),
            host_steps: usize::MAX,
            seed,
            epoch,
        };
        self.profile_all(objects, &request).await
    }

    /// As [`profile`](Self::profile), for a pipeline whose models are already cut.
    pub(crate) async fn profile_all(
        &self,
        objects: &Objects,
        request: &ProfileRequest<'_>,
    ) -> Result<Profile> {
        let mut profile = Profile {
            endpoint: self.endpoint(),
            gateway_url: self.gateway_url(),
            pipeline: request.pipeline.clone(),
            samples: Vec::new(),
            failed: Vec::new(),
            link_bytes_per_second: None,
            gateway_cores: None,
            replicas: Vec::new(),
            has_shared_cpus: false,
            engine_mismatch: None,
        };
        // Measuring on this host downloads the weights, so their download cost is only visible now.
        let mut missing = models_of(request.pipeline.steps());
        missing.retain(|model| !model.is_local());
        let mut link = LinkSampler::default();
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let own_cpus = host_cpus(threads);
        for first in (0..objects.len()).step_by(MAX_CONCURRENT_READS) {
            let indices = first..objects.len().min(first + MAX_CONCURRENT_READS);
            let read = link.read(self, objects, indices).await;
            // A first run loads weights and fills caches; it does not count.
            if first == 0
                && let Some((index, Ok(stored))) = read.first()
            {
                let measured = self.measure(objects, *index, stored, request, &missing).await;
                drop(Measurement::from_result(measured)?);
            }
            for (index, stored) in read {
                let measured = match stored {
                    Ok(stored) => self.measure(objects, index, &stored, request, &missing).await,
                    Err(error) => Err(error),
                };
                match Measurement::from_result(measured)? {
                    Measurement::Done(measured) => {
                        profile.samples.push(measured.sample);
                        profile.gateway_cores = measured.gateway_cores;
                        profile.has_shared_cpus = own_cpus.is_some() && measured.gateway_cpus == own_cpus;
                        profile.engine_mismatch = measured.engine_mismatch;
                    }
                    Measurement::Failed(error) => {
                        let name = SampleName::from(objects.object(index));
                        profile.failed.push((name.to_string(), error.to_string()));
                    }
                }
            }
        }
        profile.link_bytes_per_second = link.rate();
        profile.replicas = self.replica_reports();
        Ok(profile)
    }

    async fn measure(
        &self,
        objects: &Objects,
        index: usize,
        stored: &Bytes,
        request: &ProfileRequest<'_>,
        missing: &[Arc<dyn NamedModel>],
    ) -> Result<MeasuredSample> {
        let limits = Limits::default();
        let &ProfileRequest {
            pipeline,
            host_steps,
            seed,
            epoch,
        } = request;
        let value = ValueRequest {
            pipeline,
            split: Split::Full,
            seed,
            epoch: Some(epoch),
            accept: None,
        };
        let (bucket, object) = (objects.bucket(), objects.object(index));
        // The gateway may have cached the value, and its steps are to be measured.
        let anew = (CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let pushed = self
            .get_sample_value_with(bucket, object, &value, &limits, anew)
            .await?;
        let (steps, object_bytes, id) = (pipeline.clone(), stored.clone(), draw_id(object).into_owned());
        let until = host_steps.min(pipeline.len());
        // On its own thread: a download of weights blocks, and needs this runtime.
        let host_run = run_on_thread(move || {
            let context = Context {
                seed,
                epoch: Some(epoch),
                limits,
                ..Context::new(&id)
            };
            run(&steps, until, Sample::Bytes(object_bytes), &context)
        });
        let host_groups = host_run.await??;
        let gateway_groups = gateway_groups(&pushed.headers, pipeline)?;
        let kinds = pipeline.kinds_for(&Kind::of_object(Some(stored.len() as u64), stored))?;
        let mut bytes: Vec<_> = kinds.iter().map(Kind::bytes).collect();
        // The size of an encoder's output is only known from the value.
        if let Some(last) = bytes.last_mut() {
            last.get_or_insert(pushed.body.len() as u64);
        }
        let mut candidates = candidates(pipeline, &bytes, &host_groups, &gateway_groups, missing)?;
        if let Some(crop_steps) = self.crop_steps(pipeline).filter(|steps| *steps <= until) {
            let cropped = self
                .measure_cropped(objects, index, request, &candidates, crop_steps)
                .await?;
            candidates.splice(1..1, cropped);
        }
        let cores = number(pushed.headers.get(header::CORES));
        // By now the layers have run on this host, or cannot.
        let engine = available_engine(pipeline.steps());
        let text = |name: &str| pushed.headers.get(name).and_then(|value| value.to_str().ok());
        let gateway = text(header::ENGINE);
        Ok(MeasuredSample {
            sample: SampleProfile {
                key: SampleName::from(object).to_string(),
                candidates,
            },
            gateway_cores: cores,
            gateway_cpus: text(header::CPUS).map(str::to_owned),
            engine_mismatch: gateway.and_then(|gateway| check_engine(&engine, gateway).err()),
        })
    }
}

impl Measurement {
    /// Separates errors of one sample from those of the gateway. The latter end the profile.
    fn from_result(measured: Result<MeasuredSample>) -> Result<Self> {
        use ErrorKind::{Pipeline, Refused, Sample};
        match measured {
            Ok(measured) => Ok(Self::Done(measured)),
            Err(error) if matches!(error.kind(), Refused | Sample | Pipeline) => Ok(Self::Failed(error)),
            Err(error) => Err(error),
        }
    }
}

/// The pipeline with its models cut where a split may be worthwhile.
pub(crate) fn refined(pipeline: &Pipeline) -> Pipeline {
    pipeline.refined(MAX_CUTS)
}

/// Runs `work` on its own thread.
async fn run_on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, done) = oneshot::channel();
    let send = move || drop(sender.send(work()));
    std::thread::Builder::new()
        .name("pushdown-profile".to_owned())
        .spawn(send)
        .map_err(|error| Error::internal("cannot start a thread to measure on").with_source(error))?;
    done.await.map_err(|_closed| Error::internal("a step panicked"))
}
