//! A run: makes the parts that are missing, and ends with the manifest.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroUsize},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use pushdown::{
    part::{PartSpec, pack},
    pipeline::Digest,
    wire::{PartAction, PartError},
};

use super::{
    LabelSource, Materialize, Observer,
    data_set::{CurrentSample, DataSet},
    estimate::{Estimate, MAX_CHANGES, MAX_SAMPLES, Trial, max_samples},
    gateway::{GatewayMaker, Values},
    labels::Labels,
    layout::{Layout, name_of, part_name, shown_name},
    local::LocalMaker,
    maker::{Made, Maker, PartJob},
    manifest::{BadSample, Manifest, ManifestPart},
    recipe::Recipe,
    target::{Target, TargetContents},
};
use crate::{
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    models::parse_with_model_folder,
    store::Store,
    weights::preload,
};

/// Parts of an earlier run whose notes are read at a time.
const NOTES_IN_FLIGHT: usize = 16;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Samples of the data set.
    pub samples: u64,
    /// Those that are done, of parts in flight as well.
    pub samples_done: u64,
    /// Parts of the target.
    pub parts: u64,
    /// Those that are there.
    pub parts_done: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// What a run has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Materialized {
    /// Samples in all parts.
    pub samples: u64,
    /// Parts of the target.
    pub parts: u64,
    /// Those that this run has written.
    pub parts_written: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// CPU time of the steps of this run in seconds.
    pub cpu_seconds: f64,
    /// Time of this run in seconds.
    pub seconds: f64,
    /// Objects that no step can process, which are in no part.
    pub errors: Vec<BadSample>,
    /// Objects that were in the list, or in an earlier one, and are gone.
    pub vanished: Vec<String>,
}

/// A job whose data set and target are known.
#[derive(Debug)]
pub(super) struct Job {
    source: Store,
    target: Target,
    contents: TargetContents,
    data_set: DataSet,
    layout: Layout,
    maker: Maker,
    recipe: Recipe,
    /// The trial that decided how large parts are; `None` if the target says it.
    trial: Option<Trial>,
    observer: Observer,
    start: Instant,
}

/// The counts behind [`Progress`].
#[derive(Debug)]
struct Counts {
    samples: u64,
    parts: u64,
    samples_done: AtomicU64,
    parts_done: AtomicU64,
    bytes: AtomicU64,
}

