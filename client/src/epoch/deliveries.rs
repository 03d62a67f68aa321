//! What is read ahead, handed over in the order in which it was started.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::Charge;
use crate::error::{Error, Result};

/// Reads in flight, in order, and the task that starts them. Dropping it cancels all of them.
///
/// It ends after the last read, or with the error that kept the task from starting another one.
#[derive(Debug)]
pub(crate) struct Deliveries<T> {
    started: mpsc::UnboundedReceiver<Delivery<T>>,
    /// The one that is handed over next.
    current: Option<Delivery<T>>,
    /// Starts reads; `None` once it has ended.
    driver: Option<AbortOnDropHandle<Result<()>>>,
}

/// Starts the reads of [`Deliveries`].
#[derive(Debug)]
pub(crate) struct DeliverySender<T>(mpsc::UnboundedSender<Delivery<T>>);

/// A read in flight. It counts against the budget until it is handed over.
#[derive(Debug)]
struct Delivery<T> {
    task: AbortOnDropHandle<Result<T>>,
    _charge: Arc<Charge>,
}

impl<T> Deliveries<T> {
    /// Runs `drive`, which starts reads until the last one, or until nobody takes them.
    pub(crate) fn start<F>(runtime: &Handle, drive: impl FnOnce(DeliverySender<T>) -> F) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        // The budget bounds the number of entries.
        let (sender, started) = mpsc::unbounded_channel();
        let driver = runtime.spawn(drive(DeliverySender(sender)));
        Self {
            started,
            current: None,
            driver: Some(AbortOnDropHandle::new(driver)),
        }
    }
}

impl<T: Send + 'static> DeliverySender<T> {
    /// Starts a read that counts as `charge`. Returns whether somebody takes what it reads; if not, it is cancelled.
    pub(crate) fn send(
        &self,
        charge: Arc<Charge>,
        read: impl Future<Output = Result<T>> + Send + 'static,
    ) -> bool {
        let reading = Arc::clone(&charge);
        let task = tokio::spawn(async move {
            let arrived = read.await;
            reading.settle();
            arrived
        });
        let delivery = Delivery {
            task: AbortOnDropHandle::new(task),
            _charge: charge,
        };
        self.0.send(delivery).is_ok()
    }
}

impl<T> Stream for Deliveries<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(delivery) = &mut this.current {
                let done = ready!(Pin::new(&mut delivery.task).poll(context));
                this.current = None;
                let failed = |error| Err(Error::internal("the task of a read failed").with_source(error));
                return Poll::Ready(Some(done.unwrap_or_else(failed)));
            }
            this.current = ready!(this.started.poll_recv(context));
            if this.current.is_some() {
                continue;
            }
            let Some(driver) = &mut this.driver else {
                return Poll::Ready(None);
            };
            let ended = ready!(Pin::new(driver).poll(context));
            this.driver = None;
            let failed = |error| Err(Error::internal("the task that starts reads failed").with_source(error));
            return Poll::Ready(ended.unwrap_or_else(failed).err().map(Err));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::{FutureExt as _, StreamExt as _};
    use tokio::{sync::oneshot, time::sleep};

    use super::*;
    use crate::epoch::Budget;

    /// A read that takes this many seconds.
    async fn read(seconds: u64) -> Result<u64> {
        sleep(Duration::from_secs(seconds)).await;
        Ok(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn reads_are_handed_over_in_the_order_in_which_they_started() {
        let budget = Budget::new(100);
        let mut deliveries = Deliveries::start(&Handle::current(), move |sender| async move {
            for (number, seconds) in [3, 1, 2].into_iter().enumerate() {
                let charge = Arc::new(budget.admit(number, 1).await);
                assert!(sender.send(charge, read(seconds)));
            }
            Ok(())
        });
        for expected in [3, 1, 2] {
            assert_eq!(deliveries.next().await.unwrap().unwrap(), expected);
        }
        assert!(deliveries.next().await.is_none() && deliveries.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_the_driver_comes_after_what_it_has_started() {
        let budget = Budget::new(100);
        let mut deliveries = Deliveries::start(&Handle::current(), move |sender| async move {
            let charge = Arc::new(budget.admit(0, 1).await);
            assert!(sender.send(charge, read(1)));
            Err(Error::internal("no order"))
        });
        assert_eq!(deliveries.next().await.unwrap().unwrap(), 1);
        let error = deliveries.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("no order"), "{error}");
        assert!(deliveries.next().await.is_none());
    }

    #[tokio::test]
    async fn what_has_arrived_counts_until_it_is_handed_over() {
        let budget = Budget::new(100);
        let shared = Arc::clone(&budget);
        let (arrive, arrived) = oneshot::channel();
        let mut deliveries = Deliveries::start(&Handle::current(), move |sender| async move {
            let charge = Arc::new(shared.admit(0, 60).await);
            let counted = Arc::clone(&charge);
            let read = async move {
                counted.adjust(80, 0);
                arrive.send(()).unwrap();
                Ok(())
            };
            assert!(sender.send(charge, read));
            Ok(())
        });
        arrived.await.unwrap();
        assert!(budget.admit(1, 30).now_or_never().is_none(), "80 and 30 of 100");
        deliveries.next().await.unwrap().unwrap();
        assert!(budget.admit(1, 30).now_or_never().is_some());
    }
}
