//! One replica of a gateway: its address, what it has announced, and whether it serves.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use pushdown::wire::{Features, header};
use pushdown_exec::sync::RwLock;

use super::health::{GatewayHealth, GatewayState, PROBE_TIMEOUT, state_in};
use crate::{
    error::Result,
    measure::number,
    stats::add,
    transport::{Answer, Endpoint, GatewayConnector, Prober, ReplicaTransport, listed_features},
};

/// Most characters of an id, which is untrusted input.
const MAX_ID_CHARS: usize = 128;

/// An address of a gateway.
#[derive(Debug)]
pub(crate) struct Replica {
    /// `None` if connections go to any address of the host.
    address: Option<IpAddr>,
    transport: ReplicaTransport,
    prober: Arc<Prober>,
    health: Arc<GatewayHealth>,
    announced: Arc<RwLock<Announced>>,
    /// Changes of what the replicas of this gateway announce.
    changes: Arc<AtomicU64>,
    /// Samples requested from it that have not arrived.
    in_flight: AtomicU64,
    /// Samples that it has delivered.
    samples: AtomicU64,
    is_suspect: AtomicBool,
}

/// Which gateway is at an address: it differs once that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplicaVersion {
    recoveries: u64,
    engine: Option<Arc<str>>,
}

/// What a replica states about itself.
#[derive(Debug, Clone, PartialEq, Default)]
struct Announced {
    /// The features that it listed last; none before its first answer.
    features: Features,
    id: Option<Arc<str>>,
    cores: Option<f64>,
    /// The versions of its step families.
    engine: Option<Arc<str>>,
    /// The most bytes of a part of a data set that it writes.
    part_bytes: Option<u64>,
    /// Whether it has answered a question for its version, which states all of this.
    is_introduced: bool,
}

/// A replica of a gateway, as seen by a reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaReport {
    /// The id that it states, or its address.
    pub id: String,
    /// Its URL, with the address that the host of the URL has.
    pub address: String,
    /// [`SERVING`](Self::SERVING), `draining` or [`GONE`](Self::GONE).
    pub state: &'static str,
    /// Cores for steps, if it states them.
    pub cores: Option<f64>,
    /// Samples that it has delivered to all readers of the store.
    pub samples: u64,
}

impl ReplicaReport {
    /// The state of a replica that takes requests.
    pub const SERVING: &'static str = header::SERVING;
    /// That of one that does not answer, or has left the list.
    pub const GONE: &'static str = "gone";
}

/// Samples in flight at a replica, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightSamples {
    replica: Arc<Replica>,
    samples: u64,
}

impl Replica {
    /// The replica at this address of an endpoint's host. `changes` counts changes of its id and its cores, and `has_several` is whether the
    /// gateway has others.
    pub(super) fn new(
        endpoint: Endpoint,
        address: Option<IpAddr>,
        connector: &GatewayConnector,
        changes: Arc<AtomicU64>,
        has_several: Arc<AtomicBool>,
    ) -> Self {
        let prober = Arc::new(connector.prober(endpoint.clone(), address));
        let transport = connector.transport(endpoint, address);
        let announced = Arc::<RwLock<Announced>>::default();
        let name = name(transport.endpoint(), address);
        // A gateway that is back may be another version.
        let (probed, probe_changes) = (Arc::clone(&announced), Arc::clone(&changes));
        let note = move |headers: &HeaderMap| note(&probed, &probe_changes, headers);
        let traffic = Arc::clone(transport.traffic());
        let health = GatewayHealth::new(Arc::clone(&prober), name, traffic, has_several, note);
        Self {
            address,
            transport,
            prober,
            health,
            announced,
            changes,
            in_flight: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            is_suspect: AtomicBool::new(false),
        }
    }

    pub(super) fn is_at(&self, endpoint: &Endpoint, address: Option<IpAddr>) -> bool {
        self.transport.endpoint() == endpoint && self.address == address
    }

