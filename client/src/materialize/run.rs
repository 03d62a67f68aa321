//! A run: makes the parts that are missing, and ends with the manifest.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use pushdown::{part::pack, pipeline::Digest};

use super::{
    Observer,
    data_set::CurrentSample,
    estimate::{Estimate, MAX_CHANGES, Trial},
    layout::{Layout, name_of, part_name},
    maker::{Made, PartJob},
    manifest::{BadSample, Manifest, ManifestPart},
    open::Job,
};
use crate::error::{Error, ErrorKind, Result};

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

/// The counts behind [`Progress`].
#[derive(Debug)]
struct Counts {
    samples: u64,
    parts: u64,
    samples_done: AtomicU64,
    parts_done: AtomicU64,
    bytes: AtomicU64,
}

impl Job {
    /// What a run would write.
    pub(super) async fn estimate(self) -> Result<Estimate> {
        let digest = self.recipe.digest()?;
        let numbers = 0..self.layout.len();
        let (done, missing): (Vec<usize>, Vec<usize>) =
            numbers.partition(|number| self.existing(*number, &digest).is_some());
        let trial = match self.trial {
            Some(trial) => trial,
            None => {
                Trial::run(
                    &self.source,
                    &self.maker,
                    &self.target,
                    &self.data_set,
                    &self.layout,
                )
                .await?
            }
        };
        let missing: u64 = missing
            .iter()
            .map(|number| self.layout.part(*number).len() as u64)
            .sum();
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
            parts_done: done.len() as u64,
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
            match self.maker.make(&job, &progress).await?.0 {
                Made::Written(written) => {
                    let rest = (self.layout.part(number).len() as u64).saturating_sub(counted.load(Relaxed));
                    counts.bytes.fetch_add(written.bytes, Relaxed);
                    self.count_part(counts, rest);
                    let bad = written.errors.iter().filter_map(|error| {
                        let sample = samples.get(error.row as usize)?;
                        Some(BadSample {
                            name: self.data_set.name_in_part(sample.index),
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
                    tracing::warn!(
                        part = number,
                        objects = errors.len(),
                        "objects were replaced after they were listed: they are listed again"
                    );
                    self.data_set
                        .list_again(&self.source, job.failed_samples(&errors))
                        .await?;
                }
                Made::Refused(refused) => return Err(job.refusal(&refused, &self.target)),
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
