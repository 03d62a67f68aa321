//! Several objects as one table: made by the gateway, or read here.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::Method;
use pushdown::{
    BatchMapping, Estimate, Limits, MergeRule, Pipeline, Scan, SchemaMerger,
    wire::{self, BatchRequest, BatchSample},
};

use super::{GetValue, Store, StoredTable, ValueStream, get::Failure, sooner::Sooner};
use crate::{
    error::{Error, ErrorKind, Result},
    sign::object_path,
    transport::Answer,
};

/// Objects that are looked at at a time.
const SIDE_BY_SIDE: usize = 8;

/// Several objects that are to be one table, in the order of their keys here.
#[derive(Debug, Clone)]
pub struct StoredTables {
    store: Store,
    bucket: String,
    keys: Vec<Arc<str>>,
    rule: MergeRule,
    limits: Limits,
}

/// The rows of several objects, read here one object after the other.
#[derive(Debug)]
pub struct TablesScan {
    pipeline: Pipeline,
    seed: Option<u64>,
    epoch: u32,
    several: SchemaMerger,
    schema: SchemaRef,
    estimate: Estimate,
    current: Option<(StoredTable, Scan, BatchMapping)>,
    tables: Vec<(Arc<str>, StoredTable)>,
    /// How many of them were begun.
    begun: usize,
}

impl Store {
    /// Several objects of a bucket as one table. Nothing is read yet.
    pub fn tables(
        &self,
        bucket: &str,
        keys: Vec<Arc<str>>,
        rule: MergeRule,
        limits: &Limits,
    ) -> StoredTables {
        StoredTables {
            store: self.clone(),
            bucket: bucket.to_owned(),
            keys,
            rule,
            limits: *limits,
        }
    }
}

// === impl StoredTables ===

impl StoredTables {
    /// The rows that the gateway makes of all objects, in pieces. It is tried again until the answer begins, and not after
    /// that.
    ///
    /// # Errors
    /// As the gateway or the store refuses an object; [`ErrorKind::NotAGateway`] where the endpoint is none.
    pub async fn stream(&self, what: &GetValue<'_>) -> Result<ValueStream> {
        let about = format!("{} objects of s3://{}", self.keys.len(), self.bucket);
        let answer = self.store.retrying(&about, || self.ask(what));
        self.store.value_stream(answer.await?)
    }

    async fn ask(&self, what: &GetValue<'_>) -> Result<Answer, Failure> {
        let presigner = self.store.presigner().await?;
        let sample = |key: &Arc<str>| {
            let path = object_path(&self.bucket, key);
            let signature = presigner.signature(&path);
            BatchSample::new(path, signature)
        };
        let samples = self.keys.iter().map(sample).collect();
        let mut request = BatchRequest::new(what.pipeline.clone(), presigner.query(), samples);
        request.split = what.split;
        request.seed = what.seed;
        request.epoch = what.epoch;
        request.table = Some(self.rule);
        let body = Bytes::from(request.to_json().map_err(Error::from)?);
        let headers = what.accepted()?;
        let answer = self
            .store
            .transport()
            .send(Method::POST, wire::header::BATCH_PATH, headers, body)
            .await?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(Failure::Refused(answer.refusal().await))
    }

    /// Looks at all objects, and gets ready to run a pipeline's table steps on them here: what the gateway would answer, from
    /// the bytes that it would read.
    ///
    /// # Errors
    /// As [`StoredTable::scan`]; [`ErrorKind::Sample`] for objects whose columns do not agree.
    pub async fn scan(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<TablesScan> {
        let tables: Vec<_> = self
            .keys
            .iter()
            .map(|key| (Arc::clone(key), self.store.table(&self.bucket, key, &self.limits)))
            .collect();
        let looks = tables.iter().map(|(key, table)| async move {
            let scan = table.scan(pipeline, seed, epoch).await?;
            Ok::<_, Error>((key, Arc::clone(scan.schema()), *scan.estimate()))
        });
        let mut looks = stream::iter(looks).buffered(SIDE_BY_SIDE);
        let mut several = SchemaMerger::new(self.rule, self.limits.tables.max_columns);
        let mut estimate: Option<Estimate> = None;
        while let Some(look) = looks.next().await {
            let (key, schema, of_one) = look?;
            several.add(key, &schema).map_err(|error| disagree(&error))?;
            estimate = Some(estimate.map_or(of_one, |all| all.combined_with(&of_one)));
        }
        drop(looks);
        Ok(TablesScan {
            pipeline: pipeline.clone(),
            seed,
            epoch,
            schema: several.schema(),
            several,
            estimate: estimate.unwrap_or_default(),
            current: None,
            tables,
            begun: 0,
        })
    }
}

// === impl TablesScan ===

impl TablesScan {
    /// The columns of the one table.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What reading all objects comes to.
    pub const fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    /// How many bytes of the rows may come from the gateway, where they are there sooner; `None` where going on with this is
    /// sooner, as the first object shows.
    pub(super) async fn sooner_here(&mut self) -> Result<Option<u64>> {
        let Some((table, scan, fitting)) = self.following().await? else {
            return Ok(None);
        };
        match table.sooner_here(&self.estimate, scan).await? {
            Sooner::Here(scan) => {
                self.current = Some((table, scan, fitting));
                Ok(None)
            }
            Sooner::There(left) => Ok(Some(left)),
        }
    }

    /// Begins with the first row.
    pub(super) fn start(&mut self) {
        (self.current, self.begun) = (None, 0);
    }

    /// The next rows; `None` behind the last object's.
    ///
    /// # Errors
    /// As [`StoredTables::scan`].
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((table, scan, fitting)) = &mut self.current {
                if let Some(batch) = scan.next().await {
                    let batch = batch.and_then(|batch| fitting.apply(&batch));
                    return batch.map(Some).map_err(|error| table.fault(error));
                }
                self.current = None;
            }
            let Some(following) = self.following().await? else {
                return Ok(None);
            };
            self.current = Some(following);
        }
    }

    /// The next object, begun; `None` behind the last one.
    async fn following(&mut self) -> Result<Option<(StoredTable, Scan, BatchMapping)>> {
        let Some((key, table)) = self.tables.get(self.begun) else {
            return Ok(None);
        };
        self.begun += 1;
        let scan = table.scan(&self.pipeline, self.seed, self.epoch).await?;
        let fitting = self.several.mapping(key, scan.schema(), &self.schema);
        let fitting = fitting.map_err(|error| disagree(&error))?;
        Ok(Some((table.clone(), scan, fitting)))
    }
}

/// An error about the columns of several objects.
fn disagree(error: &pushdown::Error) -> Error {
    Error::new(ErrorKind::Sample, error.to_string())
}
