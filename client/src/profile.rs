//! What a pipeline costs on each side, measured on a few samples: the planner's input.

mod link;
mod measure;

use std::{num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use http::HeaderValue;
use pushdown::{
    Context, Engine, Kind, Limits, Pipeline, Sample,
    plan::{Candidate, Class, LoadingCost},
    step::model::Model,
    wire::{Split, header},
};
use tokio::sync::oneshot;

use crate::{
    adapt::cpus,
    engine::beside,
    error::{Error, ErrorKind, Result},
    models::of_steps,
    store::{GetValue, Object, Store},
};
use link::{Link, TOGETHER};
pub(crate) use measure::float;
use measure::{gateway_groups, run, ways};

/// Models are cut in so many places.
const MOST_CUTS: usize = 12;

/// The shortest object whose way over the link tells how fast that is.
pub(crate) const LONG: usize = 64 << 10;

/// What samples of a bucket cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The pipeline that was measured: its models are cut where a split may be worth while.
    pub pipeline: Pipeline,
    /// The samples that could be delivered.
    pub samples: Vec<SampleProfile>,
    /// The samples that could not, each with the reason.
    pub failed: Vec<(String, String)>,
    /// Bytes per second of objects that are read together: the link is at least as fast. `None` where these are few bytes.
    pub link_bytes: Option<f64>,
    /// Cores of the gateway, if it tells.
    pub gateway_cores: Option<f64>,
    /// Whether the gateway computes on the same CPUs as this process, all of them on both sides: its work and this host's add up.
    pub same_cpus: bool,
    /// Why values of the gateway may not stand beside those computed here, if so: a reader reads plainly then, whatever the plan.
    pub other_engine: Option<String>,
}

/// What to measure.
#[derive(Debug)]
pub(crate) struct Measure<'a> {
    pub(crate) bucket: &'a str,
    /// Its models are cut where a split may be worth while.
    pub(crate) pipeline: &'a Pipeline,
    /// How many steps run here, too: those behind them are taken to differ from the gateway's as these do.
    pub(crate) here: usize,
    pub(crate) seed: Option<u64>,
    pub(crate) epoch: u32,
}

/// What one sample costs.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleProfile {
    /// The object.
    pub key: String,
    /// One for each stage at which a split can be planned, stage 0 first.
    pub ways: Vec<Candidate>,
}

/// One sample, and what its answers told beside it.
#[derive(Debug)]
struct Measured {
    sample: SampleProfile,
    gateway_cores: Option<f64>,
    /// What names the gateway's CPUs, if it tells.
    gateway_cpus: Option<String>,
    other_engine: Option<String>,
}

impl Store {
    /// Runs a pipeline on these objects, at the gateway and here, and measures both.
    ///
    /// # Errors
    /// When no gateway can be asked. Objects that it refuses are listed.
    pub async fn profile(
        &self,
        bucket: &str,
        objects: &[Object],
        pipeline: &Pipeline,
        seed: Option<u64>,
        epoch: u32,
    ) -> Result<Profile> {
        let what = Measure {
            bucket,
            pipeline: &refined(pipeline),
            here: usize::MAX,
            seed,
            epoch,
        };
        self.measure_all(objects, &what).await
    }

    /// As [`profile`](Self::profile), of a pipeline that is cut already.
    pub(crate) async fn measure_all(&self, objects: &[Object], what: &Measure<'_>) -> Result<Profile> {
        let mut profile = Profile {
            pipeline: what.pipeline.clone(),
            samples: Vec::new(),
            failed: Vec::new(),
            link_bytes: None,
            gateway_cores: None,
            same_cpus: false,
            other_engine: None,
        };
        // Measuring here fetches their weights: what it costs to begin is seen now or never.
        let mut far = of_steps(what.pipeline.steps());
        far.retain(|model| !model.is_local());
        let mut link = Link::default();
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let here = cpus::name(threads);
        for (turn, objects) in objects.chunks(TOGETHER).enumerate() {
            let objects = link.read(self, what.bucket, objects).await;
            // Weights are loaded and caches warm before anything counts.
            if turn == 0
                && let Some((key, Ok(stored))) = objects.first()
            {
                drop(of_sample(self.measure(key, stored, what, &far).await)?);
            }
            for (key, stored) in objects {
                let measured = match stored {
                    Ok(stored) => self.measure(&key, &stored, what, &far).await,
                    Err(error) => Err(error),
                };
                match of_sample(measured)? {
                    Ok(measured) => {
                        profile.samples.push(measured.sample);
                        profile.gateway_cores = measured.gateway_cores;
                        profile.same_cpus = here.is_some() && measured.gateway_cpus == here;
                        profile.other_engine = measured.other_engine;
                    }
                    Err(error) => profile.failed.push((key.to_string(), error.to_string())),
                }
            }
        }
        profile.link_bytes = link.rate();
        Ok(profile)
    }

