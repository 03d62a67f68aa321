//! A store that addresses and refuses as AWS does, in front of a real one.
//!
//! - Hosts name the region, and the bucket if its name can be a label: `BUCKET.s3.REGION.localhost`. A path-style address of such
//!   a bucket gets 301 `PermanentRedirect` with the endpoint, as AWS answers requests that another endpoint should get. AWS still
//!   serves path-style addresses of old buckets; the front is stricter, so that no test passes by them.
//! - Requests are signed in the header or presigned, with credentials of a session that the front has issued, for the region of the host.
//!   A presigned request ends with its `X-Amz-Expires`, and with its session.
//! - A bucket of another region gets [`MovedAnswer`], and a newly created bucket 307 `TemporaryRedirect`. The `Location` of both is
//!   the address of a listener that counts its visitors.
//! - `HEAD` gets the status and the headers of a refusal, and no document.
//! - All other requests are signed again for the store, in path style. Bodies flow, and are not collected.
//! - Sessions come from the sources of AWS's chain of credentials, at one further address.

mod address;
mod forward;
mod refusal;
mod rules;
mod sessions;
mod sources;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;

use crate::origin::{Exchange, ScriptedOrigin};
use crate::raw::Request;
use crate::relay::read_head;
use crate::sign::{Keys, Presigned};
use address::{Address, host_name};
use forward::Store;
use refusal::Refusal;
use rules::{KnownKeys, Rules};
use sessions::Sessions;
use sources::Sources;

pub use rules::MovedAnswer;
pub use sessions::IssuedSession;
pub use sources::CredentialsAnswer;

/// A front of a store, and the sources of credentials for it. Both close when dropped.
#[derive(Debug)]
pub struct AwsFront {
    origin: ScriptedOrigin,
    sources: ScriptedOrigin,
    redirect_target: ScriptedOrigin,
    front: Arc<Front>,
}

#[derive(Debug)]
struct Front {
    store: Store,
    sessions: Sessions,
    sources: Sources,
    rules: Mutex<Rules>,
    record: Mutex<FrontRecord>,
}

/// What a front has received, and how it answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontRecord {
    /// Requests by host, without its port.
    pub hosts: BTreeMap<String, usize>,
    /// Refusals by code.
    pub refusals: BTreeMap<&'static str, usize>,
    /// Requests with a valid signature, by access key.
    pub signers: BTreeMap<String, usize>,
    /// Requests forwarded to the store.
    pub forwarded: usize,
}

impl FrontRecord {
    /// The number of refusals with this code.
    pub fn refused(&self, code: &str) -> usize {
        self.refusals.get(code).copied().unwrap_or_default()
    }

    /// The number of requests to this host.
    pub fn requests_to(&self, host: &str) -> usize {
        self.hosts.get(host).copied().unwrap_or_default()
    }
}

