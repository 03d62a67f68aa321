//! Admission order: the rows of a batch reserve memory in their order.
//!
//! Rows are sent in order and keep their memory until they are sent. If a later row could take the last memory while an
//! earlier row waits for it, both would wait forever.

use tokio::sync::oneshot;

/// A row's place in the order. Dropping it, after [`wait`](AdmissionTicket::wait), admits the next row.
#[derive(Debug)]
pub(in crate::routes) struct AdmissionTicket {
    predecessor: Option<oneshot::Receiver<()>>,
    _successor: oneshot::Sender<()>,
}

/// Issues tickets in order.
#[derive(Debug, Default)]
pub(in crate::routes) struct AdmissionOrder {
    last: Option<oneshot::Receiver<()>>,
}

impl AdmissionOrder {
    /// A ticket after all tickets issued so far.
    pub(in crate::routes) fn next_ticket(&mut self) -> AdmissionTicket {
        let (successor, last) = oneshot::channel();
        AdmissionTicket {
            predecessor: self.last.replace(last),
            _successor: successor,
        }
    }
}

impl AdmissionTicket {
    /// Waits until all earlier tickets are dropped.
    pub(in crate::routes) async fn wait(&mut self) {
        if let Some(predecessor) = self.predecessor.take() {
            // Dropping a ticket closes its channel: nothing is ever sent.
            _ = predecessor.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn tickets_are_admitted_in_order() {
        let mut order = AdmissionOrder::default();
        let (mut first, mut second, mut third) =
            (order.next_ticket(), order.next_ticket(), order.next_ticket());
        first.wait().await;
        {
            let waiting = second.wait();
            tokio::pin!(waiting);
            assert!(poll!(&mut waiting).is_pending());
            drop(first);
            waiting.await;
        }
        let waiting = third.wait();
        tokio::pin!(waiting);
        assert!(poll!(&mut waiting).is_pending());
        drop(second);
        waiting.await;
    }
}
