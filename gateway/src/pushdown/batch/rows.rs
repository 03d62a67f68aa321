//! The samples of a batch, each fetched and run by a task of its own, given back in the order asked for.

use std::sync::{Arc, OnceLock};

use futures::{Stream, StreamExt as _, stream};
use http::{HeaderValue, uri::PathAndQuery};
use pushdown::wire::{BatchRequest, BatchSample, Order, Row, RowError};
use tokio_util::task::AbortOnDropHandle;

use super::{
    HeldRequest, Pushdown,
    turn::{Line, Turn},
};
use crate::{
    compute::{Permit, Standing},
    error::{Error, ErrorKind, Result},
    origin::OriginRequest,
    pushdown::{
        in_flight::Running,
        refused::Refused,
        request::Job,
        sample::{Computed, Fetched},
    },
    s3::errors::code,
};

/// A row and the permit for its value.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) row: Row,
    pub(super) permit: Option<Permit>,
}

/// All rows of `request`. Dropping the stream aborts what is under way.
pub(super) fn ready_rows(
    faces: Pushdown,
    request: Arc<HeldRequest>,
    host: HeaderValue,
    came: Standing,
) -> impl Stream<Item = Ready> + Send {
    let in_flight = faces.limits.batch_in_flight;
    let order = request.order;
    let pipeline = Arc::new(request.pipeline.clone());
    // Set by the first sample that the store accepts: before that the tenant is only claimed.
    let running = Arc::new(OnceLock::new());
    let mut line = Line::default();
    let tasks = stream::iter(0..request.samples.len()).map(move |index| {
        let (faces, request, host, turn) = (faces.clone(), Arc::clone(&request), host.clone(), line.next());
        let job = Job::of_sample(&request, index, &pipeline, came.again());
        let running = Arc::clone(&running);
        let task = tokio::spawn(async move { faces.row(&request, index, job, host, turn, &running).await });
        async move {
            AbortOnDropHandle::new(task)
                .await
                .unwrap_or_else(|_| crashed(index))
        }
    });
    match order {
        Order::Request => tasks.buffered(in_flight).left_stream(),
        Order::Any => tasks.buffer_unordered(in_flight).right_stream(),
    }
}

impl Pushdown {
    async fn row(
        &self,
        request: &BatchRequest,
        index: usize,
        job: Job,
        host: HeaderValue,
        turn: Turn,
        running: &OnceLock<Running>,
    ) -> Ready {
        let deadline = self.limits.request_deadline;
        let done =
            tokio::time::timeout(deadline, self.sample(request, index, &job, host, turn, running)).await;
        let done = done.unwrap_or_else(|_elapsed| {
            Err(Refusal::from(Error::new(
                ErrorKind::OriginTimeout,
                format!("the sample took longer than {deadline:?}"),
            )))
        });
        let row = u32::try_from(index).unwrap_or(u32::MAX);
        match done {
            Ok(computed) => Ready {
                row: Row {
                    row,
                    stage: u8::try_from(computed.stage).unwrap_or(u8::MAX),
                    seconds: computed.seconds.as_secs_f32(),
                    value: Ok(computed.sample),
                },
                permit: Some(computed.permit),
            },
            Err(Refusal(error)) => Ready {
                row: Row {
                    row,
                    stage: 0,
                    seconds: 0.0,
                    value: Err(error),
                },
                permit: None,
            },
        }
    }

    async fn sample(
        &self,
        request: &BatchRequest,
        index: usize,
        job: &Job,
        host: HeaderValue,
        mut turn: Turn,
        running: &OnceLock<Running>,
    ) -> Result<Computed, Refusal> {
        let target = match target(&request.samples[index], &request.presign) {
            Ok(target) => OriginRequest::presigned(host, target),
            Err(error) => {
                turn.come().await;
                return Err(error.into());
            }
        };
        if job.scan().is_some() {
            match self.scanned(target.clone(), job, turn, running).await? {
                Ok(done) => return Ok(done),
                Err(still) => turn = still,
            }
        }
        let opened = self.open(target, job).await;
        turn.come().await;
        let opened = match opened? {
            Fetched::Object(opened) => opened,
            Fetched::Refused(answer) => return Err(Refused::read(answer).await.into()),
        };
        running.get_or_init(|| self.in_flight.enter(job.standing.tenant()));
        let admitted = self.admit(opened, job).await?;
        drop(turn);
        Ok(self.compute(admitted, job).await?)
    }
}

impl Pushdown {
    /// The rows of an object that is read in parts; the turn comes back where `smallest` is the object as it is stored.
    async fn scanned(
        &self,
        request: OriginRequest,
        job: &Job,
        mut turn: Turn,
        running: &OnceLock<Running>,
    ) -> Result<Result<Computed, Turn>, Refusal> {
        let found = self.find(request).await;
        turn.come().await;
        let found = match found? {
            Ok(found) => found,
            Err(answer) => return Err(Refused::read(answer).await.into()),
        };
        running.get_or_init(|| self.in_flight.enter(job.standing.tenant()));
        let Some(planned) = self.plan_row(found, job).await? else {
            return Ok(Err(turn));
        };
        let admitted = self.admit_row(planned, job).await?;
        drop(turn);
        Ok(Ok(self.compute_row(admitted, job).await?))
    }
}

/// Why a sample has no value, as its row says it.
struct Refusal(RowError);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(RowError {
            code: code(error.kind()).to_owned(),
            message: error.message().to_owned(),
        })
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self(RowError {
            code: refused.code,
            message: refused.message,
        })
    }
}

/// What is asked of the store for a sample.
pub(in crate::pushdown) fn target(sample: &BatchSample, presign: &str) -> Result<PathAndQuery> {
    sample.target(presign).parse().map_err(|error| {
        Error::new(
            ErrorKind::InvalidRequest,
            format!("`{}` is no path of a request: {error}", sample.path),
        )
    })
}

fn crashed(index: usize) -> Ready {
    let error = RowError {
        code: code(ErrorKind::Internal).to_owned(),
        message: "the sample's task failed".to_owned(),
    };
    Ready {
        row: Row {
            row: u32::try_from(index).unwrap_or(u32::MAX),
            stage: 0,
            seconds: 0.0,
            value: Err(error),
        },
        permit: None,
    }
}
