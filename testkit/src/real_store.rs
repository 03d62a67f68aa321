//! A real store with accounts: an owner, a reader and a guest.

use std::{net::SocketAddr, path::Path, slice::from_ref};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    gateway::Gateway,
    juicefs::JuiceFs,
    raw::Request,
    sign::{Keys, Payload},
    weed::Weed,
    world::{ACCESS_KEY, SECRET_KEY},
};

/// A running store that no gateway stands in front of.
#[derive(Debug)]
pub struct RealStore {
    /// Has all rights.
    pub owner: Keys,
    /// May read until its right is withdrawn.
    pub reader: Keys,
    /// May read nothing.
    pub guest: Keys,
    server: Server,
}

#[derive(Debug)]
enum Server {
    /// A gateway, for its embedded store alone.
    Embedded(Gateway),
    SeaweedFs(Weed),
    JuiceFs(JuiceFs),
}

impl RealStore {
    /// Starts the embedded store of the gateway `binary`. It has one account, so that the reader is the owner, and the guest
    /// is unknown.
    pub fn embedded(binary: &Path) -> Result<Self> {
        let owner = owner();
        let gateway = Gateway::embedded(binary, &owner, [""; 0])?;
        Ok(Self {
            reader: owner.clone(),
            guest: guest(),
            owner,
            server: Server::Embedded(gateway),
        })
    }

    /// Starts SeaweedFS, where the reader has all rights that the owner has.
    pub fn seaweedfs() -> Result<Self> {
        let (owner, reader, guest) = (owner(), reader(), guest());
        let weed = Weed::launch_with_guests(&[owner.clone(), reader.clone()], from_ref(&guest))?;
        Ok(Self {
            owner,
            reader,
            guest,
            server: Server::SeaweedFs(weed),
        })
    }

    /// Starts `JuiceFS`, where the reader has no right yet.
    pub fn juicefs() -> Result<Self> {
        let (owner, reader, guest) = (owner(), reader(), guest());
        let store = JuiceFs::launch(&owner, &[reader.clone(), guest.clone()])?;
        Ok(Self {
            owner,
            reader,
            guest,
            server: Server::JuiceFs(store),
        })
    }

    /// Address of its S3 endpoint.
    pub fn address(&self) -> Result<SocketAddr> {
        match &self.server {
            Server::Embedded(gateway) => gateway.store().context("no store address in the ready file"),
            Server::SeaweedFs(weed) => Ok(weed.address()),
            Server::JuiceFs(store) => Ok(store.address()),
        }
    }

    /// Whether rights can be granted and withdrawn.
    pub fn has_accounts(&self) -> bool {
        !matches!(self.server, Server::Embedded(_))
    }

    /// Grants the reader the right to read, or withdraws it. It takes effect soon after.
    pub fn set_read_right(&self, can_read: bool) -> Result<()> {
        let Self {
            owner, reader, guest, ..
        } = self;
        match &self.server {
            Server::Embedded(_) => bail!("the embedded store has one account, whose rights cannot change"),
            Server::SeaweedFs(weed) if can_read => {
                weed.set_identities(&[owner.clone(), reader.clone()], from_ref(guest))
            }
            Server::SeaweedFs(weed) => weed.set_identities(from_ref(owner), &[reader.clone(), guest.clone()]),
            Server::JuiceFs(store) => store.set_read_right(reader, can_read),
        }
    }

    /// Creates a bucket, or adds or replaces an object.
    pub fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        self.change("PUT", path, body.into(), 200)
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) -> Result<()> {
        self.change("DELETE", path, Vec::new(), 204)
    }

    fn change(&self, method: &str, path: &str, body: Vec<u8>, status: u16) -> Result<()> {
        let address = self.address()?;
        let request = Request::new(method, path)
            .header("Host", &address.to_string())
            .body(body);
        let answer = self.owner.sign(request, Payload::Signed)?.send(address)?;
        ensure!(
            answer.status == status,
            "{method} {path}: expected {status}, found {} {}",
            answer.status,
            answer.text()
        );
        Ok(())
    }
}

fn owner() -> Keys {
    Keys::new(ACCESS_KEY, SECRET_KEY)
}

fn reader() -> Keys {
    Keys::new("pushdownreaderkey", "pushdownreadersecret")
}

fn guest() -> Keys {
    Keys::new("guestkey", "guestsecret")
}
