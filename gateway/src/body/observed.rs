//! A body that somebody observes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Observes what a body yields, and decides what leaves in its place. It is dropped after the body, so it can also own what the body
/// needs until its end.
///
/// `E` is the error of the observed body. Nothing is asked of the observer after an error.
pub trait Observer<E> {
    /// The error of what leaves.
    type Error;

    /// Observes this body.
    fn observe<B>(self, body: B) -> ObservedBody<B, Self>
    where
        B: Body<Data = Bytes, Error = E>,
        Self: Sized,
    {
        ObservedBody {
            body,
            observer: self,
            state: State::Open,
        }
    }

    /// Called before each poll of the body, which happens only once this is ready.
    ///
    /// # Errors
    /// One that ends the body instead.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    /// Called when the body has nothing to yield yet. Ready with an error that ends the wait.
    fn poll_pending(&mut self, _cx: &mut Context<'_>) -> Poll<Self::Error> {
        Poll::Pending
    }

    /// Called with each frame of the body. Returns the frame that leaves in its place; `None` to hold it back.
    ///
    /// # Errors
    /// One that ends the body instead.
    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, Self::Error> {
        Ok(Some(frame))
    }

    /// Called with the error that ends the body.
    fn on_error(&mut self, error: E) -> Self::Error;

    /// Called at the end of the body.
    ///
    /// # Errors
    /// One that leaves before the end.
    fn on_end(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The next frame that was held back and may leave now: before the next frame of the body, or before its end.
    fn next_held(&mut self) -> Option<Frame<Bytes>> {
        None
    }

    /// The size of what will leave. `rest` is the size of what the body has not yielded yet.
    fn size_hint(&self, rest: SizeHint) -> SizeHint {
        rest
    }

    /// Whether nothing will leave any more. `has_body_ended` says it of the body.
    fn is_end_stream(&self, has_body_ended: bool) -> bool {
        has_body_ended
    }
}

/// A body and its observer. After an error and after its end it yields nothing more.
#[derive(Debug)]
pub struct ObservedBody<B, O> {
    // Dropped before the observer.
    body: B,
    observer: O,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The body has ended. The observer may hold frames.
    BodyEnded,
    /// Everything has left, or an error has.
    Ended,
}

impl<B, O> ObservedBody<B, O> {
    /// The observer.
    pub(crate) const fn observer(&self) -> &O {
        &self.observer
    }
}

impl<B, O> ObservedBody<B, O>
where
    B: Body<Data = Bytes> + Unpin,
    O: Observer<B::Error>,
{
    /// The next frame, or the error that ends the body; `None` at its end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, O::Error>> {
        loop {
            if let Some(frame) = self.observer.next_held() {
                return Poll::Ready(Ok(Some(frame)));
            }
            if self.state == State::BodyEnded {
                return Poll::Ready(Ok(None));
            }
            ready!(self.observer.poll_ready(cx))?;
            let Poll::Ready(polled) = Pin::new(&mut self.body).poll_frame(cx) else {
                return self.observer.poll_pending(cx).map(Err);
            };
            match polled {
                Some(Ok(frame)) => {
                    if let Some(frame) = self.observer.on_frame(frame)? {
                        return Poll::Ready(Ok(Some(frame)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(self.observer.on_error(error))),
                None => {
                    self.observer.on_end()?;
                    self.state = State::BodyEnded;
                }
            }
        }
    }
}

impl<B, O> Body for ObservedBody<B, O>
where
    B: Body<Data = Bytes> + Unpin,
    O: Observer<B::Error> + Unpin,
{
    type Data = Bytes;
    type Error = O::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, O::Error>>> {
        let this = self.get_mut();
        if this.state == State::Ended {
            return Poll::Ready(None);
        }
        let next = ready!(this.poll_next(cx)).transpose();
        if !matches!(next, Some(Ok(_))) {
            this.state = State::Ended;
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        match self.state {
            State::Open => self.observer.is_end_stream(self.body.is_end_stream()),
            State::BodyEnded => self.observer.is_end_stream(true),
            State::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.observer.size_hint(self.body.size_hint())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use futures::{FutureExt as _, channel::mpsc, stream};
    use http::HeaderMap;
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    type Log = Rc<RefCell<Vec<&'static str>>>;
    type Item = Result<Frame<Bytes>, &'static str>;

    /// Holds back all data until the end. Refuses `refused`.
    #[derive(Debug, Default)]
    struct HoldAll {
        held: Vec<Bytes>,
        log: Log,
        is_ready: bool,
    }

    impl Observer<&'static str> for HoldAll {
        type Error = String;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
            if self.is_ready {
                return Poll::Ready(Ok(()));
            }
            self.is_ready = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }

        fn poll_pending(&mut self, _cx: &mut Context<'_>) -> Poll<String> {
            self.log.borrow_mut().push("pending");
            Poll::Pending
        }

        fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, String> {
            self.log.borrow_mut().push("frame");
            match frame.into_data() {
                Ok(data) if data == "refused" => Err("a refused frame".to_owned()),
                Ok(data) => {
                    self.held.push(data);
                    Ok(None)
                }
                Err(trailers) => Ok(Some(trailers)),
            }
        }

        fn on_error(&mut self, error: &'static str) -> String {
            format!("the body failed: {error}")
        }

        fn on_end(&mut self) -> Result<(), String> {
            self.log.borrow_mut().push("end");
            Ok(())
        }

        fn next_held(&mut self) -> Option<Frame<Bytes>> {
            let has_ended = self.log.borrow().last() == Some(&"end");
            (has_ended && !self.held.is_empty()).then(|| Frame::data(self.held.remove(0)))
        }

        fn is_end_stream(&self, has_body_ended: bool) -> bool {
            has_body_ended && self.held.is_empty()
        }
    }

    impl Drop for HoldAll {
        fn drop(&mut self) {
            self.log.borrow_mut().push("observer dropped");
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "an item of a stream of frames")]
    fn data(text: &'static str) -> Item {
        Ok(Frame::data(Bytes::from_static(text.as_bytes())))
    }

    fn body(frames: impl IntoIterator<Item = Item>) -> StreamBody<impl futures::Stream<Item = Item> + Unpin> {
        StreamBody::new(stream::iter(frames.into_iter().collect::<Vec<_>>()))
    }

    #[tokio::test]
    async fn held_frames_leave_after_the_end_of_the_body() {
        let mut observed = HoldAll::default().observe(body([data("a"), data("b")]));
        for expected in ["a", "b"] {
            assert!(!observed.is_end_stream());
            let frame = observed.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), expected);
        }
        assert!(observed.is_end_stream(), "known before the next poll");
        assert!(observed.frame().await.is_none());
        assert!(observed.frame().await.is_none(), "the body is not polled again");
    }

    #[tokio::test]
    async fn nothing_follows_an_error() {
        for (item, message) in [
            (data("refused"), "a refused frame"),
            (Err("reset"), "the body failed: reset"),
        ] {
            let mut observed = HoldAll::default().observe(body([data("a"), item, data("b")]));
            assert_eq!(observed.frame().await.unwrap().unwrap_err(), message);
            assert!(observed.is_end_stream());
            assert!(observed.frame().await.is_none());
        }
    }

    #[tokio::test]
    async fn an_observer_delays_polls_and_sees_pauses() {
        let (sender, frames) = mpsc::unbounded::<Item>();
        let observer = HoldAll::default();
        let log = Rc::clone(&observer.log);
        let mut observed = observer.observe(StreamBody::new(frames));
        assert!(observed.frame().now_or_never().is_none());
        assert!(log.borrow().is_empty(), "polled before the observer was ready");
        assert!(observed.frame().now_or_never().is_none());
        assert_eq!(*log.borrow(), ["pending"]);
        sender
            .unbounded_send(Ok(Frame::trailers(HeaderMap::new())))
            .unwrap();
        assert!(observed.frame().await.unwrap().unwrap().is_trailers());
        drop(sender);
        assert!(observed.frame().await.is_none());
        assert_eq!(*log.borrow(), ["pending", "frame", "end"]);
    }

    /// An observer owns what the body needs until its end.
    #[test]
    fn an_observer_outlives_its_body() {
        struct Logged(Log);

        impl Drop for Logged {
            fn drop(&mut self) {
                self.0.borrow_mut().push("body dropped");
            }
        }

        let observer = HoldAll::default();
        let log = Rc::clone(&observer.log);
        let logged = Logged(Rc::clone(&log));
        let frames = stream::poll_fn(move |_| {
            let _ = &logged;
            Poll::Ready(None::<Item>)
        });
        drop(observer.observe(StreamBody::new(frames)));
        assert_eq!(*log.borrow(), ["body dropped", "observer dropped"]);
    }

    /// Sees everything, and changes nothing.
    #[derive(Debug)]
    struct Passive;

    impl<E> Observer<E> for Passive {
        type Error = E;

        fn on_error(&mut self, error: E) -> E {
            error
        }
    }

    #[tokio::test]
    async fn a_passive_observer_changes_neither_content_nor_size() {
        let mut observed = Passive.observe(Full::new(Bytes::from_static(b"content")));
        assert_eq!(observed.size_hint().exact(), Some(7));
        assert!(!observed.is_end_stream());
        let frame = observed.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "content");
        assert!(observed.is_end_stream());
        assert_eq!(observed.size_hint().exact(), Some(0));
    }
}
