//! The objects of one table: looked at, then read, each by a task of its own.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use futures::{StreamExt as _, stream};
use http::HeaderValue;
use pushdown::{
    MergeRule, Pipeline, SchemaMerger, Step,
    limits::BATCH_ROWS,
    wire::{Compression, TableForm},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    compute::{Permit, Tenant},
    error::{Error, ErrorKind, Result},
    origin::OriginRequest,
    pushdown::{
        Pushdown,
        batch::{HeldRequest, Turn, target},
        in_flight::Running,
        refused::Refused,
        request::Job,
        table::{BATCHES, Found, Planned},
    },
};

/// Record batches of an object that may lie ready.
const READY: usize = 1;

/// What is the same for all objects of a request.
pub(super) struct Objects {
    faces: Pushdown,
    request: Arc<HeldRequest>,
    pipeline: Arc<Pipeline>,
    host: HeaderValue,
    tenant: Tenant,
    /// Set by the first object that the store gives: before that the tenant is only claimed.
    running: OnceLock<Running>,
}

/// What an object gives.
pub(super) enum Piece {
    Rows(RecordBatch),
    /// All rows were given.
    End(Box<Ending>),
}

/// What an object has had until its last row left: memory, and then its turn, in the order in which they are given up.
pub(super) struct Ending {
    _memory: [Permit; 2],
    _turn: Turn,
}

/// An object that is being read. Dropping it stops that.
pub(super) struct Object {
    pieces: mpsc::Receiver<Result<Piece>>,
    _task: AbortOnDropHandle<()>,
}

impl Objects {
    pub(super) fn new(faces: Pushdown, request: Arc<HeldRequest>, host: HeaderValue, tenant: Tenant) -> Self {
        Self {
            pipeline: Arc::new(request.pipeline.clone()),
            faces,
            request,
            host,
            tenant,
            running: OnceLock::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.request.samples.len()
    }

    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    pub(super) fn compression(&self) -> Compression {
        self.request.compression
    }

    pub(super) fn job(&self, index: usize) -> Job {
        Job::of_sample(&self.request, index, &self.pipeline, self.tenant.now())
    }

    /// The stage of the table: as many steps as are run.
    pub(super) fn stage(&self) -> usize {
        self.job(0).scan().unwrap_or_default()
    }

    fn key(&self, index: usize) -> Arc<str> {
        String::from_utf8_lossy(&self.request.samples[index].id()).into()
    }

    /// The columns of all objects together, and the bytes that will be read of those that are stored, as a header has them.
    pub(super) async fn look(&self, rule: MergeRule) -> Result<(SchemaMerger, String)> {
        let mut several = SchemaMerger::new(rule, self.faces.sample_limits().tables.max_columns);
        let (mut read, mut stored) = (0_u64, 0_u64);
        let mut looks = stream::iter(0..self.len())
            .map(|index| async move {
                let (job, key) = (self.job(index), self.key(index));
                let planned = async { self.faces.plan(self.find(index).await?, &job).await };
                let planned = planned.await.map_err(|error| about(&key, error))?;
                Ok::<_, Error>((key, planned))
            })
            .buffered(self.faces.limits.batch_in_flight);
        while let Some(look) = looks.next().await {
            let (key, planned): (Arc<str>, Planned) = look?;
            let (schema, mut all) = (Arc::clone(planned.schema()), several);
            // Thousands of columns take milliseconds: too long for the I/O threads.
            let add = move || all.add(&key, &schema).map(|()| all);
            several = self.faces.cpu.run(&self.tenant.now(), add).await??;
            read = read.saturating_add(planned.source_bytes());
            stored = stored.saturating_add(planned.estimate().object_bytes);
        }
        Ok((several, format!("{read}/{stored}")))
    }

    /// Reads the end of an object, if the store lets the caller.
    async fn find(&self, index: usize) -> Result<Found> {
        let target = target(&self.request.samples[index], &self.request.presign)?;
        let target = OriginRequest::presigned(self.host.clone(), target);
        match self.faces.find(target).await? {
            Ok(found) => {
                self.running
                    .get_or_init(|| self.faces.in_flight.enter(&self.tenant));
                Ok(found)
            }
            Err(answer) => Err(Refused::read(answer).await.into()),
        }
    }

    /// Reads an object, and sends its rows as those of the one table.
    async fn send(
        &self,
        index: usize,
        (several, form): (Arc<SchemaMerger>, TableForm),
        mut turn: Turn,
        pieces: &mpsc::Sender<Result<Piece>>,
    ) -> Result<Option<Box<Ending>>> {
        let (job, key) = (self.job(index), self.key(index));
        let found = self.find(index).await;
        turn.come().await;
        let planned = self.faces.plan(found?, &job).await?;
        let schema = Arc::clone(planned.schema());
        let fit = move || several.mapping(&key, &schema, &several.schema());
        let fitting = Arc::new(self.faces.cpu.run(&self.tenant.now(), fit).await??);
        let rows = planned
            .estimate()
            .max_rows
            .map_or(BATCH_ROWS as u64, |rows| rows.min(BATCH_ROWS as u64));
        let added = fitting
            .added_bytes_per_row()
            .saturating_mul(rows)
            .saturating_mul(BATCHES as u64);
        let more = added.saturating_add(form.buffered_bytes());
        let admitted = self.faces.admit_scan(planned, &job, more).await?;
        let (mut scan, mut turns, fault) = (admitted.scan, admitted.turns, admitted.fault);
        loop {
            let fitting = Arc::clone(&fitting);
            let next = async move {
                let batch = scan.next().await;
                let batch = batch.map(|batch| fitting.apply(&batch?)).transpose();
                (scan, batch)
            };
            let batch;
            (scan, batch) = turns.run(next).await?;
            let Some(batch) = batch.map_err(|error| fault.of(error))? else {
                break;
            };
            if pieces.send(Ok(Piece::Rows(batch))).await.is_err() {
                return Ok(None);
            }
        }
        let name = self.pipeline.steps().first().map_or("", Step::name);
        self.faces.metrics.step(name, turns.spent());
        drop(scan);
        Ok(Some(Box::new(Ending {
            _memory: [admitted.held, admitted.permit],
            _turn: turn,
        })))
    }
}

// === impl Object ===

impl Object {
    /// Starts to read an object of the request.
    pub(super) fn start(
        objects: &Arc<Objects>,
        index: usize,
        (several, form): (Arc<SchemaMerger>, TableForm),
        turn: Turn,
    ) -> Self {
        let (sender, pieces) = mpsc::channel(READY);
        let objects = Arc::clone(objects);
        let task = tokio::spawn(async move {
            let last = match objects.send(index, (several, form), turn, &sender).await {
                Ok(Some(ending)) => Ok(Piece::End(ending)),
                // Nobody wants them any more.
                Ok(None) => return,
                Err(error) => Err(about(&objects.key(index), error)),
            };
            drop(sender.send(last).await);
        });
        Self {
            pieces,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// The next rows, or the end of them.
    pub(super) async fn next(&mut self) -> Result<Piece> {
        let died = || Err(Error::new(ErrorKind::Internal, "the scan was given up"));
        self.pieces.recv().await.unwrap_or_else(died)
    }
}

/// The error with the object that it is about.
fn about(key: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("`{key}`: {}", error.message())).with_source(error)
}
