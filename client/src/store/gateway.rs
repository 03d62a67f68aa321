//! The gateway of a store: its replicas, what they have announced, and whether they serve.

mod failover;
mod health;
mod replacement;
mod replica;
mod replica_list;
mod replicas;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderMap, Method};
use pushdown::wire::{
    Features,
    header::{MODELS_PATH, REPLICA, VERSION_PATH},
};
use pushdown_exec::sync::RwLock;
use pushdown_s3::is_transient;
use tokio::{sync::OnceCell, time::timeout};

use super::Store;
use crate::{
    error::{Error, ErrorKind, Result},
    stats::Traffic,
    transport::{Answer, Endpoint, Transport, listed_features},
};
pub(crate) use failover::GatewayRoute;
pub(super) use failover::ReplicaError;
pub(crate) use health::{GatewayHealth, GatewayState};
pub use replica::ReplicaReport;
pub(crate) use replica::{InFlightSamples, Replica, ReplicaVersion};
pub(crate) use replica_list::ReplicaList;
use replicas::Replicas;

/// Longest wait for the features of a gateway.
const FEATURES_TIMEOUT: Duration = Duration::from_secs(1);

/// Endpoints that may be a gateway.
#[derive(Debug)]
pub(super) struct Gateway {
    replicas: Arc<Replicas>,
    /// Whether its addresses differ from that of the store. Otherwise it is the endpoint of the store as well: it forwards what it does not
    /// compute, and nothing can be read without it.
    is_beside_store: bool,
    /// The features that answers of the store list, before the addresses of its endpoint are looked up.
    features_of_store: RwLock<Features>,
    /// Set once it has been asked for them.
    asked: OnceCell<()>,
}

impl Gateway {
    /// The endpoint of the store, which may be a gateway.
    pub(super) fn in_place_of_store(endpoint: Endpoint, transport: &Transport) -> Self {
        Self::new(vec![endpoint], transport, false)
    }

    /// A gateway that fetches from the store what is signed for the store, at all addresses of these endpoints.
    pub(super) fn beside_store(endpoints: Vec<Endpoint>, transport: &Transport) -> Self {
        Self::new(endpoints, transport, true)
    }

    fn new(endpoints: Vec<Endpoint>, transport: &Transport, is_beside_store: bool) -> Self {
        let connector = transport.gateway_connector(is_beside_store);
        Self {
            replicas: Replicas::new(endpoints, connector, is_beside_store),
            is_beside_store,
            features_of_store: RwLock::default(),
            asked: OnceCell::new(),
        }
    }

    /// The first endpoint; the only one in place of the store.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.replicas.endpoints()[0]
    }

    /// Whether it is the endpoint of the store as well.
    pub(super) const fn is_store(&self) -> bool {
        !self.is_beside_store
    }

    /// Its URLs.
    fn urls(&self) -> String {
        let urls: Vec<String> = self
            .replicas
            .endpoints()
            .iter()
            .map(Endpoint::to_string)
            .collect();
        urls.join(",")
    }

    /// What all its replicas can do that serve and have answered.
    fn features(&self) -> Features {
        let list = self.replicas.known_list();
        let of_replicas = list.and_then(|list| list.features());
        of_replicas.unwrap_or_else(|| self.features_of_store.read().clone())
    }

    /// Notes the features that an answer of its endpoint lists.
    pub(super) fn note_features(&self, headers: &HeaderMap) {
        match self.replicas.known_list() {
            // Which of several replicas has answered is not known.
            Some(list) if list.len() > 1 => {}
            Some(list) => list.get(0).note_features(headers),
            None => {
                if let Some(listed) = listed_features(headers)
                    && *self.features_of_store.read() != listed
                {
                    *self.features_of_store.write() = listed;
                }
            }
        }
    }
}

impl Store {
    /// Whether there may be a gateway.
    pub(crate) fn has_gateway(&self) -> bool {
        self.shared.gateway.is_some()
    }

    /// URL of the gateway beside the store. `None` if there is none, and if the endpoint itself may be one.
    pub fn gateway_url(&self) -> Option<String> {
        let gateway = self.shared.gateway.as_ref();
        let gateway = gateway.filter(|gateway| !gateway.is_store());
        gateway.map(Gateway::urls)
    }

