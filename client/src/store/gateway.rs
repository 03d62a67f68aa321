//! The gateway of a store: its address, what it has announced, and whether it serves.

mod health;
mod replacement;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use pushdown::wire::{
    Features,
    header::{MODELS_PATH, VERSION_PATH},
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
pub(crate) use health::{GatewayHealth, GatewayState};

/// Longest wait for the features of a gateway.
const FEATURES_TIMEOUT: Duration = Duration::from_secs(1);

/// An endpoint that may be a gateway.
#[derive(Debug)]
pub(super) struct Gateway {
    endpoint: Endpoint,
    /// Whether it serves, if it is beside the store. `None` if it is the endpoint of the store as well: what it does not compute, it forwards,
    /// and nothing can be read without it.
    health: Option<Arc<GatewayHealth>>,
    /// The features that it listed last; none before its first answer.
    features: Arc<RwLock<Features>>,
    /// Set once it has been asked for them.
    asked: OnceCell<()>,
}

impl Gateway {
    /// The endpoint of the store, which may be a gateway.
    pub(super) fn in_place_of_store(endpoint: Endpoint) -> Self {
        Self::new(endpoint, None, Arc::default())
    }

    /// A gateway that fetches from the store what is signed for the store. It is probed by connections of this transport.
    pub(super) fn beside_store(endpoint: Endpoint, transport: &Transport) -> Self {
        let traffic = Arc::clone(transport.gateway_traffic());
        let features = Arc::<RwLock<Features>>::default();
        // A gateway that is back may be another version.
        let of_probes = Arc::clone(&features);
        let note = move |headers: &HeaderMap| note_features(&of_probes, headers);
        let health = GatewayHealth::new(transport.prober(endpoint.clone()), traffic, note);
        Self::new(endpoint, Some(health), features)
    }

    fn new(endpoint: Endpoint, health: Option<Arc<GatewayHealth>>, features: Arc<RwLock<Features>>) -> Self {
        Self {
            endpoint,
            health,
            features,
            asked: OnceCell::new(),
        }
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether it is the endpoint of the store as well.
    pub(super) const fn is_store(&self) -> bool {
        self.health.is_none()
    }

    fn features(&self) -> Features {
        self.features.read().clone()
    }

    /// Notes the features that an answer lists.
    pub(super) fn note_features(&self, headers: &HeaderMap) {
        note_features(&self.features, headers);
    }
}

/// Notes the features that an answer lists.
fn note_features(features: &RwLock<Features>, headers: &HeaderMap) {
    if let Some(listed) = listed_features(headers)
        && *features.read() != listed
    {
        *features.write() = listed;
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
        gateway.map(|gateway| gateway.endpoint.to_string())
    }

    /// Whether a gateway beside the store serves. `None` if there is none: then nothing replaces the gateway.
    pub(crate) fn gateway_health(&self) -> Option<&Arc<GatewayHealth>> {
        self.shared.gateway.as_ref()?.health.as_ref()
    }

    /// The traffic with a gateway beside the store. `None` if there is none.
    pub(crate) fn gateway_traffic(&self) -> Option<&Arc<Traffic>> {
        let gateway = self.shared.gateway.as_ref();
        let beside = gateway.filter(|gateway| !gateway.is_store());
        beside.map(|_| self.transport().gateway_traffic())
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
            gateway.endpoint
        );
        Some(Error::new(ErrorKind::NotAGateway, text))
    }

    /// Checks that the gateway fetches what is signed for the store. Nothing that is signed goes to another one.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`] if it does not; if it does not answer.
    pub(crate) async fn check_reads_stores(&self) -> Result<()> {
        if self.gateway()?.is_store() {
            return Ok(());
        }
        let features = self.known_features().await?.unwrap_or_default();
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
        let gateway = self.shared.gateway.as_ref();
        if gateway.is_some_and(|gateway| !gateway.is_store()) {
            "the gateway's URL as `gateway=`"
        } else {
            "the gateway's URL as the endpoint"
        }
    }

    /// The address to which batches go, for errors.
    pub(crate) fn gateway_name(&self) -> String {
        let gateway = self.shared.gateway.as_ref();
        gateway.map_or_else(|| self.endpoint(), |gateway| gateway.endpoint.to_string())
    }

    /// Sends a request to the gateway, and waits for the head of its answer, with any status.
    ///
    /// # Errors
    /// Without a gateway; if no answer arrives.
    pub(crate) async fn send_to_gateway(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer> {
        let gateway = self.gateway()?;
        let sent = self
            .transport()
            .send(&gateway.endpoint, method, target, headers, body);
        let answer = sent.await?;
        gateway.note_features(&answer.headers);
        Ok(answer)
    }

    /// Notes the features that an answer of the store lists, if its endpoint is a gateway.
    pub(super) fn note_features(&self, headers: &HeaderMap) {
        if let Some(gateway) = self.shared.gateway.as_ref().filter(|gateway| gateway.is_store()) {
            gateway.note_features(headers);
        }
    }

    /// The features that the gateway listed last. None if it has not answered yet, or is older than these lists.
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
                // A gateway that cannot be reached fails the batch, with a better message.
                drop(timeout(FEATURES_TIMEOUT, self.request_features()).await);
            }
        };
        gateway.asked.get_or_init(ask).await;
        gateway.features()
    }

    /// The features of the gateway, which is asked for them if it has not answered yet. `None` if its answer lists none: the endpoint is
    /// no gateway.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) async fn known_features(&self) -> Result<Option<Features>> {
        let known = self.features();
        if known != Features::default() {
            return Ok(Some(known));
        }
        if !self.has_gateway() {
            return Ok(None);
        }
        let answer = self.request_features().await?;
        match listed_features(&answer.headers) {
            None if is_transient(answer.status) => {
                let subject = format!("{} did not list its features", self.gateway_name());
                Err(answer.refusal().await.into_error(&subject))
            }
            listed => Ok(listed),
        }
    }

    async fn request_features(&self) -> Result<Answer> {
        // All gateways beside a store have the first path, which waits for nothing; older ones in place of it have only the second.
        let target = match self.gateway_health() {
            Some(_) => VERSION_PATH,
            None => MODELS_PATH,
        };
        self.send_to_gateway(Method::HEAD, target, HeaderMap::new(), Bytes::new())
            .await
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::HeaderName};
    use pushdown::wire::header::FEATURES;

    use super::*;

    #[test]
    fn the_features_are_those_that_the_gateway_listed_last() {
        let endpoint = Endpoint::parse("gateway", "http://127.0.0.1:1").unwrap();
        let gateway = Gateway::in_place_of_store(endpoint);
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
