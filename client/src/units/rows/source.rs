//! Reads rows of objects: at the gateway, or from stored columns.

use std::{sync::Arc, time::Duration};

use arrow_schema::SchemaRef;
use futures::StreamExt as _;
use pushdown::{
    Engine, Kind, Limits, Pipeline, Sample, Step, Table, TableBuilder,
    wire::{
        Compression, Split, TableForm,
        header::{ENGINE, SOURCE_ETAG},
    },
};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;

use crate::{
    cpu::CpuPool,
    engine::{check_steps, parse_engine},
    epoch::PacedBytes,
    error::{Error, ErrorKind, Result},
    objects::Objects,
    planning::ReadCost,
    stats::{Counters, add},
    store::{GatewayRoute, RangePart, Store, StoredTable, Value, ValueRequest},
};

/// Whether the gateway does not compute rows that this host may be able to compute: it refuses, or had no time despite all retries.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Unavailable => true,
        ErrorKind::Sample => false,
        _ => !error.is_retryable(),
    }
}

/// The objects of a reader of rows.
#[derive(Debug)]
pub(crate) struct TableSource {
    pub(crate) store: Store,
    pub(crate) objects: Objects,
    /// The same objects, with their versions and footers.
    pub(crate) tables: Vec<StoredTable>,
    pub(crate) seed: Option<u64>,
    pub(crate) compression: Compression,
    /// The engine of this host, if values of the gateway are used only if they agree with those of this host.
    pub(crate) engine: Option<Engine>,
    pub(crate) limits: Limits,
    pub(crate) cpu: CpuPool,
    pub(crate) counters: Counters,
}

impl TableSource {
    /// The rows of an object after the first `steps` steps of a pipeline, which the gateway runs; after the first step, which reads
    /// stored columns on this host, if there are none. Also what that cost. Counts the bytes that arrive in `paced`.
    pub(super) async fn rows(
        &self,
        object: usize,
        pipeline: &Pipeline,
        steps: usize,
        epoch: u32,
        paced: Option<Arc<PacedBytes>>,
        route: GatewayRoute,
    ) -> Result<(Table, ReadCost)> {
        let (table, cost) = if steps == 0 {
            self.read_local(object, pipeline, epoch, paced).await?
        } else {
            self.read_remote(object, pipeline, steps, epoch, paced, route)
                .await?
        };
        add(&self.counters.value_bytes, table.bytes());
        Ok((table, cost))
    }

    /// The route to the rows of an object at the gateway.
    pub(super) fn route(&self, object: usize) -> GatewayRoute {
        GatewayRoute::to(self.objects.bucket(), self.objects.key(object))
    }

    async fn read_remote(
        &self,
        object: usize,
        pipeline: &Pipeline,
        steps: usize,
        epoch: u32,
        paced: Option<Arc<PacedBytes>>,
        route: GatewayRoute,
    ) -> Result<(Table, ReadCost)> {
        let steps =
            u8::try_from(steps).map_err(|_| Error::internal("a stage is beyond the pipeline's end"))?;
        let form = TableForm::ArrowStream(self.compression);
        let request = ValueRequest {
            pipeline,
            split: Split::At(steps),
            seed: self.seed,
            epoch: Some(epoch),
            accept: Some(form.accept()),
        };
        let key = self.objects.key(object);
        let arrived = |bytes| paced.iter().for_each(|paced| paced.add(bytes));
        let value = self
            .store
            .get_value_observed(
                self.objects.bucket(),
                key,
                &request,
                &self.limits,
                &arrived,
                route,
            )
            .await?;
        if !self.tables[object].matches_etag(value.headers.get(SOURCE_ETAG)) {
            return Err(self.replaced(object, "found another ETag"));
        }
        self.check_engine(&pipeline.steps()[..usize::from(steps)], &value)?;
        let limits = self.limits;
        let cost = ReadCost::Gateway {
            cores_ratio: self.store.cores_ratio(&value.headers),
            headers: value.headers.clone(),
        };
        match self.cpu.run(move || value.decode(&limits)).await?? {
            Sample::Table(table) => Ok((table, cost)),
            other => Err(Error::protocol(format!(
                "invalid answer from the gateway: expected a table, found {}",
                Kind::from(&other)
            ))),
        }
    }

    /// Checks that a value after these steps is the one that this host would compute.
    fn check_engine(&self, steps: &[Step], value: &Value) -> Result<()> {
        let Some(host) = &self.engine else {
            return Ok(());
        };
        let stated = value.headers.get(ENGINE).and_then(|engine| engine.to_str().ok());
        let gateway = parse_engine(host, stated.unwrap_or("missing")).map_err(Error::protocol)?;
        check_steps(steps, host, &gateway).map_err(|disagreement| Error::protocol(disagreement.reason))
    }

    /// Runs the first step of a pipeline on this host, over the ranges of the object that it needs. If several reads of an object
    /// are in flight, only one of them has the rate that was measured.
    #[expect(
        clippy::disallowed_methods,
        reason = "a scan alternates between computing and waiting, so it needs a thread and a runtime"
    )]
    async fn read_local(
        &self,
        object: usize,
        pipeline: &Pipeline,
        epoch: u32,
        paced: Option<Arc<PacedBytes>>,
    ) -> Result<(Table, ReadCost)> {
        let mut table = self.tables[object].clone();
        if let Some(paced) = paced {
            table = table.on_arrival(move |part| match part {
                RangePart::Received(bytes) => paced.add(bytes),
                RangePart::Known(bytes) => paced.add_known(bytes),
            });
        }
        let pipeline = pipeline.clone();
        let (seed, limit, runtime) = (self.seed, self.limits.max_value_bytes, Handle::current());
        let scanning = async move {
            let mut scan = table.scan_steps(&pipeline, 1, seed, epoch).await?;
            let mut rows = TableBuilder::new(SchemaRef::clone(scan.schema()), limit);
            while let Some(batch) = scan.next().await {
                let pushed = batch.and_then(|batch| rows.push(batch));
                pushed.map_err(|error| table.map_error(error))?;
            }
            Ok::<_, Error>((rows.build(), table.take_read_rate()))
        };
        let scanning = move || {
            let cpu = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
            let began = cpu();
            let (rows, rate) = runtime.block_on(scanning)?;
            let time = cpu().saturating_sub(began);
            Ok::<_, Error>((rows, ReadCost::Host { time, rate }))
        };
        let scanned = tokio::task::spawn_blocking(scanning).await;
        scanned.map_err(|error| Error::internal("a scan failed").with_source(error))?
    }

    /// The error for an object that was replaced.
    pub(super) fn replaced(&self, object: usize, found: &str) -> Error {
        let key = self.objects.key(object);
        let text = format!(
            "s3://{}/{key} was replaced while it was read: {found}; build the reader again",
            self.objects.bucket()
        );
        Error::new(ErrorKind::Sample, text)
    }
}