    /// Whether there is a gateway beside the store. Otherwise nothing replaces the gateway.
    pub(crate) fn has_gateway_beside(&self) -> bool {
        let gateway = self.shared.gateway.as_ref();
        gateway.is_some_and(|gateway| !gateway.is_store())
    }

    /// Whether a replica of the gateway serves, as far as is known.
    pub(crate) fn gateway_serves(&self) -> bool {
        self.known_replicas().is_none_or(|list| list.serves())
    }

    /// Probes a gateway beside the store that has not answered. Returns whether a replica serves.
    pub(crate) async fn probe_gateway(&self) -> bool {
        if !self.has_gateway_beside() {
            return true;
        }
        let Ok(list) = self.replicas().await else {
            return true;
        };
        let probed = list.iter().map(|replica| replica.health().after_failure());
        join_all(probed).await.contains(&GatewayState::Serving)
    }

    /// The replicas of the gateway.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`] if there is certainly no gateway.
    pub(crate) async fn replicas(&self) -> Result<Arc<ReplicaList>> {
        Ok(self.gateway()?.replicas.list().await)
    }

    /// The replicas as far as they are known; `None` before the first look-up of the gateway's address.
    pub(crate) fn known_replicas(&self) -> Option<Arc<ReplicaList>> {
        self.shared.gateway.as_ref()?.replicas.known_list()
    }

    /// Cores of all replicas that serve, as a multiple of those of the one with this answer; 1 with one replica.
    pub(crate) fn cores_ratio(&self, answer: &HeaderMap) -> f64 {
        let id = answer.get(REPLICA).and_then(|id| id.to_str().ok());
        let list = self.known_replicas().filter(|list| list.len() > 1);
        list.map_or(1.0, |list| list.cores_ratio(id))
    }

    /// Whether the gateway has several replicas, as far as is known.
    pub(crate) fn has_several_replicas(&self) -> bool {
        self.known_replicas().is_some_and(|list| list.len() > 1)
    }

    /// What is known of the replicas of the gateway; nothing before the first look-up of its address.
    pub(crate) fn replica_reports(&self) -> Vec<ReplicaReport> {
        let gateway = self.shared.gateway.as_ref();
        gateway.map_or_else(Vec::new, |gateway| gateway.replicas.reports())
    }

    /// The traffic with a gateway beside the store. `None` if there is none.
    pub(crate) fn gateway_traffic(&self) -> Option<&Arc<Traffic>> {
        self.has_gateway_beside()
            .then(|| self.transport().gateway_traffic())
    }

    /// Why a gateway with these features cannot fetch what is signed for the store. `None` if it can.
    pub(crate) fn lacks_stores(&self, features: &Features) -> Option<Error> {
        let gateway = self.shared.gateway.as_ref()?;
        if gateway.is_store() || features.has(Features::STORES) {
            return None;
        }
        let text = format!(
            "{} does not fetch from the stores of its callers: its answers do not list the feature `stores`; it is no pushdown gateway, an older \
             one, or has a keys file; use plain mode",
            gateway.urls()
        );
        Some(Error::new(ErrorKind::NotAGateway, text))
    }

    /// Checks that a replica fetches what is signed for the store. Nothing that is signed goes to another one.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`] if it does not; if it does not answer.
    pub(crate) async fn check_reads_stores(&self, replica: &Replica) -> Result<()> {
        if self.gateway()?.is_store() {
            return Ok(());
        }
        let features = self.known_features(replica).await?.unwrap_or_default();
        self.lacks_stores(&features).map_or(Ok(()), Err)
    }

    /// Checks that there may be a gateway.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`] if there is certainly none.
    pub(crate) fn check_has_gateway(&self) -> Result<()> {
        self.gateway().map(|_| ())
    }

    /// The gateway.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`] if there is certainly none.
    pub(super) fn gateway(&self) -> Result<&Gateway> {
        self.shared.gateway.as_ref().ok_or_else(|| {
            let text = format!(
                "{} is no pushdown gateway: use plain mode, or set the gateway's URL",
                self.endpoint()
            );
            Error::new(ErrorKind::NotAGateway, text)
        })
    }