impl Materialize {
    /// Lists source and target, and decides what the parts are.
    pub(super) async fn open(self) -> Result<Job> {
        let start = Instant::now();
        let (bucket, prefix) = self.target()?;
        let target_store = self.target_store.clone().unwrap_or_else(|| self.store.clone());
        let target = Target::new(target_store, bucket, &prefix);
        self.check_apart(&target)?;
        let of_folder = self.models.as_deref();
        let pipeline = match of_folder {
            Some(folder) => parse_with_model_folder(&self.pipeline, folder)?,
            None => self.store.pipeline(&self.pipeline).await?,
        };
        pipeline
            .check_randomness(pipeline.len(), self.seed, Some(self.epoch))
            .map_err(|error| {
                let text = format!("{error}; set a seed, on which the parts depend then");
                Error::new(ErrorKind::Pipeline, text).with_source(error)
            })?;
        let objects = if let Some(objects) = &self.objects {
            objects.clone()
        } else {
            let listed = self
                .store
                .list_objects_with(&self.bucket, &self.prefix, self.hidden, |_| ());
            listed.await?
        };
        if objects.is_empty() {
            return Err(Error::config(format!(
                "no objects found under s3://{}/{}",
                self.bucket, self.prefix
            )));
        }
        self.store.locate(objects.bucket()).await?;
        let labels = match self.labels {
            LabelSource::None => None,
            LabelSource::Folders => Some(Labels::of_folders(&objects, &self.prefix)?),
            LabelSource::Values(labels) => Some(labels),
        };
        let spec = PartSpec {
            format: self.format,
            kind: pipeline
                .kinds()
                .last()
                .cloned()
                .unwrap_or_else(pushdown::Kind::object),
            label: labels.as_ref().map(|labels| labels.label_type().clone()),
            columns: objects
                .columns()
                .iter()
                .map(|name| String::from(&**name))
                .collect(),
        };
        spec.check()
            .map_err(|error| Error::config(error.to_string()).with_source(error))?;
        let data_set = DataSet::new(objects, labels, &self.prefix)?;
        let contents = target.contents(self.format.extension()).await?;
        let seed = self.seed.filter(|_| pipeline.is_random(pipeline.len()));
        let values = Values {
            pipeline: pipeline.clone(),
            seed,
            epoch: self.epoch,
            format: self.format,
        };
        let (store, target_of_maker) = (self.store.clone(), target.clone());
        let maker = if self.is_local {
            preload(pipeline.steps());
            let cpu = CpuPool::build(self.threads, NonZeroUsize::MIN)?;
            Maker::Local(Box::new(LocalMaker::new(
                store,
                target_of_maker,
                data_set.clone(),
                values,
                cpu,
            )?))
        } else {
            Maker::Gateway(Box::new(
                GatewayMaker::new(store, target_of_maker, data_set.clone(), values).await?,
            ))
        };
        let most = max_samples(&data_set);
        let wanted_size = self.samples_per_part.map(NonZeroU32::get);
        if let Some(size) = wanted_size.filter(|size| *size > most) {
            return Err(Error::config(format!(
                "invalid samples_per_part: expected at most {most}, whose names fit into one request, found {size}"
            )));
        }
        // A target that has a recipe says what a trial would decide.
        let trial = match &contents.recipe {
            Some(_) => None,
            None => Some(
                Trial::run(
                    &self.store,
                    &maker,
                    &data_set,
                    &Layout::new(&data_set.objects, MAX_SAMPLES as usize)?,
                )
                .await?,
            ),
        };
        let found = contents.recipe.as_ref();
        let engine = found.map(|recipe| recipe.engine.clone());
        let size = wanted_size.or_else(|| Some(trial.as_ref()?.samples_per_part(&data_set)));
        let wanted = Recipe {
            version: Recipe::version(),
            source: format!("s3://{}/{}", self.bucket, self.prefix),
            pipeline: pipeline.to_string(),
            seed,
            epoch: if seed.is_some() { self.epoch } else { 0 },
            engine: engine
                .or_else(|| trial.as_ref().map(|trial| trial.engine.clone()))
                .unwrap_or_default(),
            format: self.format,
            label: spec.label,
            columns: spec.columns,
            samples_per_part: size.unwrap_or(most),
        };
        let recipe = match found {
            Some(found) => {
                found.check_same(&wanted, &target.url())?;
                Recipe {
                    samples_per_part: found.samples_per_part.min(most),
                    ..wanted
                }
            }
            None => wanted,
        };
        let size = recipe.samples_per_part as usize;
        let layout = match &contents.manifest {
            Some(manifest) => Layout::appended(&data_set.objects, size, manifest)?,
            None => Layout::new(&data_set.objects, size)?,
        };
        if let (Some(first), false, Some(_)) =
            (layout.new_objects().first(), self.appends, &contents.manifest)
        {
            return Err(Error::config(format!(
                "{} is complete, and {} objects are new, such as `{}`: add parts for them by `append`",
                target.url(),
                layout.new_objects().len(),
                shown_name(&data_set.objects, *first)
            )));
        }
        Ok(Job {
            source: self.store,
            target,
            contents,
            data_set,
            layout,
            maker,
            recipe,
            trial,
            observer: self.observer,
            start,
        })
    }

