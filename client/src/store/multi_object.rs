//! Several objects as one table, computed by the gateway or on this host.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{StreamExt as _, stream};
use pushdown::{BatchMapping, Estimate, Limits, MergeRule, Pipeline, Scan, SchemaMerger, wire::Features};

use super::{
    BatchAnswer, Failure, GatewayRoute, Placement, Replica, Store, StoredTable, ValueRequest, ValueStream,
    has_ended,
};
use crate::{
    error::{Error, ErrorKind, Result},
    sign::{BatchPost, BatchSigner},
    transport::Answer,
};

/// Objects whose schemas are read concurrently.
const CONCURRENT_OPENS: usize = 8;

/// Several objects that form one table, in the order of their keys.
#[derive(Debug, Clone)]
pub struct StoredTables {
    store: Store,
    bucket: String,
    keys: Vec<Arc<str>>,
    rule: MergeRule,
    limits: Limits,
}

/// The rows of several objects, computed on this host one object after the other.
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
    /// Number of tables begun so far.
    begun: usize,
}

impl Store {
    /// Several objects of a bucket as one table. Reads nothing yet.
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

impl StoredTables {
    /// Requests the rows that the gateway computes from all objects, as a stream. The request is retried until the answer
    /// begins, but not after that.
    ///
    /// # Errors
    /// If the gateway or the store refuses an object; [`ErrorKind::NotAGateway`] if the endpoint is not a gateway.
    pub async fn stream(&self, request: &ValueRequest<'_>) -> Result<ValueStream> {
        self.stream_from(request, false).await
    }

    /// The same. If the gateway `is_dispensable` and does not answer, nothing is requested again.
    pub(super) async fn stream_from(
        &self,
        request: &ValueRequest<'_>,
        is_dispensable: bool,
    ) -> Result<ValueStream> {
        let about = format!("{} objects of s3://{}", self.keys.len(), self.bucket);
        let first_key = self.keys.first().map_or("", |key| &**key);
        let route = GatewayRoute::to(&self.bucket, first_key).dispensable_if(is_dispensable);
        let attempt = |replica: Arc<Replica>| async move {
            let answer = self.send(&replica, request).await?;
            Ok((replica, answer))
        };
        let answered = self.store.with_gateway_retries(&about, route, attempt);
        let (replica, answer) = answered.await?;
        self.store.value_stream(replica, answer)
    }

    pub(super) const fn store(&self) -> &Store {
        &self.store
    }

    /// Sends the request, and waits for the head of a successful answer; once more if it is refused after its signatures have ended, which they
    /// can while it waits at the gateway.
    async fn send(&self, replica: &Replica, value: &ValueRequest<'_>) -> Result<Answer, Failure> {
        let headers = value.accept_header()?;
        let write = |signer: BatchSigner, features: Features| async move {
            self.batch_post(value, &signer, &features)
        };
        let mut may_repeat = true;
        loop {
            let features = replica.features();
            let sent = self
                .store
                .send_batch(replica, &self.bucket, headers.clone(), features, write);
            let BatchAnswer { answer, validity } = sent.await?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            let refusal = answer.refusal().await;
            // The code is the gateway's, and not that of the object that the store has refused.
            let has_ended = !refusal.is_transient() && validity.is_some_and(|validity| has_ended(&validity));
            if !(has_ended && std::mem::take(&mut may_repeat)) {
                return Err(Failure::Refused(refusal));
            }
        }
    }

    /// The request for a gateway with these features.
    fn batch_post(
        &self,
        value: &ValueRequest<'_>,
        signer: &BatchSigner,
        features: &Features,
    ) -> Result<BatchPost> {
        let sample = |key: &Arc<str>| signer.sample(key);
        let samples = self.keys.iter().map(sample).collect();
        let mut request = signer.request(value.pipeline.clone(), samples);
        request.split = value.split;
        request.seed = value.seed;
        request.epoch = value.epoch;
        request.table = Some(self.rule);
        signer.post(&request, features)
    }

    /// Reads the schemas of all objects and prepares to run a pipeline's table steps on this host. The rows and the bytes read
    /// are the same as at the gateway.
    ///
    /// # Errors
    /// As [`StoredTable::scan`]; [`ErrorKind::Sample`] for objects whose columns do not match.
    pub async fn scan(&self, pipeline: &Pipeline, seed: Option<u64>, epoch: u32) -> Result<TablesScan> {
        let tables: Vec<_> = self
            .keys
            .iter()
            .map(|key| (Arc::clone(key), self.store.table(&self.bucket, key, &self.limits)))
            .collect();
        let opens = tables.iter().map(|(key, table)| async move {
            let scan = table.scan(pipeline, seed, epoch).await?;
            Ok::<_, Error>((key, Arc::clone(scan.schema()), *scan.estimate()))
        });
        let mut opens = stream::iter(opens).buffered(CONCURRENT_OPENS);
        let mut several = SchemaMerger::new(self.rule, self.limits.tables.max_columns);
        let mut estimate: Option<Estimate> = None;
        while let Some(opened) = opens.next().await {
            let (key, schema, of_one) = opened?;
            several.add(key, &schema).map_err(|error| mismatch(&error))?;
            estimate = Some(estimate.map_or(of_one, |all| all.combined_with(&of_one)));
        }
        drop(opens);
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

impl TablesScan {
    /// The columns of the one table.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The estimate over all objects.
    pub const fn estimate(&self) -> &Estimate {
        &self.estimate
    }

    /// The most bytes of rows to receive from the gateway, if it is expected to be faster; `None` if this host is. The first
    /// object decides.
    pub(super) async fn max_remote_bytes(&mut self) -> Result<Option<u64>> {
        let Some((table, scan, fitting)) = self.next_table().await? else {
            return Ok(None);
        };
        match table.choose_placement(&self.estimate, scan).await? {
            Placement::Local(scan) => {
                self.current = Some((table, scan, fitting));
                Ok(None)
            }
            Placement::Remote { max_bytes } => Ok(Some(max_bytes)),
        }
    }

    /// Begins at the first row.
    pub(super) fn restart(&mut self) {
        (self.current, self.begun) = (None, 0);
    }

    /// The next rows; `None` after those of the last object.
    ///
    /// # Errors
    /// As [`StoredTables::scan`].
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((table, scan, fitting)) = &mut self.current {
                if let Some(batch) = scan.next().await {
                    let batch = batch.and_then(|batch| fitting.apply(&batch));
                    return batch.map(Some).map_err(|error| table.map_error(error));
                }
                self.current = None;
            }
            let Some(next) = self.next_table().await? else {
                return Ok(None);
            };
            self.current = Some(next);
        }
    }

    /// Begins the next object; `None` after the last one.
    async fn next_table(&mut self) -> Result<Option<(StoredTable, Scan, BatchMapping)>> {
        let Some((key, table)) = self.tables.get(self.begun) else {
            return Ok(None);
        };
        self.begun += 1;
        let scan = table.scan(&self.pipeline, self.seed, self.epoch).await?;
        let fitting = self.several.mapping(key, scan.schema(), &self.schema);
        let fitting = fitting.map_err(|error| mismatch(&error))?;
        Ok(Some((table.clone(), scan, fitting)))
    }
}

/// An error about the columns of several objects.
fn mismatch(error: &pushdown::Error) -> Error {
    Error::new(ErrorKind::Sample, error.to_string())
}