    /// What the gateway's URL is set as, for errors.
    pub(crate) fn gateway_setting(&self) -> &'static str {
        if self.has_gateway_beside() {
            "the gateway's URL as `gateway=`"
        } else {
            "the gateway's URL as the endpoint"
        }
    }

    /// The address to which batches go, for errors.
    pub(crate) fn gateway_name(&self) -> String {
        let gateway = self.shared.gateway.as_ref();
        gateway.map_or_else(|| self.endpoint(), Gateway::urls)
    }

    /// Sends a request to a replica of the gateway, and waits for the head of its answer, with any status.
    ///
    /// # Errors
    /// If no answer arrives.
    pub(crate) async fn send_to_replica(
        &self,
        replica: &Replica,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer> {
        let sent = replica.send(method, target, headers, body).await;
        if let Err(error) = &sent
            && error.kind() == ErrorKind::Unreachable
            && let Ok(gateway) = self.gateway()
        {
            gateway.replicas.observe_failed_connect();
        }
        sent
    }

    /// Notes the features that an answer of the store lists, if its endpoint is a gateway.
    pub(super) fn note_features(&self, headers: &HeaderMap) {
        if let Some(gateway) = self.shared.gateway.as_ref().filter(|gateway| gateway.is_store()) {
            gateway.note_features(headers);
        }
    }

    /// What all replicas of the gateway can do that serve and have answered. None if none has, or is older than these lists.
    pub(crate) fn features(&self) -> Features {
        let gateway = self.shared.gateway.as_ref();
        gateway.map(Gateway::features).unwrap_or_default()
    }

    /// The features of the gateway, which is asked for them before its first answer. None if it does not answer soon.
    ///
    /// Costs a round trip once: it is for what the first batch would otherwise lack.
    pub(crate) async fn ask_for_features(&self) -> Features {
        let Some(gateway) = &self.shared.gateway else {
            return Features::default();
        };
        let ask = async || {
            if gateway.features() == Features::default() {
                let request = async {
                    let list = gateway.replicas.list().await;
                    drop(self.request_features(list.choice(0)).await);
                };
                // A gateway that cannot be reached fails the batch, with a better message.
                drop(timeout(FEATURES_TIMEOUT, request).await);
            }
        };
        gateway.asked.get_or_init(ask).await;
        gateway.features()
    }

    /// The features of a replica, which is asked for them if it has not answered yet. `None` if its answer lists none: the endpoint is
    /// no gateway.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) async fn known_features(&self, replica: &Replica) -> Result<Option<Features>> {
        let known = match replica.features() {
            // Of one address, answers of the store may have listed them.
            unknown if unknown == Features::default() && !self.has_several_replicas() => self.features(),
            known => known,
        };
        if known != Features::default() {
            return Ok(Some(known));
        }
        let answer = self.request_features(replica).await?;
        match listed_features(&answer.headers) {
            None if is_transient(answer.status) => {
                let subject = format!("{} did not list its features", self.gateway_name());
                Err(answer.refusal().await.into_error(&subject))
            }
            listed => Ok(listed),
        }
    }

    async fn request_features(&self, replica: &Replica) -> Result<Answer> {
        // All gateways beside a store have the first path, which waits for nothing; older ones in place of it have only the second.
        let target = if self.has_gateway_beside() {
            VERSION_PATH
        } else {
            MODELS_PATH
        };
        self.send_to_replica(replica, Method::HEAD, target, HeaderMap::new(), Bytes::new())
            .await
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::HeaderName};
    use pushdown::wire::header::FEATURES;

    use super::*;
    use crate::transport::{DnsResolver, Timeouts};

    #[test]
    fn the_features_are_those_that_the_gateway_listed_last() {
        let endpoint = Endpoint::parse("gateway", "http://127.0.0.1:1").unwrap();
        let transport = Transport::new(false, Timeouts::default(), DnsResolver::new()).unwrap();
        let gateway = Gateway::in_place_of_store(endpoint, &transport);
        assert_eq!(gateway.features(), Features::default());
        let note = |listed: &'static str| {
            gateway.note_features(&HeaderMap::from_iter([(
                HeaderName::from_static(FEATURES),
                HeaderValue::from_static(listed),
            )]));
        };
        note("families, later");
        // An answer of the store, which lists none.
        gateway.note_features(&HeaderMap::new());
        assert!(gateway.features().has("families") && gateway.features().has("later"));
        note("families");
        assert!(!gateway.features().has("later"), "the gateway was replaced");
    }
}
