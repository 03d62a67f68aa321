//! One replica of a gateway: its address, what it has announced, and whether it serves.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use pushdown::wire::{Features, header};
use pushdown_exec::sync::RwLock;

use super::health::{GatewayHealth, GatewayState, PROBE_TIMEOUT};
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
}

/// What a replica states about itself.
#[derive(Debug, Clone, PartialEq, Default)]
struct Announced {
    /// The features that it listed last; none before its first answer.
    features: Features,
    id: Option<Arc<str>>,
    cores: Option<f64>,
}

/// A replica of a gateway, as seen by a reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaReport {
    /// The id that it states, or its address.
    pub id: String,
    /// Its URL, with the address that the host of the URL has.
    pub address: String,
    /// [`SERVING`](Self::SERVING), `draining` or `gone`.
    pub state: &'static str,
    /// Cores for steps, if it states them.
    pub cores: Option<f64>,
    /// Samples that it has delivered to all readers of the store.
    pub samples: u64,
}

impl ReplicaReport {
    /// The state of a replica that takes requests.
    pub const SERVING: &'static str = header::SERVING;
}

/// Samples in flight at a replica, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlightSamples {
    replica: Arc<Replica>,
    samples: u64,
}

impl Replica {
    /// The replica at this address of an endpoint's host. `changes` counts changes of its id and its cores, and `is_one_of_several` is whether
    /// others can take over.
    pub(super) fn new(
        endpoint: Endpoint,
        address: Option<IpAddr>,
        connector: &GatewayConnector,
        (changes, is_one_of_several): (Arc<AtomicU64>, Arc<std::sync::atomic::AtomicBool>),
    ) -> Self {
        let prober = Arc::new(connector.prober(endpoint.clone(), address));
        let transport = connector.transport(endpoint, address);
        let announced = Arc::<RwLock<Announced>>::default();
        let name = name(transport.endpoint(), address);
        // A gateway that is back may be another version.
        let (of_probes, of_probe_changes) = (Arc::clone(&announced), Arc::clone(&changes));
        let note = move |headers: &HeaderMap| note(&of_probes, &of_probe_changes, headers);
        let traffic = Arc::clone(transport.traffic());
        let health = GatewayHealth::new(Arc::clone(&prober), name, traffic, is_one_of_several, note);
        Self {
            address,
            transport,
            prober,
            health,
            announced,
            changes,
            in_flight: AtomicU64::new(0),
            samples: AtomicU64::new(0),
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
        stated.unwrap_or_else(|| {
            let endpoint = self.transport.endpoint();
            match self.address {
                Some(address) => SocketAddr::new(address, endpoint.port()).to_string().into(),
                None => endpoint.to_string().into(),
            }
        })
    }

    /// Cores for steps; not a number if it does not state them.
    pub(super) fn cores(&self) -> f64 {
        self.announced.read().cores.unwrap_or(f64::NAN)
    }

    /// The features that it listed last; none before its first answer.
    pub(crate) fn features(&self) -> Features {
        self.announced.read().features.clone()
    }

    /// Whether it listed this feature last.
    pub(super) fn has(&self, feature: &str) -> bool {
        self.announced.read().features.has(feature)
    }

    /// Whether it has said what it is.
    pub(super) fn is_known(&self) -> bool {
        self.announced.read().features != Features::default()
    }

    /// Asks it what it is. Its state is unknown if it does not answer.
    pub(super) async fn introduce(&self) -> Result<()> {
        let answer = self.prober.head(header::VERSION_PATH, PROBE_TIMEOUT).await?;
        note(&self.announced, &self.changes, &answer.headers);
        Ok(())
    }

    /// Notes the features that an answer lists.
    pub(super) fn note_features(&self, headers: &HeaderMap) {
        if let Some(listed) = listed_features(headers)
            && self.announced.read().features != listed
        {
            self.announced.write().features = listed;
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

    /// What a reader can say of it.
    pub(super) fn report(&self) -> ReplicaReport {
        ReplicaReport {
            id: self.id().to_string(),
            address: name(self.transport.endpoint(), self.address),
            state: match self.health.state() {
                GatewayState::Serving => header::SERVING,
                GatewayState::Draining => header::DRAINING,
                GatewayState::Gone => "gone",
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
    /// A sample has arrived.
    pub(crate) fn arrived(&mut self) {
        if let Some(rest) = self.samples.checked_sub(1) {
            self.samples = rest;
            self.replica.in_flight.fetch_sub(1, Relaxed);
            add(&self.replica.samples, 1);
        }
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

/// Takes what an answer to a probe states.
fn note(announced: &RwLock<Announced>, changes: &AtomicU64, headers: &HeaderMap) {
    let Some(features) = listed_features(headers) else {
        return;
    };
    let id = headers.get(header::REPLICA).and_then(|id| id.to_str().ok());
    let id = id.filter(|id| !id.is_empty() && id.len() <= MAX_ID_CHARS);
    let stated = Announced {
        features,
        id: id.map(Arc::from),
        cores: number(headers.get(header::CORES)),
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
