//! One-off requests.

use arrow_schema::SchemaRef;
use pushdown::{Context, Kind, Limits, Pipeline, Sample, wire::Split};
use pushdown_client::{
    ErrorKind,
    internal::draw_id,
    store::{Object, Store as Endpoint, ValueRequest},
};
use pyo3::{prelude::*, types::PyBytes};

use crate::{
    batch::value_object,
    error::config,
    explain::ExplainOptions,
    live::Live,
    objects::Objects,
    pipeline::stages_json,
    settings::{self, Keys},
};

/// An endpoint. Threads live until `close`, or until it is dropped.
#[pyclass(frozen, module = "pushdown._native")]
#[derive(Debug)]
pub(crate) struct Store(Live<Endpoint>);

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, store_json: &str, credentials: Option<Keys>) -> PyResult<Self> {
        let builder = settings::store(store_json, credentials)?;
        let (live, ()) = Live::start(py, || builder.build(), |_| ())?;
        Ok(Self(live))
    }

    /// An object as stored, or a member of it, which is looked up in `index`, or in the shard itself.
    #[pyo3(signature = (bucket, key, member = None, index = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        bucket: &str,
        key: &str,
        member: Option<&str>,
        index: Option<&Objects>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let place = Place::new(bucket, key, member, index);
        let bytes = self.0.read_concurrently(py, |store| async move {
            let found = place.find(&store).await?;
            store
                .get_sample(bucket, found.object(0), &Limits::default())
                .await
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What a pipeline computes from an object, or from a member of it: at the gateway, or on this host if the endpoint is a plain
    /// store. Rows of tables are computed where it is expected to be faster.
    #[pyo3(signature = (bucket, key, pipeline, split = "full", seed = None, epoch = None, member = None, index = None))]
    #[expect(clippy::too_many_arguments, reason = "named arguments in Python")]
    fn get_value<'py>(
        &self,
        py: Python<'py>,
        bucket: &str,
        key: &str,
        pipeline: &str,
        split: &str,
        seed: Option<u64>,
        epoch: Option<u32>,
        member: Option<&str>,
        index: Option<&Objects>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let split: Split = split.parse().map_err(|error| config(format!("{error}")))?;
        let request = Request {
            place: Place::new(bucket, key, member, index),
            split,
            seed,
            epoch: epoch.unwrap_or(0),
        };
        let value = self.0.read_concurrently(py, |store| async move {
            let pipeline = store.pipeline(pipeline).await?;
            request.value(&store, &pipeline).await
        })?;
        value_object(py, value)
    }

    /// Kind, shape and bytes of each stage. Models are those of the endpoint.
    #[pyo3(signature = (pipeline, size = None, nbytes = None))]
    fn check_json(
        &self,
        py: Python<'_>,
        pipeline: &str,
        size: Option<(u32, u32)>,
        nbytes: Option<u64>,
    ) -> PyResult<String> {
        let read = |store: Endpoint| async move { store.pipeline(pipeline).await };
        let pipeline = self.0.read_concurrently(py, read)?;
        stages_json(&pipeline, size, nbytes)
    }

    /// Measures a pipeline on a few samples. Returns the costs of each split and the best plan, as JSON with a text for people.
    fn explain_json(
        &self,
        py: Python<'_>,
        objects: &Objects,
        pipeline: &str,
        options_json: &str,
    ) -> PyResult<String> {
        let options: ExplainOptions = serde_json::from_str(options_json)
            .map_err(|error| config(format!("invalid options: {error}")))?;
        let all = objects.list_ref();
        let sampled = options.sampled(all);
        let (seed, epoch) = (options.seed, options.epoch);
        let profile = self.0.read_concurrently(py, |store| async move {
            let pipeline = store.pipeline(pipeline).await?;
            store.profile(&sampled, &pipeline, seed, epoch).await
        })?;
        options.explanation(profile, all.len())
    }

    /// Waits until all threads have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py, |store| async move { drop(store) })
    }
}

/// What to read: an object, or a member of it.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    bucket: &'a str,
    key: &'a str,
    member: Option<&'a str>,
    /// Where the member is looked up. `None`: in the shard itself.
    index: Option<&'a pushdown_client::store::Objects>,
}

/// What to compute.
#[derive(Debug, Clone, Copy)]
struct Request<'a> {
    place: Place<'a>,
    split: Split,
    seed: Option<u64>,
    epoch: u32,
}

impl<'a> Place<'a> {
    fn new(bucket: &'a str, key: &'a str, member: Option<&'a str>, index: Option<&'a Objects>) -> Self {
        Self {
            bucket,
            key,
            member,
            index: index.map(Objects::list_ref),
        }
    }

    /// The sample to read, as a list of one.
    async fn find(self, store: &Endpoint) -> pushdown_client::Result<pushdown_client::store::Objects> {
        let Self {
            bucket,
            key,
            member,
            index,
        } = self;
        match (member, index) {
            (None, _) => Ok(pushdown_client::store::Objects::from_keys(bucket, [key])),
            (Some(name), Some(index)) => index.find_member(bucket, key, name),
            (Some(name), None) => {
                let index = store.shard_members(bucket, key).await?;
                index.members().find_member(bucket, key, name)
            }
        }
    }
}

impl Request<'_> {
    async fn value(self, store: &Endpoint, pipeline: &Pipeline) -> pushdown_client::Result<Sample> {
        let limits = Limits::default();
        let whole = pipeline.kinds().last();
        if self.split == Split::Full && self.place.member.is_none() && matches!(whole, Some(Kind::Table(_))) {
            return self.table(store, pipeline, &limits).await.map(Sample::Table);
        }
        let request = ValueRequest {
            pipeline,
            split: self.split,
            seed: self.seed,
            epoch: Some(self.epoch),
            accept: None,
        };
        let found = self.place.find(store).await?;
        let object = found.object(0);
        match store
            .get_sample_value(found.bucket(), object, &request, &limits)
            .await
        {
            Ok(value) => value.decode(&limits),
            Err(error) if error.kind() == ErrorKind::NotAGateway && self.split == Split::Full => {
                self.local(store, object, pipeline, limits).await
            }
            Err(error) => Err(error),
        }
    }

    /// The same on this host.
    async fn local(
        self,
        store: &Endpoint,
        object: Object<'_>,
        pipeline: &Pipeline,
        limits: Limits,
    ) -> pushdown_client::Result<Sample> {
        let stored = store.get_sample(self.place.bucket, object, &limits).await?;
        let id = draw_id(object);
        let context = Context {
            seed: self.seed,
            epoch: Some(self.epoch),
            limits,
            ..Context::new(&id)
        };
        // Whoever asked waits, and nothing else runs on this runtime.
        Ok(pipeline.run(0..pipeline.len(), Sample::Bytes(stored), &context)?)
    }

    async fn table(
        self,
        store: &Endpoint,
        pipeline: &Pipeline,
        limits: &Limits,
    ) -> pushdown_client::Result<pushdown::Table> {
        let table = store.table(self.place.bucket, self.place.key, limits);
        let mut rows = table.rows(pipeline, self.seed, self.epoch).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await? {
            batches.push(batch);
        }
        Ok(pushdown::Table::new(SchemaRef::clone(rows.schema()), batches)?)
    }
}