    pub(super) const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        self.transport.endpoint()
    }

    pub(crate) const fn health(&self) -> &Arc<GatewayHealth> {
        &self.health
    }

    /// The id that it states, or else its address.
    pub(crate) fn id(&self) -> Arc<str> {
        let stated = self.announced.read().id.clone();
        stated.unwrap_or_else(|| self.address_id().into())
    }

    /// The id of a replica that states none.
    fn address_id(&self) -> String {
        let endpoint = self.transport.endpoint();
        match self.address {
            Some(address) => SocketAddr::new(address, endpoint.port()).to_string(),
            None => endpoint.to_string(),
        }
    }

    /// Whether this is its id as long as it states none.
    pub(super) fn is_named_by_address(&self, id: &str) -> bool {
        self.address_id() == id
    }

    /// Cores for steps, if it states them.
    pub(crate) fn cores(&self) -> Option<f64> {
        self.announced.read().cores
    }

    /// The most bytes of a part of a data set that it writes, if it states them.
    pub(crate) fn part_bytes(&self) -> Option<u64> {
        self.announced.read().part_bytes
    }

    /// The features that it listed last; none before its first answer.
    pub(crate) fn features(&self) -> Features {
        self.announced.read().features.clone()
    }

    /// Whether it listed this feature last.
    pub(super) fn has(&self, feature: &str) -> bool {
        self.announced.read().features.has(feature)
    }

    /// Whether an answer has listed features.
    pub(super) fn lists_features(&self) -> bool {
        self.announced.read().features != Features::default()
    }

    /// Whether it has not said what it is, or may be another version by now.
    pub(super) fn is_to_be_asked(&self) -> bool {
        !self.announced.read().is_introduced || self.is_suspect.load(Relaxed)
    }

    /// It computes other values than a reader. It is asked again at each look-up, since it may be replaced.
    pub(crate) fn suspect(&self) {
        self.is_suspect.store(true, Relaxed);
    }

    /// What changes whenever it is replaced by another version.
    pub(crate) fn version(&self) -> ReplicaVersion {
        ReplicaVersion {
            recoveries: self.health.recoveries(),
            engine: self.announced.read().engine.clone(),
        }
    }

    /// Asks it what it is.
    ///
    /// # Errors
    /// If it does not answer, or is no gateway.
    pub(super) async fn introduce(&self) -> Result<GatewayState> {
        let answer = self.prober.head(header::VERSION_PATH, PROBE_TIMEOUT).await?;
        note(&self.announced, &self.changes, &answer.headers);
        state_in(answer).await
    }

    /// Notes the features and the id that an answer states.
    pub(super) fn note_features(&self, headers: &HeaderMap) {
        let Some(features) = listed_features(headers) else {
            return;
        };
        let before = self.announced.read().clone();
        let id = stated_id(headers).or_else(|| before.id.clone());
        if (&before.features, &before.id) != (&features, &id) {
            let is_placed_anew = before.id != id;
            let stated = Announced {
                features,
                id,
                ..before
            };
            *self.announced.write() = stated;
            if is_placed_anew {
                add(&self.changes, 1);
            }
        }
    }

    /// Sends a request, and waits for the head of its answer, with any status.
    pub(super) async fn send(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer> {
        let answer = self.transport.send(method, target, headers, body).await?;
        self.note_features(&answer.headers);
        Ok(answer)
    }

    /// Samples requested from it that have not arrived.
    pub(crate) fn samples_in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// Counts samples that are about to be requested.
    pub(crate) fn begin(self: &Arc<Self>, samples: u64) -> InFlightSamples {
        add(&self.in_flight, samples);
        InFlightSamples {
            replica: Arc::clone(self),
            samples,
        }
    }

    /// Counts samples that the replica has delivered before.
    pub(super) fn count_samples(&self, samples: u64) {
        add(&self.samples, samples);
    }

    /// What a reader can say of the replica with this id, which has left the list or its address. What it has delivered counts here no more.
    pub(super) fn leave(&self, id: &str) -> ReplicaReport {
        ReplicaReport {
            id: id.to_owned(),
            state: ReplicaReport::GONE,
            samples: self.samples.swap(0, Relaxed),
            ..self.report()
        }
    }

    /// What a reader can say of it.
    pub(super) fn report(&self) -> ReplicaReport {
        ReplicaReport {
            id: self.id().to_string(),
            address: name(self.transport.endpoint(), self.address),
            state: match self.health.state() {
                GatewayState::Serving => header::SERVING,
                GatewayState::Draining => header::DRAINING,
                GatewayState::Gone => ReplicaReport::GONE,
            },
            cores: self.announced.read().cores,
            samples: self.samples.load(Relaxed),
        }
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self.transport.endpoint(), self.address))
    }
}

impl InFlightSamples {
    /// A sample is in flight no more.
    pub(crate) fn release(&mut self) {
        if let Some(rest) = self.samples.checked_sub(1) {
            self.samples = rest;
            self.replica.in_flight.fetch_sub(1, Relaxed);
        }
    }

    /// A sample that is in flight no more was delivered.
    pub(crate) fn count_delivered(&self) {
        add(&self.replica.samples, 1);
    }
}

impl Drop for InFlightSamples {
    fn drop(&mut self) {
        self.replica.in_flight.fetch_sub(self.samples, Relaxed);
    }
}

/// A URL, with the address that its host has.
fn name(endpoint: &Endpoint, address: Option<IpAddr>) -> String {
    match address {
        Some(address) if !endpoint.is_ip_address() => format!("{endpoint} at {address}"),
        _ => endpoint.to_string(),
    }
}

/// The id of a replica in an answer.
fn stated_id(headers: &HeaderMap) -> Option<Arc<str>> {
    let id = headers.get(header::REPLICA)?.to_str().ok()?;
    (!id.is_empty() && id.len() <= MAX_ID_CHARS).then(|| id.into())
}

/// Takes what an answer to a probe states.
fn note(announced: &RwLock<Announced>, changes: &AtomicU64, headers: &HeaderMap) {
    let Some(features) = listed_features(headers) else {
        return;
    };
    let engine = headers
        .get(header::ENGINE)
        .and_then(|engine| engine.to_str().ok());
    let part_bytes = headers.get(header::PART_BYTES);
    let stated = Announced {
        features,
        part_bytes: part_bytes.and_then(|bytes| bytes.to_str().ok()?.parse().ok()),
        id: stated_id(headers),
        cores: number(headers.get(header::CORES)),
        engine: engine.map(Arc::from),
        is_introduced: true,
    };
    let before = announced.read().clone();
    if before != stated {
        let is_placed_anew = (&before.id, before.cores) != (&stated.id, stated.cores);
        *announced.write() = stated;
        if is_placed_anew {
            add(changes, 1);
        }
    }
}