impl AwsFront {
    /// Starts a front of a store that knows `keys`. Buckets are in `region` until they are moved, and sessions end after
    /// `lifetime`, at a whole second.
    pub fn start(store: SocketAddr, keys: &Keys, region: &str, lifetime: Duration) -> Result<Self> {
        let redirect_target = ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "redirected"))?;
        let front = Arc::new(Front {
            store: Store {
                address: store,
                keys: keys.clone(),
            },
            sessions: Sessions::new(lifetime),
            sources: Sources::default(),
            rules: Mutex::new(Rules::new(region, redirect_target.address())),
            record: Mutex::default(),
        });
        let (origin_front, sources_front) = (Arc::clone(&front), Arc::clone(&front));
        Ok(Self {
            origin: ScriptedOrigin::start(move |exchange| origin_front.answer(exchange))?,
            sources: ScriptedOrigin::start(move |exchange| {
                sources_front.sources.answer(exchange, &sources_front.sessions)
            })?,
            redirect_target,
            front,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.origin.address()
    }

    /// The URL of its home region. Only the gateway finds such a host name.
    pub fn url(&self) -> String {
        let region = self.front.rules.lock().home().to_owned();
        format!("http://s3.{region}.localhost:{}", self.address().port())
    }

    /// The URL of the endpoint of containers.
    pub fn credentials_url(&self) -> String {
        self.sources_url() + sources::CONTAINER_PATH
    }

    /// The URL of the metadata of instances, and of the token service.
    pub fn sources_url(&self) -> String {
        format!("http://{}", self.sources.address())
    }

    /// The heads of all requests to the sources so far.
    pub fn source_requests(&self) -> Vec<String> {
        self.sources.requests()
    }

    /// Issues a session without a request, for sources that are no endpoints.
    pub fn issue_session(&self) -> IssuedSession {
        self.front.sessions.issue()
    }

    /// Lets the token service issue sessions of this role for this token from now on, and for no other.
    pub fn accept_web_identity(&self, role: &str, token: &str) {
        self.front.sources.accept_web_identity(role, token);
    }

    /// The credentials of all sessions issued so far.
    pub fn issued(&self) -> Vec<Keys> {
        self.front.sessions.issued()
    }

    /// Sets how all sources answer from now on.
    pub fn set_credentials_answer(&self, answer: CredentialsAnswer) {
        self.front.sources.set_answer(answer);
    }

    /// Refuses the tokens of all sessions issued so far, as if they had expired.
    pub fn revoke_sessions(&self) {
        self.front.sessions.revoke();
    }

    /// Forgets the access keys of all sessions issued so far.
    pub fn forget_sessions(&self) {
        self.front.sessions.forget();
    }

    /// Also accepts the store's own keys, which have no token.
    pub fn accept_store_keys(&self) {
        self.front.rules.lock().accepts_store_keys = true;
    }

    /// Moves a bucket to a region.
    pub fn move_bucket(&self, bucket: &str, region: &str) {
        self.front.rules.lock().move_bucket(bucket, region);
    }

    /// Sets the answer to requests for a bucket of another region.
    pub fn set_moved_answer(&self, answer: MovedAnswer) {
        self.front.rules.lock().moved_answer = answer;
    }

    /// Sets whether a bucket counts as newly created: requests for it are redirected.
    pub fn set_newly_created(&self, bucket: &str, is_newly_created: bool) {
        self.front
            .rules
            .lock()
            .set_newly_created(bucket, is_newly_created);
    }

    /// What it has received and answered so far.
    pub fn record(&self) -> FrontRecord {
        self.front.record.lock().clone()
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.origin.requests()
    }

    /// The number of connections to the addresses that redirections name.
    pub fn redirected_connections(&self) -> usize {
        self.redirect_target.connections()
    }

    /// Where redirections lead.
    pub fn redirect_target(&self) -> SocketAddr {
        self.redirect_target.address()
    }
}

impl Front {
    fn answer(&self, exchange: &mut Exchange) -> io::Result<()> {
        let request = read_head(exchange)?;
        match self.check(&request) {
            Ok(address) => {
                self.record.lock().forwarded += 1;
                self.store.forward(exchange, &request, &address.target)
            }
            Err(refusal) => {
                *self.record.lock().refusals.entry(refusal.code).or_default() += 1;
                refusal.send(exchange, &request)
            }
        }
    }

    /// What a request addresses, if the front accepts it.
    fn check(&self, request: &Request) -> Result<Address, Refusal> {
        let host = request.header_value("host").unwrap_or_default();
        let name = host_name(host).to_owned();
        *self.record.lock().hosts.entry(name).or_default() += 1;
        let presigned = Presigned::parse(&request.target);
        let target = presigned
            .as_ref()
            .map_or(&request.target, |presigned| &presigned.target);
        let address = Address::new(host, target).ok_or_else(|| {
            let message = "Couldn't parse the specified URI.";
            Refusal::new("400 Bad Request", "InvalidURI", message)
        })?;
        let rules = self.rules.lock();
        let known = KnownKeys {
            sessions: &self.sessions,
            store: &self.store.keys,
        };
        let signer = match &presigned {
            Some(presigned) => rules.check_presigned(request, presigned, &address.region, known)?,
            None => rules.check_signature(request, &address.region, known)?,
        };
        *self.record.lock().signers.entry(signer).or_default() += 1;
        rules.check_place(request, &address)?;
        Ok(address)
    }
}