    /// Checks that neither of source and target is inside of the other one.
    fn check_apart(&self, target: &Target) -> Result<()> {
        let bucket = self
            .objects
            .as_ref()
            .map_or(self.bucket.as_str(), |objects| objects.bucket());
        let is_same_store =
            self.store.is_same(&target.store) || self.store.endpoint() == target.store.endpoint();
        let (source, target_prefix) = (self.prefix.as_str(), target.prefix.as_str());
        if is_same_store
            && bucket == target.bucket
            && (target_prefix.starts_with(source) || source.starts_with(target_prefix))
        {
            return Err(Error::config(format!(
                "{} is inside of the data set s3://{bucket}/{source}, or the other way round: use another target",
                target.url()
            )));
        }
        Ok(())
    }
}

impl Job {
    /// What a run would write.
    pub(super) async fn estimate(self) -> Result<Estimate> {
        let digest = self.recipe.digest()?;
        let missing = (0..self.layout.len()).filter(|number| self.existing(*number, &digest).is_none());
        let missing: u64 = missing.map(|number| self.layout.part(number).len() as u64).sum();
        let done = (0..self.layout.len())
            .filter(|number| self.existing(*number, &digest).is_some())
            .count();
        let trial = match self.trial {
            Some(trial) => trial,
            None => Trial::run(&self.source, &self.maker, &self.data_set, &self.layout).await?,
        };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let samples = missing as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        let bytes = (samples * trial.bytes_per_sample) as u64;
        Ok(Estimate {
            samples: self.layout.samples() as u64,
            samples_per_part: self.recipe.samples_per_part,
            parts: self.layout.len() as u64,
            parts_done: done as u64,
            bytes,
            cpu_seconds: samples * trial.seconds_per_sample,
            seconds: samples * trial.seconds_per_sample / trial.cores,
        })
    }

