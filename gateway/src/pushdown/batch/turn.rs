//! Taking turns: the rows of a batch ask for memory in their order.
//!
//! Rows leave in order and hold their memory until they have left. If a later row could take the last of the memory
//! while an earlier one waits for it, both would wait for ever.

use tokio::sync::oneshot;

/// A row's place in the line. Dropping it, after [`come`](Turn::come), lets the next row come.
#[derive(Debug)]
pub(in crate::pushdown) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _after: oneshot::Sender<()>,
}

/// Hands out turns in order.
#[derive(Debug, Default)]
pub(in crate::pushdown) struct Line {
    last: Option<oneshot::Receiver<()>>,
}

impl Line {
    /// The turn after all those handed out so far.
    pub(in crate::pushdown) fn next(&mut self) -> Turn {
        let (after, last) = oneshot::channel();
        Turn {
            before: self.last.replace(last),
            _after: after,
        }
    }
}

impl Turn {
    /// Waits until all earlier turns are over.
    pub(in crate::pushdown) async fn come(&mut self) {
        if let Some(before) = self.before.take() {
            // The end of a turn is the end of its channel: nothing is ever sent.
            _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn turns_come_in_order() {
        let mut line = Line::default();
        let (mut first, mut second, mut third) = (line.next(), line.next(), line.next());
        first.come().await;
        {
            let waiting = second.come();
            tokio::pin!(waiting);
            assert!(poll!(&mut waiting).is_pending());
            drop(first);
            waiting.await;
        }
        let waiting = third.come();
        tokio::pin!(waiting);
        assert!(poll!(&mut waiting).is_pending());
        drop(second);
        waiting.await;
    }
}