    async fn measure(
        &self,
        key: &Arc<str>,
        stored: &Bytes,
        what: &Measure<'_>,
        far: &[Arc<Model>],
    ) -> Result<Measured> {
        let limits = Limits::default();
        let &Measure {
            bucket,
            pipeline,
            here,
            seed,
            epoch,
        } = what;
        let value = GetValue {
            pipeline,
            split: Split::Full,
            seed,
            epoch: Some(epoch),
            accept: None,
        };
        let pushed = self.get_value(bucket, key, &value, &limits).await?;
        let (steps, object_bytes, id) = (pipeline.clone(), stored.clone(), Arc::clone(key));
        let until = here.min(pipeline.len());
        // On a thread of its own: weights may be fetched on the way, which waits for this runtime.
        let here = aside(move || {
            let context = Context {
                seed,
                epoch: Some(epoch),
                limits,
                ..Context::new(id.as_bytes())
            };
            run(&steps, until, Sample::Bytes(object_bytes), &context)
        });
        let here = here.await??;
        let there = gateway_groups(&pushed.headers, pipeline)?;
        let kinds = pipeline.kinds_for(&Kind::of_object(Some(stored.len() as u64), stored))?;
        let mut bytes: Vec<_> = kinds.iter().map(Kind::bytes).collect();
        // Only what came tells what an encoder makes.
        if let Some(last) = bytes.last_mut() {
            last.get_or_insert(pushed.body.len() as u64);
        }
        let cores = number(pushed.headers.get(header::CORES));
        // The layers have run here by now, or this host cannot run them.
        let engine = Engine::for_steps(pipeline.steps()).unwrap_or_default();
        let text = |name: &str| pushed.headers.get(name).and_then(|value| value.to_str().ok());
        let gateway = text(header::ENGINE);
        Ok(Measured {
            sample: SampleProfile {
                key: key.to_string(),
                ways: ways(pipeline, &bytes, &here, &there, far)?,
            },
            gateway_cores: cores,
            gateway_cpus: text(header::CPUS).map(str::to_owned),
            other_engine: gateway.and_then(|gateway| beside(&engine, gateway).err()),
        })
    }
}

/// A sample that cannot be had says nothing of the others; that there is no gateway does.
fn of_sample<T>(measured: Result<T>) -> Result<Result<T>> {
    use ErrorKind::{Pipeline, Refused, Sample};
    match measured {
        Err(error) if !matches!(error.kind(), Refused | Sample | Pipeline) => Err(error),
        measured => Ok(measured),
    }
}

/// The pipeline with its models cut where a split may be worth while.
pub(crate) fn refined(pipeline: &Pipeline) -> Pipeline {
    pipeline.refined(MOST_CUTS)
}

/// A number that a gateway tells.
pub(crate) fn number(header: Option<&HeaderValue>) -> Option<f64> {
    header?.to_str().ok()?.parse().ok()
}

/// Runs `work` on a thread of its own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, done) = oneshot::channel();
    let send = move || drop(sender.send(work()));
    std::thread::Builder::new()
        .name("pushdown-profile".to_owned())
        .spawn(send)
        .map_err(|error| Error::internal("no thread to measure on").with_source(error))?;
    done.await.map_err(|_closed| Error::internal("a step panicked"))
}

impl Profile {
    /// The samples in at most `most` classes of as many samples each, from the smallest objects to the largest; costs are
    /// means.
    ///
    /// Stages are those that can be planned for every sample.
    pub fn classes(&self, most: usize) -> Vec<Class> {
        let samples = self.by_size();
        let stages: Vec<usize> = (0..=self.pipeline.len())
            .filter(|stage| {
                samples
                    .iter()
                    .all(|sample| sample.ways.iter().any(|way| way.stage == *stage))
            })
            .collect();
        samples
            .chunks(self.class_size(most))
            .map(|chunk| Class {
                share: float(chunk.len() as u64) / float(samples.len() as u64),
                candidates: stages.iter().map(|stage| mean(chunk, *stage)).collect(),
            })
            .collect()
    }

    /// The most bytes of an object of each class: halfway to the next class, and any number for the last.
    pub fn bounds(&self, most: usize) -> Vec<f64> {
        let samples = self.by_size();
        let classes: Vec<_> = samples.chunks(self.class_size(most)).collect();
        let edge = |class: usize| {
            let last = classes[class].last().map_or(0.0, |sample| stored(sample));
            let next = classes.get(class + 1).and_then(|next| next.first());
            next.map_or(f64::INFINITY, |next| f64::midpoint(last, stored(next)))
        };
        (0..classes.len()).map(edge).collect()
    }

    fn by_size(&self) -> Vec<&SampleProfile> {
        let mut samples: Vec<_> = self.samples.iter().collect();
        samples.sort_by(|a, b| stored(a).total_cmp(&stored(b)));
        samples
    }

    fn class_size(&self, most: usize) -> usize {
        self.samples.len().div_ceil(most.max(1)).max(1)
    }
}

fn stored(sample: &SampleProfile) -> f64 {
    sample.ways.first().map_or(0.0, |way| way.bytes)
}

fn mean(samples: &[&SampleProfile], stage: usize) -> Candidate {
    let ways = || {
        samples
            .iter()
            .filter_map(|sample| sample.ways.iter().find(|way| way.stage == stage))
    };
    let mean =
        |what: fn(&Candidate) -> f64| ways().map(what).sum::<f64>() / float(samples.len().max(1) as u64);
    Candidate {
        stage,
        bytes: mean(|way| way.bytes),
        gateway_seconds: mean(|way| way.gateway_seconds),
        host_seconds: mean(|way| way.host_seconds),
        weights_bytes: mean(|way| way.weights_bytes),
        loading: LoadingCost::default(),
    }
}
