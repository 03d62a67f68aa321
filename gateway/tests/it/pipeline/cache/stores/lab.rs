//! A gateway in front of a real store, and the attacks on it.

use std::{
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail, ensure};
use pushdown_testkit::{Gateway, Keys, RealStore, Request, Response, StoreRelay, eventually};

use super::super::{PATH, PIPELINE, adversary::Attack, binary, expected, origin, photo, pixels};
use super::{LIMIT, accounts::Accounts};

/// Validity of signatures.
const VALID: Duration = Duration::from_mins(15);
/// Validity of the adversary's signatures, so that its targets differ from all others.
const ADVERSARY_VALID: Duration = Duration::from_mins(10);

/// What callers sign for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignedFor {
    /// The gateway, in front of its own store.
    Gateway,
    /// The store, which their requests state.
    Store,
}

/// A gateway and a store with one photo, at [`PATH`].
pub(super) struct StoreLab<'a> {
    store: &'a RealStore,
    signed_for: SignedFor,
    accounts: Accounts<'a>,
    pub(super) owner: Keys,
    pub(super) reader: Keys,
    guest: Keys,
    pub(super) relay: StoreRelay,
    pub(super) gateway: Gateway,
    pub(super) value: Vec<u8>,
}

impl<'a> StoreLab<'a> {
    pub(super) fn new(
        store: &'a RealStore,
        signed_for: SignedFor,
        accounts: Accounts<'a>,
        flags: &[&str],
    ) -> Result<Self> {
        let relay = StoreRelay::start(store.address()?)?;
        let setting = match signed_for {
            SignedFor::Gateway => "upstream",
            SignedFor::Store => "allow-store",
        };
        let address = format!("--{setting}=http://{}", relay.address());
        let photo = photo(600, 400, "jpeg");
        let [owner, reader, guest] = accounts.keys(store)?;
        let lab = Self {
            store,
            signed_for,
            accounts,
            owner,
            reader,
            guest,
            relay,
            gateway: Gateway::launch(binary(), [&[address.as_str()], flags].concat())?,
            value: pixels(expected(&photo, PIPELINE)),
        };
        store.put(PATH, photo)?;
        // An earlier test may have withdrawn the right.
        if lab.reader_status()? != 200 {
            accounts.set_read_right(store, true)?;
            lab.wait_for_reader_status(200)?;
        }
        Ok(lab)
    }

    /// A GET at the gateway that is answered with a value.
    pub(super) fn get(&self, keys: &Keys) -> Result<Response> {
        let answer = self.presigned(keys, VALID)?.send(self.gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer)
    }

    /// A request for the gateway, whose target is signed as by readers.
    pub(super) fn presigned(&self, keys: &Keys, valid: Duration) -> Result<Request> {
        Ok(self.to_gateway(presigned(self.signed_host(), keys, valid)?))
    }

    /// The address that callers sign for.
    fn signed_host(&self) -> SocketAddr {
        match self.signed_for {
            SignedFor::Gateway => self.gateway.listen(),
            SignedFor::Store => self.relay.address(),
        }
    }

    /// A request for the store, sent to the gateway: its host is the gateway's, and it states the store.
    fn to_gateway(&self, mut request: Request) -> Request {
        if self.signed_for == SignedFor::Gateway {
            return request;
        }
        for (name, value) in &mut request.headers {
            if name == "Host" {
                *value = self.gateway.listen().to_string();
            }
        }
        request.header("x-pushdown-store", &format!("http://{}", self.relay.address()))
    }

    /// Asks until the value is cached.
    pub(super) fn warm(&self) -> Result<()> {
        for _ in 0..5 {
            let answer = self.get(&self.reader)?;
            ensure!(answer.body == self.value);
            if origin(&answer)? == "memory" {
                return Ok(());
            }
        }
        bail!("the value is not cached")
    }

    /// The status of the reader's GET at the store itself.
    fn reader_status(&self) -> Result<u16> {
        let address = self.store.address()?;
        let request = presigned(address, &self.reader, VALID)?;
        Ok(request.send(address)?.status)
    }

    /// Waits until the store answers the reader with this status.
    pub(super) fn wait_for_reader_status(&self, status: u16) -> Result<()> {
        eventually("the right of the reader has changed", LIMIT, || {
            Ok((self.reader_status()? == status).then_some(()))
        })
    }

    /// Changes the store, sends the adversary's request, and checks that its answer is the store's own.
    pub(super) fn attack(&self, attack: Attack) -> Result<()> {
        match attack {
            Attack::Deleted => self.store.delete(PATH)?,
            Attack::RightWithdrawn => {
                self.accounts.set_read_right(self.store, false)?;
                self.wait_for_reader_status(403)?;
            }
            Attack::NoRight | Attack::WrongSignature | Attack::Expired | Attack::Anonymous => {}
        }
        // Its own condition must not matter.
        let with_condition = |request: Request| request.header("If-None-Match", "\"other\"");
        let request = self.to_gateway(self.adversary_request(self.signed_host(), attack)?);
        let answer = with_condition(request).send(self.gateway.listen())?;
        let address = self.store.address()?;
        let direct = with_condition(self.adversary_request(address, attack)?).send(address)?;
        attack.check(&answer, &self.value)?;
        let (code, store_code) = (answer.element("Code"), direct.element("Code"));
        ensure!(code == store_code, "expected {store_code:?}, found {code:?}");
        Ok(())
    }

    fn adversary_request(&self, address: SocketAddr, attack: Attack) -> Result<Request> {
        let Self {
            owner, reader, guest, ..
        } = self;
        let request = |keys: &Keys| presigned(address, keys, ADVERSARY_VALID);
        match attack {
            Attack::NoRight => request(guest),
            Attack::WrongSignature => request(&Keys {
                secret: "anothersecret".to_owned(),
                ..owner.clone()
            }),
            Attack::Expired => request(&owner.with_time(SystemTime::now() - Duration::from_hours(1))),
            Attack::Anonymous => Ok(with_pipeline(unsigned(address))),
            Attack::Deleted => request(owner),
            Attack::RightWithdrawn => request(reader),
        }
    }
}

/// A request to `address` whose target and host are signed, as by readers.
fn presigned(address: SocketAddr, keys: &Keys, valid: Duration) -> Result<Request> {
    Ok(with_pipeline(keys.presign(unsigned(address), valid)?))
}

fn unsigned(address: SocketAddr) -> Request {
    Request::new("GET", PATH).header("Host", &address.to_string())
}

fn with_pipeline(request: Request) -> Request {
    request
        .header("x-pushdown-pipeline", PIPELINE)
        .header("Accept", "application/octet-stream")
}
