//! Reads the units of an epoch ahead: a task that starts one task for each unit, in order, while plan, pace, requests and budget allow.

use std::{future, sync::Arc};

use tokio::{runtime::Handle, sync::Semaphore};

use super::{Budget, Charge, Deliveries, DeliverySender, PaceClass, PacedRead, Pacer, ReadPlan};
use crate::error::{Error, Result};

/// The units of an epoch: what is requested, arrives and counts against the budget as one. A batch of objects or of members is one, and so
/// is a row group.
pub(crate) trait Units: Send + Sync + 'static {
    /// A unit before it is read: its samples, and the stages at which their bytes are requested.
    type Request: Send;
    /// A unit that has been read.
    type Arrived: Send + 'static;

    /// The numbers of the units, in the order in which they are handed over.
    fn numbers(&self) -> impl Iterator<Item = usize> + Send;

    /// Waits for the plan that this unit depends on, if it does.
    fn until_planned(&self, _number: usize) -> impl Future<Output = ()> + Send {
        future::ready(())
    }

    /// What is requested of a unit. Its stages are decided here, once, by the plan in force.
    fn request(&self, number: usize) -> Self::Request;

    /// Which other units take about as long to read. By default all do.
    fn pace_class(&self, _request: &Self::Request) -> PaceClass {
        PaceClass::default()
    }

    /// The bytes in memory that a unit is expected to have.
    fn expected_bytes(&self, request: &Self::Request) -> u64;

    /// Reads a unit, and reports to the planner what is learnt from its answers. `paced` lets the next unit begin once enough has arrived, and
    /// `charge` counts the bytes that arrive.
    fn read(
        self: Arc<Self>,
        request: Self::Request,
        paced: PacedRead,
        charge: Arc<Charge>,
    ) -> impl Future<Output = Result<Self::Arrived>> + Send + 'static;
}

/// Reads the units that `prepare` returns, at most `requests` of the plan at a time and within its budget.
pub(crate) fn read_units<U: Units>(
    runtime: &Handle,
    plan: &ReadPlan,
    prepare: impl Future<Output = Result<U>> + Send + 'static,
) -> Deliveries<U::Arrived> {
    let budget = Budget::new(plan.prefetch_bytes);
    let requests = Arc::new(Semaphore::new(plan.requests.min(Semaphore::MAX_PERMITS)));
    Deliveries::start(runtime, move |deliveries| async move {
        let units = Arc::new(prepare.await?);
        drive(units, budget, requests, deliveries).await
    })
}

/// Starts units until the last one, or until nobody takes them.
async fn drive<U: Units>(
    units: Arc<U>,
    budget: Arc<Budget>,
    requests: Arc<Semaphore>,
    deliveries: DeliverySender<U::Arrived>,
) -> Result<()> {
    let pacer = Arc::new(Pacer::default());
    for number in units.numbers() {
        pacer.wait_for_next().await;
        units.until_planned(number).await;
        // The same order of acquisition for every unit: a later one never holds what an earlier one still needs.
        let closed = |error| Error::internal("the permits of requests are closed").with_source(error);
        let permit = Arc::clone(&requests).acquire_owned().await.map_err(closed)?;
        // Uses the plan that is in force after the wait.
        let request = units.request(number);
        let charge = Arc::new(budget.admit(number, units.expected_bytes(&request)).await);
        let paced = pacer.begin(units.pace_class(&request));
        let read = Arc::clone(&units).read(request, paced, Arc::clone(&charge));
        let is_taken = deliveries.send(charge, async move {
            let arrived = read.await;
            drop(permit);
            arrived
        });
        if !is_taken {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::StreamExt as _;
    use pushdown_exec::sync::Mutex;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::epoch::{
        Worker,
        order::{CheckedRank, SampleOrder, Tail},
    };

    /// Units of ten bytes, each read for a second. The next one may begin after half of it.
    #[derive(Debug)]
    struct TenBytes {
        count: usize,
        began: Instant,
        log: Arc<Mutex<Vec<(usize, u64)>>>,
    }

    impl Units for TenBytes {
        type Request = usize;
        type Arrived = usize;

        fn numbers(&self) -> impl Iterator<Item = usize> + Send {
            0..self.count
        }

        fn request(&self, number: usize) -> usize {
            number
        }

        fn expected_bytes(&self, _request: &usize) -> u64 {
            10
        }

        fn read(
            self: Arc<Self>,
            request: usize,
            paced: PacedRead,
            charge: Arc<Charge>,
        ) -> impl Future<Output = Result<usize>> + Send + 'static {
            let milliseconds = u64::try_from(self.began.elapsed().as_millis()).unwrap();
            self.log.lock().push((request, milliseconds));
            async move {
                sleep(Duration::from_millis(500)).await;
                paced.progress().allow_next();
                sleep(Duration::from_millis(500)).await;
                charge.adjust(10, 0);
                Ok(request)
            }
        }
    }

    /// When each of five units begins in milliseconds, while the consumer waits for `consumes` ones and then stops.
    async fn beginnings(requests: usize, prefetch_bytes: u64, consumes: usize) -> Vec<u64> {
        let plan = ReadPlan {
            batch_size: 1,
            rank: CheckedRank::new(0, 1).unwrap(),
            shuffle_seed: None,
            order: SampleOrder::Global,
            epoch: 0,
            start_position: 0,
            tail: Tail::Short,
            start: 0,
            worker: Worker::default(),
            limit: None,
            prefetch_bytes,
            requests,
        };
        let log = Arc::default();
        let units = TenBytes {
            count: 5,
            began: Instant::now(),
            log: Arc::clone(&log),
        };
        let mut deliveries = read_units(&Handle::current(), &plan, async { Ok(units) });
        for expected in 0..consumes {
            assert_eq!(deliveries.next().await.unwrap().unwrap(), expected);
        }
        sleep(Duration::from_mins(1)).await;
        let log = log.lock();
        assert!(log.iter().map(|(number, _)| *number).eq(0..log.len()));
        log.iter().map(|(_, began)| *began).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn units_begin_by_pace_requests_and_budget() {
        assert_eq!(beginnings(9, 90, 5).await, [0, 500, 1000, 1500, 2000], "by pace");
        assert_eq!(
            beginnings(1, 90, 5).await,
            [0, 1000, 2000, 3000, 4000],
            "by requests"
        );
        assert_eq!(
            beginnings(9, 10, 5).await,
            [0, 1000, 2000, 3000, 4000],
            "by budget"
        );
        assert_eq!(beginnings(9, 20, 0).await, [0, 500], "a budget that nobody frees");
    }
}