    /// Makes what is missing.
    pub(super) async fn run(mut self) -> Result<Materialized> {
        if self.contents.recipe.is_none() {
            // Of two runs at once, one has claimed the target.
            let claimed = self.target.claim(&self.recipe).await?;
            claimed.check_same(&self.recipe, &self.target.url())?;
            if claimed.samples_per_part != self.recipe.samples_per_part {
                self.layout = Layout::new(&self.data_set.objects, claimed.samples_per_part as usize)?;
            }
            self.recipe = claimed;
        }
        let digest = self.recipe.digest()?;
        let counts = Counts {
            samples: self.layout.samples() as u64,
            parts: self.layout.len() as u64,
            samples_done: AtomicU64::new(0),
            parts_done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        self.observer.observe(&counts);
        let numbers = 0..self.layout.len();
        let existing = numbers
            .clone()
            .filter_map(|number| Some((number, self.existing(number, &digest)?)));
        let noted = stream::iter(existing.map(|(number, (name, bytes))| {
            let (job, counts) = (&self, &counts);
            async move {
                let part = job.noted(number, name, bytes).await?;
                if part.is_some() {
                    job.count_part(counts, job.layout.part(number).len() as u64);
                }
                Ok::<_, Error>((number, part))
            }
        }));
        let noted: Vec<_> = noted.buffer_unordered(NOTES_IN_FLIGHT).try_collect().await?;
        let mut parts: BTreeMap<usize, ManifestPart> = noted
            .into_iter()
            .filter_map(|(number, part)| Some((number, part?)))
            .collect();
        let missing: Vec<usize> = numbers.filter(|number| !parts.contains_key(number)).collect();
        let in_flight = self.maker.parts_in_flight().await?.max(1);
        let made = stream::iter(missing.into_iter().map(|number| {
            let (job, counts, digest) = (&self, &counts, &digest);
            async move { Ok::<_, Error>((number, job.made(number, digest, counts).await?)) }
        }));
        let made: Vec<_> = made.buffer_unordered(in_flight).try_collect().await?;
        let mut cpu_seconds = 0.0;
        let mut parts_written = 0;
        for (number, made) in made {
            if let Some((part, seconds)) = made {
                cpu_seconds += seconds;
                parts_written += 1;
                parts.insert(number, part);
            }
        }
        let parts: Vec<ManifestPart> = parts.into_values().collect();
        self.check_recipe(&parts).await?;
        self.finish(parts, parts_written, cpu_seconds).await
    }

    /// Checks that the target still has the recipe of this run: at a store that ignores conditions, another one may have replaced it. Then
    /// what this run has written is deleted.
    async fn check_recipe(&self, parts: &[ManifestPart]) -> Result<()> {
        let found = self.target.recipe().await?;
        let Err(error) = found.check_same(&self.recipe, &self.target.url()) else {
            return Ok(());
        };
        let own = parts
            .iter()
            .filter(|part| !self.contents.parts.contains_key(&part.name));
        for part in own {
            self.target.delete(&part.name).await?;
        }
        Err(error)
    }

    /// Deletes parts that others replace, and writes the manifest.
    async fn finish(
        self,
        parts: Vec<ManifestPart>,
        parts_written: u64,
        cpu_seconds: f64,
    ) -> Result<Materialized> {
        let names: BTreeSet<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        // Those of a run with another recipe, too, which has lost the target meanwhile.
        let found = self.target.contents(self.recipe.format.extension()).await?.parts;
        for name in found.keys().filter(|name| !names.contains(name.as_str())) {
            self.target.delete(name).await?;
        }
        let errors = parts
            .iter()
            .flat_map(|part| part.errors.iter().cloned())
            .collect::<Vec<_>>();
        let manifest = Manifest {
            recipe: self.recipe,
            samples: parts.iter().map(|part| u64::from(part.samples)).sum(),
            bytes: parts.iter().map(|part| part.bytes).sum(),
            errors: errors.len() as u64,
            parts,
        };
        if self.contents.manifest.as_ref() != Some(&manifest) {
            self.target.write_manifest(&manifest).await?;
        }
        let mut vanished = self.layout.vanished_names();
        vanished.extend(self.data_set.vanished());
        Ok(Materialized {
            samples: manifest.samples,
            parts: manifest.parts.len() as u64,
            parts_written,
            bytes: manifest.bytes,
            cpu_seconds,
            seconds: self.start.elapsed().as_secs_f64(),
            errors,
            vanished,
        })
    }

    /// The name and the size of a part, if it is there.
    fn existing(&self, number: usize, recipe: &Digest) -> Option<(String, u64)> {
        let name = match self.layout.kept_part(number) {
            Some(part) => part.name.clone(),
            None => self.name(number, recipe, &self.data_set.current(self.layout.part(number))),
        };
        let bytes = *self.contents.parts.get(&name)?;
        Some((name, bytes))
    }

    fn name(&self, number: usize, recipe: &Digest, samples: &[CurrentSample<'_>]) -> String {
        let indices: Vec<u32> = samples.iter().map(|sample| sample.index).collect();
        let labels = self
            .data_set
            .labels
            .as_deref()
            .map(|labels| (labels, indices.as_slice()));
        let samples = samples.iter().map(|sample| (sample.object, sample.etag.as_str()));
        part_name(number, recipe, samples, labels, self.recipe.format.extension())
    }

    /// What the manifest says about a part that is there; `None` if the part does not tell.
    async fn noted(&self, number: usize, name: String, bytes: u64) -> Result<Option<ManifestPart>> {
        let known = self.contents.manifest.as_ref();
        let known = known.and_then(|manifest| manifest.parts.iter().find(|part| part.name == name));
        if let Some(part) = known {
            return Ok(Some(part.clone()));
        }
        let Some(notes) = self.target.notes(&name, bytes, self.recipe.format).await? else {
            return Ok(None);
        };
        let indices = self.layout.part(number);
        let samples = indices.len().saturating_sub(notes.len());
        Ok(Some(ManifestPart {
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            bytes,
            errors: notes.into_iter().map(BadSample::from).collect(),
            names: self.packed_names(indices.iter().copied())?,
            name,
        }))
    }

    fn packed_names(&self, indices: impl Iterator<Item = u32>) -> Result<String> {
        let names: Vec<String> = indices
            .map(|index| name_of(&self.data_set.objects, index))
            .collect();
        Ok(pack(&names)?)
    }

    /// Makes a part, and returns it with the CPU time of its steps in seconds. `None` if all of its objects are gone.
    async fn made(
        &self,
        number: usize,
        recipe: &Digest,
        counts: &Counts,
    ) -> Result<Option<(ManifestPart, f64)>> {
        if let Some(part) = self.layout.kept_part(number) {
            return Err(Error::config(format!(
                "cannot make the part {} of {} again: objects that it was made of are gone; use another target",
                part.name,
                self.target.url()
            )));
        }
        let counted = AtomicU64::new(0);
        let progress = |samples: u32| {
            let before = counted.fetch_max(samples.into(), Relaxed);
            counts
                .samples_done
                .fetch_add(u64::from(samples).saturating_sub(before), Relaxed);
            self.observer.observe(counts);
        };
        for _ in 0..MAX_CHANGES {
            let samples = self.data_set.current(self.layout.part(number));
            if samples.is_empty() {
                return Ok(None);
            }
            let name = self.name(number, recipe, &samples);
            let job = PartJob {
                samples: &samples,
                name: Some(&name),
                engine: Some(&self.recipe.engine),
            };
            let sample = |error: &PartError| samples.get(error.row as usize);
            match self.maker.make(&job, &progress).await?.0 {
                Made::Written(written) => {
                    let rest = (self.layout.part(number).len() as u64).saturating_sub(counted.load(Relaxed));
                    counts.bytes.fetch_add(written.bytes, Relaxed);
                    self.count_part(counts, rest);
                    let bad = written.errors.iter().filter_map(|error| {
                        Some(BadSample {
                            name: self.data_set.name_in_part(sample(error)?.index),
                            code: error.code.clone(),
                            message: error.message.clone(),
                        })
                    });
                    let part = ManifestPart {
                        samples: written.samples,
                        bytes: written.bytes,
                        errors: bad.collect(),
                        names: self.packed_names(samples.iter().map(|sample| sample.index))?,
                        name,
                    };
                    return Ok(Some((part, written.seconds)));
                }
                Made::Changed(errors) => {
                    let indices: Vec<u32> = errors
                        .iter()
                        .filter_map(|error| Some(sample(error)?.index))
                        .collect();
                    tracing::warn!(
                        part = number,
                        objects = indices.len(),
                        "objects were replaced after they were listed: they are listed again"
                    );
                    self.data_set.list_again(&self.source, &indices).await?;
                }
                Made::Refused {
                    action,
                    code,
                    message,
                    errors,
                } => {
                    let first = errors.first().and_then(sample);
                    let about = match (action, first) {
                        (PartAction::Read, Some(sample)) => {
                            format!("cannot read {}", shown_name(&self.data_set.objects, sample.index))
                        }
                        (PartAction::Write, _) => format!(
                            "cannot write s3://{}/{}",
                            self.target.bucket,
                            self.target.key(&name)
                        ),
                        _ => format!("cannot make part {number}"),
                    };
                    return Err(Error::new(
                        ErrorKind::Refused,
                        format!("{about}: {code}: {message}"),
                    ));
                }
            }
        }
        let text = format!(
            "cannot make part {number}: its objects were replaced {MAX_CHANGES} times while it was made"
        );
        Err(Error::new(ErrorKind::Sample, text))
    }

    fn count_part(&self, counts: &Counts, samples: u64) {
        counts.samples_done.fetch_add(samples, Relaxed);
        counts.parts_done.fetch_add(1, Relaxed);
        self.observer.observe(counts);
    }
}

impl Observer {
    fn observe(&self, counts: &Counts) {
        (self.0)(Progress {
            samples: counts.samples,
            samples_done: counts.samples_done.load(Relaxed),
            parts: counts.parts,
            parts_done: counts.parts_done.load(Relaxed),
            bytes: counts.bytes.load(Relaxed),
        });
    }
}
