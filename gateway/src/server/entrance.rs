//! Where connections enter: with a slot, waiting for one, or on a place that is reserved for probes.
//!
//! Clients ask by a probe whether the gateway lives. A lack of slots must not look like its death, and neither must a drain, so that
//! a connection without a slot may show by its first bytes that it is a probe. All others wait for a slot, or are refused.

use std::future::{self, Future};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::connection::Connection;
use super::http::Service;
use super::opening::{Opened, open, open_and_look};
use super::refusal::Refusals;
use super::requests::Requests;
use super::slots::{Admission, Slot, Slots, Wait};
use super::waiting::{WaitingPlace, WaitingPlaces};
use super::{Config, Handler};
use crate::config::Limits;
use crate::telemetry::Metrics;

/// Connections without a slot that may show at a time that they are probes. Further ones take the places of those that show nothing.
const RESERVED_PLACES: usize = 256;

/// Longest wait for such a place, while all belong to requests that are being answered. New connections wait with it.
const RESERVED_WAIT: Duration = Duration::from_secs(1);

/// How long a connection may keep such a place before its request has arrived.
const RESERVED_HEAD_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest life of a probe without a slot, from its first bytes on.
const RESERVED_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSlot {
    /// Its client has requests in flight on as many connections as it may have.
    OfClient,
    /// Requests are in flight in all slots, and as many connections wait for one as may.
    OfAll,
    /// The gateway drains.
    Draining,
}

/// What a server shares with its connections.
pub(super) struct Entrance<H> {
    handler: Arc<H>,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    slots: Arc<Slots>,
    reserve: Arc<Slots>,
    waiting: Arc<WaitingPlaces>,
    refusals: Refusals,
    metrics: Metrics,
    drain: CancellationToken,
    cut: CancellationToken,
    /// Those with a slot, for which a drain waits.
    connections: TaskTracker,
    /// Those without one.
    without_slot: TaskTracker,
}

impl<H: Handler> Entrance<H> {
    pub(super) fn new(
        config: Config,
        tls: Option<TlsAcceptor>,
        handler: Arc<H>,
        drain: CancellationToken,
        metrics: &Metrics,
    ) -> Self {
        let limits = config.limits;
        let slots = Slots::new(
            limits.max_connections,
            limits.max_connections_per_client,
            config.proxies.clone(),
            metrics.clone(),
        );
        // Separate metrics: who loses a place here had no slot to lose.
        let reserve = Slots::new(RESERVED_PLACES, usize::MAX, config.proxies, Metrics::default());
        Self {
            handler,
            tls,
            slots: Arc::new(slots),
            reserve: Arc::new(reserve),
            waiting: Arc::new(WaitingPlaces::new(limits.max_connections)),
            limits,
            refusals: Refusals::default(),
            metrics: metrics.clone(),
            drain,
            cut: CancellationToken::new(),
            connections: TaskTracker::new(),
            without_slot: TaskTracker::new(),
        }
    }

    /// Lets a connection in. Waits only for a place on which it can show whether it is a probe.
    pub(super) async fn enter(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let no_slot = if self.drain.is_cancelled() {
            NoSlot::Draining
        } else {
            match self.slots.admit_now(peer.ip()).await {
                Admission::Slot(slot) => {
                    let entrance = Arc::clone(self);
                    let task = async move {
                        let connection = entrance.connection(peer);
                        let opening = open(stream, entrance.tls.clone(), connection.stall_limit());
                        entrance.serve(pin!(opening), connection, slot).await;
                    };
                    self.connections.spawn(task);
                    return;
                }
                Admission::Refused => NoSlot::OfClient,
                Admission::Full(_) => NoSlot::OfAll,
            }
        };
        let place = timeout(RESERVED_WAIT, self.reserve.admit(peer.ip())).await;
        let Ok(Some(place)) = place else {
            self.metrics.connections_refused.inc();
            return debug!(%peer, "connection closed: all reserved places are taken");
        };
        let entrance = Arc::clone(self);
        self.without_slot.spawn(async move {
            tokio::select! {
                () = entrance.serve_without_slot(stream, peer, place, no_slot) => {}
                () = entrance.cut.cancelled() => {}
            }
        });
    }

    /// Leaves file descriptors to others, after there were none for a further connection.
    pub(super) fn reduce(&self) {
        let slots = self.slots.reduce();
        warn!(
            slots,
            expected = self.limits.max_connections,
            "too few file descriptors: raise the limit of open files"
        );
    }

    /// Waits until no connection has a slot. No further one gets one.
    pub(super) async fn drained(&self) {
        self.connections.close();
        self.connections.wait().await;
    }

    /// Cuts all connections. Returns the number of those with a slot.
    pub(super) async fn cut(&self) -> usize {
        let remaining = self.connections.len();
        self.cut.cancel();
        self.connections.wait().await;
        self.without_slot.close();
        self.without_slot.wait().await;
        remaining
    }

    fn connection(&self, peer: SocketAddr) -> Connection {
        let is_encrypted = self.tls.is_some();
        Connection::new(
            peer,
            is_encrypted,
            self.cut.child_token(),
            self.limits.client_idle_timeout,
        )
    }

