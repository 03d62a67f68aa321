//! Lists source and target, and decides what the parts are.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Instant,
};

use pushdown::{Kind, Pipeline, part::PartSpec};

use super::{
    LabelSource, Materialize, Observer,
    data_set::DataSet,
    estimate::{MAX_SAMPLES, Trial, max_samples},
    gateway::GatewayMaker,
    labels::Labels,
    layout::{Layout, shown_name},
    local::LocalMaker,
    maker::{Maker, Values},
    recipe::Recipe,
    target::{Target, TargetContents},
};
use crate::{
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    models::parse_with_model_folder,
    objects::Objects,
    store::Store,
    weights::preload,
};

/// A job whose data set and target are known.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) source: Store,
    pub(super) target: Target,
    pub(super) contents: TargetContents,
    pub(super) data_set: DataSet,
    pub(super) layout: Layout,
    pub(super) maker: Maker,
    pub(super) recipe: Recipe,
    /// The trial that decided how large parts are; `None` if the target says it.
    pub(super) trial: Option<Trial>,
    pub(super) observer: Observer,
    pub(super) start: Instant,
}

impl Materialize {
    /// Lists source and target, and decides what the parts are.
    ///
    /// # Errors
    /// Those of [`run`](Self::run) before the first part.
    pub(super) async fn open(self) -> Result<Job> {
        let start = Instant::now();
        let target = self.checked_target()?;
        let pipeline = self.parse().await?;
        let objects = self.list().await?;
        self.store.locate(objects.bucket()).await?;
        let labels = match &self.labels {
            LabelSource::None => None,
            LabelSource::Folders => Some(Labels::of_folders(&objects, &self.prefix)?),
            LabelSource::Values(labels) => Some(labels.clone()),
        };
        let values = self.values(pipeline, &objects, labels.as_ref())?;
        let data_set = DataSet::new(objects, labels, &self.prefix)?;
        let most = max_samples(&data_set);
        let wanted = self.samples_per_part.map(NonZeroU32::get);
        if let Some(size) = wanted.filter(|size| *size > most) {
            return Err(Error::config(format!(
                "invalid samples_per_part: expected at most {most}, whose names fit into one request, found {size}"
            )));
        }
        let contents = target.contents(self.format.extension()).await?;
        let maker = self.maker(&target, &data_set, &values).await?;
        // A target that has a recipe says what a trial would decide.
        let (recipe, trial) = if let Some(found) = &contents.recipe {
            let size = wanted.unwrap_or(most);
            let recipe = self.recipe(&values, found.engine.clone(), size);
            found.check_same(&recipe, &target.url())?;
            let samples_per_part = found.samples_per_part.min(most);
            (
                Recipe {
                    samples_per_part,
                    ..recipe
                },
                None,
            )
        } else {
            let layout = Layout::new(&data_set.objects, MAX_SAMPLES as usize)?;
            let trial = Trial::run(&self.store, &maker, &target, &data_set, &layout).await?;
            let size = wanted.unwrap_or_else(|| trial.samples_per_part(&data_set));
            (self.recipe(&values, trial.engine.clone(), size), Some(trial))
        };
        let layout = self.layout(&recipe, &contents, &target, &data_set)?;
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

    /// The target, if neither of source and target is inside of the other one.
    fn checked_target(&self) -> Result<Target> {
        let (bucket, prefix) = self
            .target
            .clone()
            .ok_or_else(|| Error::config("no target is set: expected a bucket and a prefix for the parts"))?;
        let store = self.target_store.as_ref().unwrap_or(&self.store);
        let target = Target::new(store.clone(), bucket, &prefix);
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
        Ok(target)
    }

    async fn parse(&self) -> Result<Pipeline> {
        let pipeline = match self.models.as_deref() {
            Some(folder) => parse_with_model_folder(&self.pipeline, folder)?,
            None => self.store.pipeline(&self.pipeline).await?,
        };
        let checked = pipeline.check_randomness(pipeline.len(), self.seed, Some(self.epoch));
        checked.map_err(|error| {
            let text = format!("{error}; set a seed, on which the parts depend then");
            Error::new(ErrorKind::Pipeline, text).with_source(error)
        })?;
        Ok(pipeline)
    }

    async fn list(&self) -> Result<Objects> {
        let objects = match &self.objects {
            Some(objects) => objects.clone(),
            None => {
                self.store
                    .list_objects_with(&self.bucket, &self.prefix, self.hidden, |_| ())
                    .await?
            }
        };
        if objects.is_empty() {
            return Err(Error::config(format!(
                "no objects found under s3://{}/{}",
                self.bucket, self.prefix
            )));
        }
        Ok(objects)
    }

    fn values(&self, pipeline: Pipeline, objects: &Objects, labels: Option<&Labels>) -> Result<Values> {
        let columns = objects.columns().iter();
        let spec = PartSpec {
            format: self.format,
            kind: pipeline.kinds().last().cloned().unwrap_or_else(Kind::object),
            label: labels.map(|labels| labels.label_type().clone()),
            columns: columns.map(|name| String::from(&**name)).collect(),
        };
        spec.check()
            .map_err(|error| Error::config(error.to_string()).with_source(error))?;
        let seed = self.seed.filter(|_| pipeline.is_random(pipeline.len()));
        Ok(Values {
            pipeline,
            seed,
            epoch: self.epoch,
            spec,
        })
    }

    async fn maker(&self, target: &Target, data_set: &DataSet, values: &Values) -> Result<Maker> {
        let (store, target, data_set) = (self.store.clone(), target.clone(), data_set.clone());
        let values = values.clone();
        Ok(if self.is_local {
            preload(values.pipeline.steps());
            let cpu = CpuPool::build(self.threads, NonZeroUsize::MIN)?;
            Maker::Local(Box::new(LocalMaker::new(store, target, data_set, values, cpu)))
        } else {
            Maker::Gateway(Box::new(
                GatewayMaker::new(store, target, data_set, values).await?,
            ))
        })
    }

    fn recipe(&self, values: &Values, engine: String, samples_per_part: u32) -> Recipe {
        Recipe {
            version: Recipe::version(),
            source: format!("s3://{}/{}", self.bucket, self.prefix),
            pipeline: values.pipeline.to_string(),
            seed: values.seed,
            epoch: if values.seed.is_some() { self.epoch } else { 0 },
            engine,
            format: self.format,
            label: values.spec.label.clone(),
            columns: values.spec.columns.clone(),
            samples_per_part,
        }
    }

    fn layout(
        &self,
        recipe: &Recipe,
        contents: &TargetContents,
        target: &Target,
        data_set: &DataSet,
    ) -> Result<Layout> {
        let size = recipe.samples_per_part as usize;
        let Some(manifest) = &contents.manifest else {
            return Layout::new(&data_set.objects, size);
        };
        let layout = Layout::appended(&data_set.objects, size, manifest)?;
        match layout.new_objects() {
            [first, ..] if !self.appends => Err(Error::config(format!(
                "{} is complete, and {} objects are new, such as `{}`: add parts for them by `append`",
                target.url(),
                layout.new_objects().len(),
                shown_name(&data_set.objects, *first)
            ))),
            _ => Ok(layout),
        }
    }
}