    /// Serves a connection with a slot, as soon as it is open.
    async fn serve<O>(&self, opening: Pin<&mut O>, connection: Connection, slot: Slot)
    where
        O: Future<Output = io::Result<Opened>>,
    {
        let open = self.metrics.track_connection();
        let requests = Arc::new(Requests::new(slot));
        let peer = connection.peer();
        let served = async {
            let opened = wait_on(requests.slot(), opening);
            let opened = tokio::select! {
                biased;
                opened = timeout(self.limits.header_read_timeout, opened) => opened,
                // As an idle connection, one that is not open does not delay a drain.
                () = self.drain.cancelled() => return,
            };
            match opened {
                Ok(Ok(opened)) => {
                    let service = Service {
                        handler: Arc::clone(&self.handler),
                        max_header_bytes: self.limits.max_header_bytes,
                        header_read_timeout: self.limits.header_read_timeout,
                        drain: Some(self.drain.clone()),
                    };
                    service.serve(opened, connection, Arc::clone(&requests)).await;
                }
                Ok(Err(error)) => debug!(%error, %peer, "connection failed before its first request"),
                Err(_elapsed) => debug!(%peer, "TLS handshake took too long"),
            }
        };
        tokio::select! {
            () = served => {}
            () = requests.slot().evicted() => debug!(%peer, "connection closed: it made room for another one"),
        }
        drop((requests, open));
    }

    /// Answers a probe. Another connection waits for a slot if it lacks one of all clients', and is refused otherwise.
    async fn serve_without_slot(&self, stream: TcpStream, peer: SocketAddr, place: Slot, no_slot: NoSlot) {
        let connection = self.connection(peer);
        let path = H::PROBE_PATH;
        let opening = open_and_look(stream, self.tls.clone(), connection.stall_limit(), path);
        let mut opening = pin!(opening);
        let waiting = match no_slot {
            NoSlot::OfAll => self.waiting.take(self.slots.client(peer.ip())),
            NoSlot::OfClient | NoSlot::Draining => None,
        };
        let waits = waiting.is_some();
        let mut slot = pin!(self.wait_for_slot(peer, waiting));
        let mut admitted = None;
        let opened = tokio::select! {
            biased;
            opened = timeout(RESERVED_HEAD_TIMEOUT, wait_on(&place, opening.as_mut())) => opened.ok(),
            slot = slot.as_mut() => {
                admitted = Some(slot);
                None
            }
            () = place.evicted() => None,
        };
        let mut opened = match opened {
            Some(Ok(opened)) if opened.is_probe(path) => {
                return self
                    .serve_probe(opened, connection.without_slot(no_slot), place)
                    .await;
            }
            Some(Ok(opened)) => Some(opened),
            Some(Err(error)) => return debug!(%error, %peer, "connection failed before its first request"),
            None => None,
        };
        drop(place);
        if waits && admitted.is_none() {
            admitted = Some(slot.await);
        }
        match admitted.unwrap_or(Err(no_slot)) {
            Ok(slot) => {
                let mut opening = pin!(async {
                    match opened.take() {
                        Some(opened) => Ok(opened),
                        None => opening.await,
                    }
                });
                let served = self.serve(opening.as_mut(), connection, slot);
                self.connections.track_future(served).await;
            }
            Err(no_slot) => {
                self.metrics.connections_refused.inc();
                debug!(%peer, ?no_slot, "connection refused");
                if let Some((opened, refusal)) = opened.zip(self.refusals.begin())
                    && let Err(error) = refusal.send(opened.stream, self.handler.refusal(no_slot)).await
                {
                    debug!(%error, %peer, "cannot send the refusal");
                }
            }
        }
    }

    /// A slot, once there is one; why there is none, if another reason than a lack of slots comes first. Waits forever without a place to wait on.
    async fn wait_for_slot(&self, peer: SocketAddr, waiting: Option<WaitingPlace>) -> Result<Slot, NoSlot> {
        let Some(_waiting) = waiting else {
            return future::pending().await;
        };
        tokio::select! {
            () = self.drain.cancelled() => Err(NoSlot::Draining),
            slot = self.slots.admit(peer.ip()) => slot.ok_or(NoSlot::OfClient),
        }
    }

    /// Answers one request on a reserved place.
    async fn serve_probe(&self, opened: Opened, connection: Connection, place: Slot) {
        let peer = connection.peer();
        let requests = Arc::new(Requests::new(place));
        let service = Service {
            handler: Arc::clone(&self.handler),
            max_header_bytes: self.limits.max_header_bytes,
            header_read_timeout: RESERVED_HEAD_TIMEOUT,
            drain: None,
        };
        tokio::select! {
            served = timeout(RESERVED_TIMEOUT, service.serve(opened, connection, Arc::clone(&requests))) => {
                if served.is_err() {
                    debug!(%peer, "probe took too long");
                }
            }
            () = requests.slot().evicted() => debug!(%peer, "probe closed: it made room for another one"),
        }
    }
}

/// Waits until a connection is open. If its client has sent nothing yet, it may lose its slot meanwhile.
async fn wait_on<O: Future>(slot: &Slot, mut opening: Pin<&mut O>) -> O::Output {
    if let Poll::Ready(opened) = futures::poll!(opening.as_mut()) {
        return opened;
    }
    slot.set_wait(Some(Wait::Head));
    opening.await
}
